"""The formats of reports: a module of this package is a format, named as on the command line.

Each has `render(report)`, which gives text, or bytes where it is a picture. Nothing else lists
them.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # it takes a while to import, and names need none of it
    from scaletest.render.contents import Report

PICTURES = ("png",)


def names() -> list[str]:
    """The names of all formats; none of them is imported."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def texts() -> list[str]:
    """The names of the formats that are text."""
    return [name for name in names() if name not in PICTURES]


def render(report: Report, format_name: str) -> str:
    """The whole report in the format of that name, one of `texts`."""
    text = _module(format_name).render(report)
    assert isinstance(text, str)
    return text


def content(report: Report, format_name: str) -> bytes:
    """The whole report as a file of that format."""
    if format_name in PICTURES:
        return bytes(_module(format_name).render(report))
    return render(report, format_name).encode(errors="replace")


def _module(format_name: str) -> Any:
    return importlib.import_module(f"{__name__}.{format_name}")
