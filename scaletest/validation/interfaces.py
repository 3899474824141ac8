"""The two things a validation drives, and the one it tells. Small on purpose: each has several implementations."""

from __future__ import annotations

from typing import Protocol

from scaletest.analysis.throughput import Throughput


class Backend(Protocol):
    """Where workers run."""

    def scale(self, workers: int) -> None:
        """Ask for this many workers; returns at once."""

    def ready(self) -> int:
        """How many workers serve the queue now. Raises ScaletestError when a worker died."""

    def close(self) -> None:
        """End the workers, or put their number back to what it was."""


class Load(Protocol):
    """Who keeps requests in flight."""

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        """Keep this many in flight from now on; their records carry `step` and `repeat`."""

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight; whether that came in time."""

    def check(self) -> None:
        """Raise what ended the load, if anything did."""


class SideLoad(Protocol):
    """Load on another queue, with workers of its own."""

    def enter(self, step: int, repeat: int) -> None:
        """A step begins: requests from now on belong to it."""

    def check(self) -> None:
        """Raise what ended its load or its workers, if anything did."""


class ValidationProgress(Protocol):
    """Who is told how a run goes. Every call returns at once."""

    def phase(self, workers: int, phase: str) -> None:
        """A step entered a phase: scaling, warming up, measuring, draining."""

    def tick(
        self,
        workers: int,
        elapsed_s: float,
        longest_s: float,
        completions: int,
        failures: int,
        rate: Throughput | None,
    ) -> None:
        """A step goes on; `rate` is the throughput at the last look, None before there was one."""

    def step(self, line: str) -> None:
        """A step is done; one line about it."""
