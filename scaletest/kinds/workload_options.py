"""Options of a workload, as a worker's command line or a request gives them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from scaletest.model.errors import InvalidValue

E = TypeVar("E", bound=StrEnum)


class WorkloadOptions(argparse.ArgumentParser):
    """A parser that raises InvalidValue, and returns only the options that are set.

    page: the documentation page with the workload's options. options: settings of each option, as
    argparse takes them.
    """

    def __init__(self, workload: str, page: str, options: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(
            prog=workload,
            add_help=False,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        self._page = page
        for name, settings in options.items():
            self.add_argument(name, **settings)

    def read(self, arguments: Sequence[str]) -> dict[str, Any]:
        """Parse the options; the last of several counts. InvalidValue for anything else."""
        return vars(self.parse_args(list(arguments)))

    def error(self, message: str) -> NoReturn:
        """Raises InvalidValue instead of ending the process."""
        raise InvalidValue(f"{self.prog}: {message}", hint=f"{self._page} lists its options")


def member(choices: type[E]) -> Callable[[str], E]:
    """Make a function that reads a member of an enumeration, for options."""

    def read(text: str) -> E:
        try:
            return choices(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(
                f"{text!r} is not one of {', '.join(choices)}"
            ) from error

    return read
