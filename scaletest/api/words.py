"""Words of Python in place of those of the command line: names in errors, and arguments as text."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

from scaletest.model.errors import ScaletestError
from scaletest.model.wording import as_arguments


@contextmanager
def python_names() -> Iterator[None]:
    """Let errors name settings as Python does."""
    try:
        yield
    except ScaletestError as error:
        error.message, error.hint = map(as_arguments, (error.message, error.hint))
        error.args = (error.message,)
        error.__notes__ = [error.hint] if error.hint else []
        raise


def as_text(argument: Any) -> Any:
    """Return a number or path as the command line would have it, and anything else as it is."""
    if type(argument) is not bool and isinstance(argument, Real):
        return str(argument)
    return os.fspath(argument) if isinstance(argument, os.PathLike) else argument
