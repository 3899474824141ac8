"""Words of Python in place of those of the command line: names in errors, and arguments as text."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from scaletest.model.errors import ScaletestError
from scaletest.model.wording import as_arguments

_DECLARATION = re.compile(r"scaletest queue add (\S+)(?: --maximum (\w+))?")


@contextmanager
def python_names() -> Iterator[None]:
    """Let errors name settings and queues as Python does."""
    try:
        yield
    except ScaletestError as error:
        error.message, error.hint = map(_in_python, (error.message, error.hint))
        error.args = (error.message,)
        error.__notes__ = [error.hint] if error.hint else []
        raise


def _in_python(text: str) -> str:
    """Put the names of Python into a message, hint or remedy; commands in it stay as they are."""
    return _DECLARATION.sub(_declare_call, as_arguments(text))


def _declare_call(command: re.Match[str]) -> str:
    """Return the call that declares a queue in place of the command."""
    maximum = f", maximum={command[2]}" if command[2] else ""
    return f'client.declare("{command[1]}"{maximum})'


def as_text(argument: Any) -> Any:
    """Return a number or path as the command line would have it, and anything else as it is."""
    if type(argument) is not bool and isinstance(argument, Real):
        return str(argument)
    return os.fspath(argument) if isinstance(argument, os.PathLike) else argument
