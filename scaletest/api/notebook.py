"""Progress below the cell of a notebook: one line, which the next state replaces."""

import importlib
import sys
from contextlib import suppress
from typing import Any

from scaletest.model.run_progress import RunProgress
from scaletest.runs.progress import time_left


class CellLine:
    """The line below the cell that runs now."""

    def __init__(self) -> None:
        self._display = importlib.import_module("IPython.display").display
        self._handle: Any = None

    def __call__(self, state: RunProgress) -> None:
        """Show where the run is, or how it ended."""
        if state.ended:
            line = ": ".join(filter(None, (state.run, state.verdict)))
        else:
            parts = (state.place, state.line or state.phase, time_left(state))
            line = ", ".join(filter(None, parts)) or "starting"
        output = {"text/plain": line}
        with suppress(Exception):  # a display error must not end the run
            if self._handle is None:
                self._handle = self._display(output, raw=True, display_id=True)
            else:
                self._handle.update(output, raw=True)


def cell_line() -> CellLine | None:
    """Make a line below the cell that runs now; None where this is no notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    # a terminal has a shell, too
    return CellLine() if hasattr(shell, "kernel") else None
