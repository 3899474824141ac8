"""Progress of a lifecycle run: one line that changes on a terminal, else one every ten seconds. To standard error."""

from __future__ import annotations

import sys
import time

from rich.console import Console
from rich.text import Text

from scaletest.analysis.lifecycle.books import Fate, Progress

PLAIN_EVERY_S, LIVE_EVERY_S = 10.0, 0.5


class Teller:
    """Tells now and then."""

    def __init__(self) -> None:
        self._console = Console(file=sys.stderr, highlight=False)
        self._live = self._console.status("starting", spinner="dots") if self._console.is_terminal else None
        if self._live:
            self._live.start()
        self._told = time.monotonic()
        self._every = LIVE_EVERY_S if self._live else PLAIN_EVERY_S

    def tell(self, far: Progress) -> None:
        """Take in where the run is; it is shown when it is time."""
        if time.monotonic() - self._told < self._every:
            return
        self._told = time.monotonic()
        line = Text(words(far))
        if self._live:
            self._live.update(line)
        else:
            self._console.print(line, soft_wrap=True)

    def close(self) -> None:
        """Take the live line away."""
        if self._live:
            self._live.stop()


def words(far: Progress) -> str:
    """The line."""
    planned = f" of {far.planned}" if far.planned else ""
    parts = [f"{far.submitted}{planned} submitted"]
    parts += [f"{far.fates[fate]} {fate}" for fate in Fate if far.fates.get(fate)]
    if far.rejected:
        parts.append(f"{far.rejected} rejected")
    return ", ".join([*parts, f"{far.pods} pods"])
