"""An RQ worker that survives outages of Redis, once it has a fast lane.

What RQ does beside its jobs is put off in an outage instead of ending the worker. This is right
only for what RQ repeats anyway. What a job itself tells Redis is never put off: the fast lane and
the runner of RQ's jobs retry it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from redis.client import PubSub, PubSubWorkerThread
from rq import SimpleWorker
from rq.serializers import DefaultSerializer, JSONSerializer, resolve_serializer

from scaletest.broker.connection import connect_again
from scaletest.broker.fast_lane import FastLane
from scaletest.broker.redis_errors import excuse_outage, is_transient
from scaletest.model.errors import InvalidValue

# The pause between two tries to read RQ's commands.
PUBSUB_RETRY_S = 2.0
# How long a stopping worker waits for the thread that reads RQ's commands.
CHANNEL_LIMIT_S = 1.0
# How long RQ's last commands may wait for an answer. What they would remove expires with the
# worker's deadline too.
LAST_COMMANDS_S = 2.0


class OutageProofWorker(SimpleWorker):
    """Overrides what RQ's own code tells Redis. It reads jobs in JSON only."""

    # Only with a lane the worker knows that Redis is away, and survives errors of RQ's own code.
    _lane: FastLane | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        """Make a worker as RQ does. InvalidValue for another serializer than JSON."""
        # RQ's command line passes its default, pickle, when the user chose nothing; it cannot be
        # chosen here.
        if resolve_serializer(options.get("serializer")) not in (JSONSerializer, DefaultSerializer):
            raise InvalidValue(
                "this worker reads JSON only", hint="start it with: rq worker -S json"
            )
        super().__init__(*args, **{**options, "serializer": JSONSerializer})
        for queue in self.queues:
            queue.serializer = JSONSerializer
        # set when the worker ends
        self._leaving = threading.Event()

    @contextmanager
    def _last_commands(self) -> Iterator[None]:
        """Let RQ's last commands wait only briefly, and end the thread that reads RQ's commands."""
        usual = self.connection
        self.connection = connect_again(usual, LAST_COMMANDS_S)
        try:
            yield
        finally:
            thread: Any = self.pubsub_thread
            if thread is not None:
                thread.stop()
            self.connection.connection_pool.disconnect()
            self.connection = usual

    def check_for_suspension(self, burst: bool) -> None:
        """Check as RQ does; the fast lane checks with every request instead."""
        if self._lane is None:
            super().check_for_suspension(burst)

    def heartbeat(self, timeout: int | None = None, pipeline: Any = None) -> None:
        """Send RQ's heartbeat; our own continues beside it."""
        # with a pipeline it is a part of what RQ does not do again by itself
        with excuse_outage(self._lane is not None and pipeline is None):
            super().heartbeat(timeout, pipeline=pipeline)

    def run_maintenance_tasks(self) -> None:
        """Do RQ's maintenance, put off to the next time when Redis is away."""
        with excuse_outage(self._lane is not None):
            super().run_maintenance_tasks()  # type: ignore[no-untyped-call]

    def subscribe(self) -> None:
        """Open RQ's channel for commands to workers."""
        self._leaving.clear()
        super().subscribe()  # type: ignore[no-untyped-call]

    def unsubscribe(self) -> None:
        """End the thread that reads RQ's commands; it closes its channel.

        RQ closes the channel as well. When the thread is late, both close it at once and one of
        them fails.
        """
        thread: Any = self.pubsub_thread
        if thread is None or self.pubsub is None:
            return
        # first the flag: otherwise the answer wakes the thread and it waits for the next command
        thread.stop()
        self.pubsub.unsubscribe()  # type: ignore[no-untyped-call]
        thread.join(timeout=CHANNEL_LIMIT_S)

    def _pubsub_exception_handler(
        self, exc: Exception, pubsub: PubSub, pubsub_thread: PubSubWorkerThread
    ) -> None:
        """Handle an error of the channel for RQ's commands.

        The channel reconnects by itself, and the fast lane has logged the outage. This wait is all
        that separates two tries, also while a stopping worker finishes a request.
        """
        is_outage = self._lane is not None and is_transient(exc)
        if not (is_outage or self._leaving.is_set()):
            super()._pubsub_exception_handler(exc, pubsub, pubsub_thread)
        elif self._leaving.wait(PUBSUB_RETRY_S):
            pubsub_thread.stop()

    # RQ's counts and sum in Redis, which our heartbeats write instead when there is a lane

    def increment_failed_job_count(self, pipeline: Any = None) -> None:
        """Count a failed job."""
        if self._lane is None:
            super().increment_failed_job_count(pipeline)

    def increment_successful_job_count(self, pipeline: Any = None) -> None:
        """Count a job that succeeded."""
        if self._lane is None:
            super().increment_successful_job_count(pipeline)

    def increment_total_working_time(self, job_execution_time: timedelta, pipeline: Any) -> None:
        """Add to the time that jobs ran."""
        if self._lane is None:
            super().increment_total_working_time(job_execution_time, pipeline)
