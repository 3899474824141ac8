"""Interfaces of workers and load of a validation, each with several implementations.

A background queue has its workers and its constant load too, until the run ends.
"""

from typing import Protocol

from scaletest.validation.plan import Background


class Backend(Protocol):
    """The workers, as processes or pods."""

    def scale(self, workers: int) -> None:
        """Request this many workers; returns at once."""

    def ready(self) -> int:
        """Return how many workers serve the queue now; ScaletestError when a worker died."""

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


class BackgroundLoad:
    """Keeps `plan.parallel` requests in flight for `plan.workers` workers."""

    def __init__(self, plan: Background, backend: Backend, load: Load) -> None:
        self._plan = plan
        self._backend = backend
        self._load = load
        self._backend.scale(plan.workers)

    def enter(self, step: int, repeat: int) -> None:
        """Begin a step: from now on requests belong to it."""
        self._load.set_parallel(self._plan.parallel, step, repeat)

    def check(self) -> None:
        """Raise what ended the load or the workers, if anything did."""
        self._backend.ready()
        self._load.check()
