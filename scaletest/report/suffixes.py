"""Which form a file has, by its name."""

from __future__ import annotations

from pathlib import Path

# Suffixes of files whose form has another name.
_SUFFIXES = {
    "": "text",
    "txt": "text",
    "log": "text",
    "out": "text",
    "htm": "html",
    "markdown": "md",
    "xml": "junit",
    "yml": "yaml",
}


def form_of(path: Path) -> str:
    """The name of the form; the suffix itself where it is unknown, "text" without one."""
    suffix = path.suffix.lstrip(".").lower()
    return _SUFFIXES.get(suffix, suffix)
