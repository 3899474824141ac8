"""Interfaces of workers, load and progress of a validation. Each has several implementations."""

from __future__ import annotations

from typing import Protocol

from scaletest.analysis.throughput import Throughput


class Backend(Protocol):
    """The workers, as processes or pods."""

    def scale(self, workers: int) -> None:
        """Request this many workers; returns at once."""

    def ready(self) -> int:
        """How many workers serve the queue now. Raises ScaletestError when a worker died."""

    def close(self) -> None:
        """End the workers, or restore their earlier number."""


class Load(Protocol):
    """The load, which keeps requests in flight."""

    def set_parallel(self, parallel: int, step: int | None = None, repeat: int = 0) -> None:
        """Keep this many in flight from now on; their records carry `step` and `repeat`."""

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until nothing is in flight; false when the time is over first."""

    def check(self) -> None:
        """Raise what ended the load, if anything did."""


class SideLoad(Protocol):
    """Load on another queue, with workers of its own."""

    def enter(self, step: int, repeat: int) -> None:
        """Begin a step: from now on requests belong to it."""

    def check(self) -> None:
        """Raise what ended its load or its workers, if anything did."""


class ValidationProgress(Protocol):
    """Receives the progress of a run. Every call returns at once."""

    def phase(self, workers: int, phase: str) -> None:
        """Note that a step entered a phase: scaling, warming up, measuring or draining."""

    def tick(
        self,
        workers: int,
        elapsed_s: float,
        longest_s: float,
        completions: int,
        failures: int,
        rate: Throughput | None,
    ) -> None:
        """Note the state of a step. rate: throughput at its last evaluation, else None."""

    def step(self, line: str) -> None:
        """Note one line about a step that is done."""
