"""The formats of reports: a module of this package is a format, named as on the command line.

Each has `render(report)`, which gives text, or bytes where it is a picture. Nothing else lists
them. Further ones are entry points of the group `scaletest.reports`: functions like `render` that
give text.
"""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scaletest.plugins import Plugins

if TYPE_CHECKING:  # it takes a while to import, and names need none of it
    from scaletest.render.contents import Report

PICTURES = ("png",)
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
_BUILT_IN = [module.name for module in pkgutil.iter_modules(__path__)]
_PLUGINS = Plugins("scaletest.reports", [*_BUILT_IN, "yaml"])


def names() -> list[str]:
    """Return the names of all formats; none of them is imported."""
    return sorted([*_BUILT_IN, *_PLUGINS.by_name])


def texts() -> list[str]:
    """Return the names of the formats that are text."""
    return [name for name in names() if name not in PICTURES]


def problems() -> list[str]:
    """Return why formats of installed packages cannot be used, as far as their names tell."""
    return _PLUGINS.problems


def render(report: Report, format_name: str) -> str:
    """Render the whole report in the format of that name, one of `texts`.

    UsageError when what an installed package adds fails.
    """
    plugin = _PLUGINS.by_name.get(format_name)
    if plugin is not None:
        render_plugin = plugin.load()
        try:
            text = render_plugin(report)
        except Exception as error:
            raise plugin.unusable(f"{type(error).__name__}: {error}") from error
        if not isinstance(text, str):
            raise plugin.unusable(f"it returned an object of type {type(text).__name__}, not text")
        return text
    text = _module(format_name).render(report)
    assert isinstance(text, str)
    return text


def content(report: Report, format_name: str) -> bytes:
    """Render the whole report as a file of that format."""
    if format_name in PICTURES:
        return bytes(_module(format_name).render(report))
    return render(report, format_name).encode(errors="replace")


def _module(format_name: str) -> Any:
    return importlib.import_module(f"{__name__}.{format_name}")


def form_of(path: Path) -> str:
    """Return the form of a file by its suffix: an unknown suffix itself, "text" without one."""
    suffix = path.suffix.lstrip(".").lower()
    return _SUFFIXES.get(suffix, suffix)
