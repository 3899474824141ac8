"""A background queue of a run: its workers and its constant load, until the run ends."""

from __future__ import annotations

from scaletest.model import Background
from scaletest.validation.interfaces import Backend, Load


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
