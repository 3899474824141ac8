"""The formats of reports: a module of this package is a format, named as on the command line.

Each has `render(report) -> str`. Nothing else lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from scaletest.render.contents import Report

# Suffixes of files whose format has another name.
SUFFIXES = {"htm": "html", "markdown": "md", "txt": "text", "xml": "junit"}


def names() -> list[str]:
    """The names of all formats; none of them is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def chosen(name: str | None, output: Path) -> str:
    """The format that was asked for, else that of the file's suffix, else text."""
    if name:
        return name
    suffix = output.suffix.lstrip(".").lower()
    by_suffix = SUFFIXES.get(suffix, suffix)
    return by_suffix if by_suffix in names() else "text"


def render(report: Report, format_name: str) -> str:
    """The whole report in the format of that name."""
    module = importlib.import_module(f"{__name__}.{format_name}")
    text = module.render(report)
    assert isinstance(text, str)
    return text
