"""Progress of a run on standard error: one live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.text import Text

from scaletest.analysis.throughput import Throughput
from scaletest.render.numbers import percent, plural, significant
from scaletest.render.text import clean

PLAIN_EVERY_S = 10.0


class PlainProgress:
    """For logs: a line at each phase change and every ten seconds."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._told = clock()

    def phase(self, workers: int, what: str) -> None:
        """A step entered a phase."""
        if what != "draining":
            self._say(f"{plural(workers, 'worker')}: {what}")

    def tick(
        self,
        workers: int,
        elapsed_s: float,
        longest_s: float,
        completions: int,
        failures: int,
        rate: Throughput | None,
    ) -> None:
        """A step goes on."""
        if self._clock() - self._told >= PLAIN_EVERY_S:
            self._say(_status(workers, elapsed_s, longest_s, completions, failures, rate))

    def note(self, line: str) -> None:
        """What happens now, in a line."""
        if self._clock() - self._told >= PLAIN_EVERY_S:
            self._say(line)

    def step(self, line: str) -> None:
        """A step is done."""
        self._say(line)

    def close(self) -> None:
        """Nothing to take away."""

    def _say(self, line: str) -> None:
        self._told = self._clock()
        self._console.print(Text(clean(line)), soft_wrap=True)


class LiveProgress(PlainProgress):
    """For people at a terminal: one line that changes, and a line for each finished step."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._status = console.status("starting", spinner="dots")
        self._status.start()

    def phase(self, workers: int, what: str) -> None:
        """A step entered a phase."""
        self._status.update(Text(f"{plural(workers, 'worker')}: {what}"))

    def tick(
        self,
        workers: int,
        elapsed_s: float,
        longest_s: float,
        completions: int,
        failures: int,
        rate: Throughput | None,
    ) -> None:
        """A step goes on."""
        self._status.update(
            Text(_status(workers, elapsed_s, longest_s, completions, failures, rate))
        )

    def note(self, line: str) -> None:
        """What happens now, in a line."""
        self._status.update(Text(clean(line)))

    def close(self) -> None:
        """Take the live line away."""
        self._status.stop()


def choose(console: Console, *, plain: bool) -> PlainProgress:
    """Live on a terminal, plain otherwise."""
    return LiveProgress(console) if console.is_terminal and not plain else PlainProgress(console)


def _status(
    workers: int,
    elapsed_s: float,
    longest_s: float,
    completions: int,
    failures: int,
    rate: Throughput | None,
) -> str:
    seen = f", {significant(rate.per_s, 4)}/s ± {percent(rate.relative)}" if rate else ""
    failed = f", {failures} failed" if failures else ""
    time_used = f"{elapsed_s:.0f} s of {longest_s:.0f} s at most"
    return f"{plural(workers, 'worker')}: measuring, {completions} done{seen}{failed}, {time_used}"
