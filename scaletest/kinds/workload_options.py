"""Options of a workload, as a worker's command line or a request gives them."""

from __future__ import annotations

import argparse
from typing import NoReturn

from scaletest.model.errors import InvalidValue


class WorkloadOptions(argparse.ArgumentParser):
    """A parser that raises InvalidValue, and returns only the options that are set.

    page: the documentation page with the workload's options.
    """

    def __init__(self, workload: str, page: str) -> None:
        super().__init__(
            prog=workload,
            add_help=False,
            allow_abbrev=False,
            argument_default=argparse.SUPPRESS,
        )
        self._page = page

    def error(self, message: str) -> NoReturn:
        """Raises InvalidValue instead of ending the process."""
        raise InvalidValue(f"{self.prog}: {message}", hint=f"{self._page} lists its options")
