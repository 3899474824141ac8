"""What RQ's loop does beside its jobs, and how it bears a Redis that is away: put off, where RQ would end the worker.

Only for what is done again anyway. A job's own words to Redis are never put off here: they belong to the lanes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis.client import PubSub, PubSubWorkerThread
from rq import SimpleWorker

from scaletest.broker.connection import transient, twin
from scaletest.broker.fast_lane import FastLane

PUBSUB_RETRY_S = 2.0
# How long a worker that stops waits for the thread for commands.
CHANNEL_S = 1.0
# How long each of RQ's last words may wait for an answer. What they would remove goes with the worker's deadline too.
LAST_WORD_S = 5.0
SILENT_WORD_S = 2.0


class Patient(SimpleWorker):
    """An RQ worker that outlives its Redis, from when its lane is open until it is closed."""

    _lane: FastLane | None = None

    def __init__(self, *args: Any, rq_commands: bool = True, **options: Any) -> None:
        super().__init__(*args, **options)
        self._rq_commands = rq_commands
        self._leaving = threading.Event()

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

    def subscribe(self) -> None:
        """RQ's channel for commands to workers, where they are wanted."""
        self._leaving.clear()
        if self._rq_commands:
            super().subscribe()  # type: ignore[no-untyped-call]

    def unsubscribe(self) -> None:
        """End the thread for commands, which closes its channel.

        RQ closes the channel as well, and where the thread is late the two trip over each other.
        """
        thread: Any = self.pubsub_thread
        if thread is not None and self.pubsub is not None:
            # before the answer wakes it, or it waits for the next command
            thread.stop()
            self.pubsub.unsubscribe()  # type: ignore[no-untyped-call]
            thread.join(timeout=CHANNEL_S)

    def teardown(self) -> None:
        """RQ's. Raises what is transient too; its thread for commands ends all the same."""
        try:
            super().teardown()  # type: ignore[no-untyped-call]
        finally:
            thread: Any = self.pubsub_thread
            if thread is not None:
                thread.stop()

    def _pubsub_exception_handler(self, exc: Exception, pubsub: PubSub, pubsub_thread: PubSubWorkerThread) -> None:
        """The channel comes back by itself, and the lane has told that Redis is away.

        This wait is all that there is between two tries, also while a worker that stops finishes a request.
        """
        if not self._leaving.is_set() and (self._lane is None or not transient(exc)):
            super()._pubsub_exception_handler(exc, pubsub, pubsub_thread)
        elif self._leaving.wait(PUBSUB_RETRY_S):
            pubsub_thread.stop()

    def _close_idle_connections(self) -> None:
        """Those of RQ's own code. It opens one when it has something to say: a worker would hold it for life."""
        self.connection.connection_pool.disconnect(inuse_connections=False)

    @contextmanager
    def _hurried(self, *, silent: bool) -> Iterator[None]:
        """RQ's own words do not wait long for an answer; shorter where Redis was silent before."""
        usual = self.connection
        self.connection = twin(usual, SILENT_WORD_S if silent else LAST_WORD_S)
        try:
            yield
        finally:
            self.connection.connection_pool.disconnect()
            self.connection = usual

    @contextmanager
    def _excused(self, excuse: bool = True) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            if self._lane is None or not excuse or not transient(error):
                raise
