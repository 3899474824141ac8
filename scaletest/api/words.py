"""Words of Python in place of those of the command line: names in errors, and arguments as text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from scaletest.model.errors import ScaletestError

# An option in a text, but not one in brackets, which is for a worker.
_OPTION = re.compile(r"(?<!\[)--([a-z][a-z-]*)")
# Options that have another name in Python.
_RENAMED = {"no-wait": "keep=True"}
# Where a text names a command, its options are those of the shell.
_COMMAND = ": scaletest "
_DECLARATION = re.compile(r"scaletest queue add (\S+)(?: --maximum (\w+))?")


@contextmanager
def python_names() -> Iterator[None]:
    """Errors that name options as Python does."""
    try:
        yield
    except ScaletestError as error:
        error.message, error.hint = map(in_python, (error.message, error.hint))
        error.args = (error.message,)
        error.__notes__ = [error.hint] if error.hint else []
        raise


def in_python(text: str) -> str:
    """A message or hint with the names of Python; commands in it stay as they are."""
    declared = _DECLARATION.sub(_declaration, text)
    sentence, command, rest = declared.partition(_COMMAND)
    return _OPTION.sub(_name, sentence) + command + rest


def _name(option: re.Match[str]) -> str:
    return _RENAMED.get(option[1], option[1].replace("-", "_"))


def _declaration(command: re.Match[str]) -> str:
    maximum = f", maximum={command[2]}" if command[2] else ""
    return f'client.declare("{command[1]}"{maximum})'


def as_text(argument: Any) -> Any:
    """A number or path as the command line would have it; a check refuses what is no argument."""
    if type(argument) is not bool and isinstance(argument, Real):
        return str(argument)
    return os.fspath(argument) if isinstance(argument, os.PathLike) else argument
