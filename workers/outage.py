"""How RQ's own loop survives a Redis outage: what RQ does beside its jobs is put off instead of
ending the worker.

This is right only for what RQ repeats anyway. What a job itself tells Redis is never put off here:
the fast lane and the runner of RQ's jobs retry it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from redis.client import PubSubWorkerThread
from rq import SimpleWorker

from scaletest.broker.connection import transient, twin
from scaletest.broker.fast_lane import FastLane

PUBSUB_RETRY_S = 2.0
# How long a stopping worker waits for the thread that reads RQ's commands.
CHANNEL_S = 1.0
# How long RQ's last commands may wait for an answer. What they would remove expires with the
# worker's deadline too.
LAST_COMMANDS_S = 5.0
LAST_COMMANDS_SILENT_S = 2.0


class OutageGuard:
    """Decides which errors of RQ's own code a worker survives.

    active: whether the fast lane is open; only then it knows that Redis is away, and retries.
    leaving: set when the worker ends.
    """

    def __init__(self) -> None:
        self.active = False
        self.leaving = threading.Event()

    @contextmanager
    def excuse(self, repeated: bool = True) -> Iterator[None]:
        """Drop transient errors while active. repeated: whether RQ does this again by itself, else
        keep them.
        """
        try:
            yield
        except Exception as error:
            if not (self.active and repeated and transient(error)):
                raise

    def handle_channel_error(self, error: Exception, thread: PubSubWorkerThread) -> bool:
        """Handle an error of the channel for RQ's commands; False when RQ's own handler must do so.

        The channel reconnects by itself, and the fast lane has logged the outage. This wait is all
        that separates two tries, also while a stopping worker finishes a request.
        """
        if not self.leaving.is_set() and (not self.active or not transient(error)):
            return False
        if self.leaving.wait(PUBSUB_RETRY_S):
            thread.stop()
        return True


def end_commands(thread: Any, pubsub: Any) -> None:
    """End the thread that reads RQ's commands; it closes its channel.

    RQ closes the channel as well. When the thread is late, both close it at once and one of them
    fails.
    """
    if thread is None or pubsub is None:
        return
    # first the flag: otherwise the answer wakes the thread and it waits for the next command
    thread.stop()
    pubsub.unsubscribe()
    thread.join(timeout=CHANNEL_S)


@contextmanager
def last_commands(worker: SimpleWorker, lane: FastLane | None) -> Iterator[None]:
    """Let a stopping worker's last RQ commands wait only briefly, if it had a lane; end its thread
    for commands.
    """
    usual = worker.connection
    if lane is not None:
        # more briefly when Redis has not answered the lane's last call
        worker.connection = twin(
            usual, LAST_COMMANDS_SILENT_S if lane.in_doubt else LAST_COMMANDS_S
        )
    try:
        yield
    finally:
        thread: Any = worker.pubsub_thread
        if thread is not None:
            thread.stop()
        if lane is not None:
            worker.connection.connection_pool.disconnect()
            worker.connection = usual
