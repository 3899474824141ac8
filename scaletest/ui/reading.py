"""Reads Redis for the pages, once a second for everybody who asks.

Redis may be away at first and at any time: a page then says so, and reads again when it is asked
again. While Redis hangs few requests wait for it, so that other pages and probes are answered.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from flask import current_app

from scaletest.broker.connection import prepare_connection
from scaletest.broker.failures import FailedRequest, last_failures
from scaletest.broker.redis_errors import explain_redis_errors
from scaletest.broker.samples import latest_samples
from scaletest.broker.snapshot import QueueSnapshot, RqState, Snapshot, read_rq_state, read_snapshot
from scaletest.model import NodeSample
from scaletest.pages.turns import ReadingTurns, SharedCopy
from scaletest.runs.run_index import Signature

# How long a copy is shared.
COPY_S = 1.0
# How long others wait for whoever reads it.
WAIT_S = 1.0

T = TypeVar("T")


class PageCache:
    """The last pages that were made, for everybody who asks.

    Only one is made at a time, since that takes long.
    """

    def __init__(self) -> None:
        # stamps, page, and until when it is not made again
        self._pages: OrderedDict[object, tuple[Signature, Any, float]] = OrderedDict()
        self._lock = threading.Lock()

    def page(
        self, key: object, stamps: Signature, make: Callable[[], T], *, rest_factor: float = 0.0
    ) -> T:
        """Return the page that was made of files with these stamps, else make it anew.

        rest_factor: how long an old page stands in for a new one, as a multiple of the processor
        time that it took to make.
        """
        with self._lock:
            kept = self._pages.pop(key, None)
            if kept is None or (kept[0] != stamps and time.monotonic() >= kept[2]):
                began_s = time.thread_time()
                page = make()
                # not the time that passed: a process of low priority mostly waits
                used_s = time.thread_time() - began_s
                kept = stamps, page, time.monotonic() + rest_factor * used_s
            self._pages[key] = kept
            while len(self._pages) > 16:
                self._pages.popitem(last=False)
            return cast(T, kept[1])


@dataclass(frozen=True, slots=True)
class Reading:
    """All queues of a Redis at about one time."""

    snapshot: Snapshot
    samples: dict[str, list[NodeSample]]  # the last ones of each queue's nodes
    rq: RqState

    def queue(self, name: str) -> QueueSnapshot | None:
        """Return the declared queue of this name; None for an unknown or unreadable one."""
        return next((queue for queue in self.snapshot.queues if queue.name == name), None)


class QueueReader:
    """Reads a Redis; safe for several threads. A wrong URL raises InvalidValue at once."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        # shorter than the timeout of a probe
        self._redis = prepare_connection(url, socket_timeout_s=2.0)
        self._copy = SharedCopy(self._read, COPY_S, wait_s=WAIT_S, clock=clock)
        self._turns = ReadingTurns()

    def read(self) -> Reading:
        """Read all queues, at most COPY_S seconds ago. Raises Unreachable."""
        with self._turns.take():
            return self._copy.get()

    def failures(self, queue: str) -> list[FailedRequest]:
        """Read the last failures of a queue, newest first. Raises Unreachable."""
        with self._turns.take(), explain_redis_errors(self._url):
            return last_failures(self._redis, queue)

    def _read(self) -> Reading:
        with explain_redis_errors(self._url):
            snapshot = read_snapshot(self._redis)
            nodes = {queue.name: len(queue.nodes) for queue in snapshot.queues}
            samples = latest_samples(self._redis, nodes)
            return Reading(snapshot, samples, read_rq_state(self._redis, list(nodes)))


def reader() -> Any:
    """Return the application's QueueReader, or a test's in its place; None without a Redis."""
    return current_app.extensions.get("queues")
