"""Modules that are imported when a command first uses them, since --help needs none of them.

Above its use such a module is imported for type checkers, and is a Later for the program.
"""

from __future__ import annotations

import importlib
from typing import Any


class Later:
    """A module by its full name, imported when something of it is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(importlib.import_module(self._name), attribute)
