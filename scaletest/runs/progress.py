"""Progress of a run, of any type: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Self

from rich.console import Console
from rich.text import Text

from scaletest.render.text import clean

PLAIN_EVERY_S = 10.0


class Progress:
    """Shows what a run does, on standard error. Every call returns at once, from any thread."""

    def __init__(
        self,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        plain: bool = False,
        quiet: bool = False,
    ) -> None:
        """plain: no live line, not even on a terminal. quiet: no line stays."""
        self._console = console or Console(stderr=True, highlight=False)
        self._clock, self._shown_s = clock, clock()
        self._quiet = quiet
        is_live = self._console.is_terminal and not plain
        self._live = self._console.status("starting", spinner="dots") if is_live else None
        if self._live:
            self._live.start()

    def phase(self, line: str) -> None:
        """A step entered a phase, which a log shows too."""
        if self._live:
            self.note(line)
        else:
            self.step(line)

    def note(self, line: str) -> None:
        """What happens now: the live line. A log shows it after ten seconds without a line."""
        if self._live:
            self._live.update(Text(clean(line)))
        elif self._clock() - self._shown_s >= PLAIN_EVERY_S:
            self.step(line)

    def step(self, line: str) -> None:
        """What stays: a step that is done, or something to know."""
        self._shown_s = self._clock()
        if not self._quiet:
            self._console.print(Text(clean(line)), soft_wrap=True)

    def warn(self, lines: Iterable[str]) -> None:
        """What may be wrong with the run."""
        for line in lines:
            self.step(f"warning: {line}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Take the live line away."""
        if self._live:
            self._live.stop()
