"""Queues as people, KEDA and Prometheus see them: snapshot, last minute, and needed workers.

A reader reads all queues from Redis, and remembers how many workers each needed during the last
window.

Queues that Redis lost are declared again. While a queue has no workers nobody else declares it, and
without it nothing can be submitted that makes an autoscaler start a worker. Existing queues are not
changed.
"""

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.broker import Queues
from scaletest.broker.connection import prepare_connection
from scaletest.broker.reaping import Watcher
from scaletest.broker.redis_errors import explain_redis_errors
from scaletest.broker.samples import latest_samples
from scaletest.broker.snapshot import QueueSnapshot, read_snapshot
from scaletest.model import NodeSample, checks, wire
from scaletest.model.desired_workers import (
    History,
    QueueDemand,
    Targets,
    desired_workers,
    wanted_workers,
)
from scaletest.model.record import Outcome
from scaletest.model.time_slots import RecentWindow, window_until

logger = logging.getLogger("scaletest.exporter")

# A scrape that takes longer is of no use: Prometheus gives up after 10 s, a probe after fewer.
SOCKET_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue with its last minute and the workers that it needs."""

    queue: QueueSnapshot
    window: RecentWindow
    wanted: int  # workers that it needs at this moment, without the highest need of the window
    desired: int  # workers that it needs
    nodes: tuple[NodeSample, ...] = ()  # latest samples of its workers' nodes

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON. Durations in seconds; null is unknown."""
        queue, window = self.queue, self.window
        return {
            "schema_version": wire.SCHEMA_VERSION,
            "name": queue.name,
            "waiting": queue.waiting,
            "running": queue.running,
            "demand": queue.waiting + queue.running,
            "desired_workers": self.desired,
            "oldest_waiting_s": queue.longest_wait_s,
            "workers": queue.states,
            "paused": queue.paused,
            "maximum": queue.maximum,
            "note": queue.note,
            "submitted_per_s": window.submitted_per_s,
            "mean_run_s": window.mean_run_s,
            "max_wait_s": window.max_wait_s,
            "max_run_s": window.max_run_s,
            "max_total_s": window.max_total_s,
            "submitted": queue.counter("submitted"),
            **{str(outcome): queue.counter(outcome) for outcome in Outcome},
            "abandoned": queue.abandoned,
            "requeued": queue.counter("requeued"),
            "rejected": queue.counter("rejected"),
        }


@dataclass(frozen=True, slots=True)
class ExporterView:
    """All queues of a Redis."""

    at_s: float  # Redis server time
    read_s: float  # seconds that reading them took
    clients: int
    queues: tuple[QueueView, ...]
    unreadable: tuple[tuple[str, str], ...] = ()  # the queues that are left out, and why
    pages: int = 1  # number of calls that read them; with 1 all are of the same instant


class ViewReader:
    """Reads all queues; safe for several threads.

    Redis may be away at first; a wrong URL raises InvalidValue immediately.
    """

    def __init__(
        self,
        url: str,
        targets: Targets,
        *,
        interval_s: float = 5.0,
        max_attempts: int = 3,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.targets = targets
        self._url = url
        self._clock = clock
        self._redis = prepare_connection(url, socket_timeout_s=SOCKET_TIMEOUT_S)
        self._watcher = Watcher(self._redis, interval_s, max_attempts)
        self._histories: dict[str, History] = {}
        self._lock = threading.Lock()

    def read(self) -> ExporterView:
        """Read all queues at this moment. Raises Unreachable."""
        began = time.perf_counter()
        with explain_redis_errors(self._url):
            everything = read_snapshot(self._redis)
            samples = latest_samples(
                self._redis, {queue.name: len(queue.nodes) for queue in everything.queues}
            )
        read_s = time.perf_counter() - began
        views, window_s = [], self.targets.window_s
        with self._lock:
            histories: dict[str, History] = {}
            for queue in everything.queues:
                window = window_until(queue.slots, queue.at_s, window_s)
                demand = QueueDemand(
                    queue.waiting, queue.running, window.submitted_per_s, window.mean_run_s
                )
                need, now = wanted_workers(demand, self.targets), self._clock()
                # The need before the first reading is unknown, so the present workers stand for it.
                # A restart of the exporter then never removes workers. HPA does the same with its
                # first recommendation.
                before = self._histories.get(queue.name) or ((now, len(queue.workers)),)
                number, histories[queue.name] = desired_workers(now, need, before, window_s)
                views.append(
                    QueueView(queue, window, need, number, tuple(samples.get(queue.name, ())))
                )
            self._histories = histories
        return ExporterView(
            everything.at_s,
            read_s,
            everything.clients,
            tuple(views),
            everything.unreadable,
            everything.pages,
        )

    def reap(self) -> None:
        """Give back the requests of dead workers, on every queue. Raises Unreachable."""
        with explain_redis_errors(self._url):
            self._watcher.tick()


class Redeclare:
    """Declares missing queues; called with every view.

    queues: name, maximum (0: unlimited) and note of each; raises InvalidValue for a wrong one.
    """

    def __init__(self, url: str, queues: Sequence[tuple[str, int, str]]) -> None:
        for name, maximum, _ in queues:
            checks.queue_name(name)
            checks.count(maximum, "maximum")
        self._url, self._rows = url, queues
        self._queues = Queues(prepare_connection(url, socket_timeout_s=SOCKET_TIMEOUT_S))

    def __call__(self, view: ExporterView) -> None:
        """Declare missing queues. Raises Unreachable."""
        known = {queue.queue.name for queue in view.queues} | {name for name, _ in view.unreadable}
        for name, maximum, note in self._rows:
            if name not in known:
                with explain_redis_errors(self._url):
                    self._queues.add(name, maximum, note)
                logger.warning("queue %s was missing and is declared again", name)
