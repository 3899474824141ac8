"""What RQ's loop does beside its jobs, and how it bears a Redis that is away: put off, where RQ would end the worker.

Only for what is done again anyway. A job's own words to Redis are never put off here: they belong to the lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rq import SimpleWorker

from scaletest.broker.connection import transient
from scaletest.broker.lane import FastLane
from scaletest.system.waiting import Wake

PUBSUB_RETRY_S = 2.0


class Patient(SimpleWorker):
    """An RQ worker that outlives its Redis, from when its lane is open until it is closed."""

    _lane: FastLane | None = None
    _stopping: Wake

    def check_for_suspension(self, burst: bool) -> None:
        """The lane looks for it with every request."""
        if self._lane is None:
            super().check_for_suspension(burst)

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """RQ's heartbeat; ours goes on beside it."""
        with self._excused(pipeline is None):
            super().heartbeat(timeout, pipeline=pipeline)

    def run_maintenance_tasks(self) -> None:
        """RQ's maintenance; put off to the next time when Redis is away."""
        with self._excused():
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]

    def _pubsub_exception_handler(self, exc: Exception, *args: Any) -> None:
        """RQ's channel for commands to workers: it comes back by itself, and the lane has told that Redis is away."""
        if self._lane is None or not transient(exc):
            super()._pubsub_exception_handler(exc, *args)
        self._stopping.wait(PUBSUB_RETRY_S)

    @contextmanager
    def _excused(self, excuse: bool = True) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self._lane is None or not excuse or not transient(error):
                raise
