"""Read the queues as people, KEDA and Prometheus see them: now, in the last minute, and in need."""

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

# A scrape that takes longer is of no use: Prometheus gives up after 10 s, a probe earlier.
SOCKET_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue with its last minute and the workers that it needs."""

    queue: QueueSnapshot
    window: RecentWindow
    wanted: int  # workers that it needs at this moment
    desired: int  # the highest need of the window, for autoscalers
    nodes: tuple[NodeSample, ...] = ()  # latest samples of its workers' nodes

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: durations in seconds, None for what is unknown."""
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
    """All queues of a Redis at one moment, with what reading them took."""

    at_s: float  # Redis server time
    read_s: float  # seconds that reading them took
    clients: int
    queues: tuple[QueueView, ...]
    unreadable: tuple[tuple[str, str], ...] = ()  # the names that are left out, and why


class ViewReader:
    """Reads all queues, and remembers how many workers each needed during the last window.

    Any thread may use it. Redis may be away at first; a wrong URL raises InvalidValue immediately.
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
            snapshot = read_snapshot(self._redis)
            samples = latest_samples(
                self._redis, {queue.name: len(queue.nodes) for queue in snapshot.queues}
            )
        read_s = time.perf_counter() - began
        views = []
        window_s = self.targets.window_s
        with self._lock:
            # of the queues that there are: those of deleted ones are forgotten
            histories: dict[str, History] = {}
            for queue in snapshot.queues:
                window = window_until(queue.slots, queue.at_s, window_s)
                demand = QueueDemand(
                    queue.waiting, queue.running, window.submitted_per_s, window.mean_run_s
                )
                wanted = wanted_workers(demand, self.targets)
                now_s = self._clock()
                # The need before the first reading is unknown, so the present workers stand for it.
                # A restart of the exporter then never removes workers. HPA does the same with its
                # first recommendation.
                history = self._histories.get(queue.name) or ((now_s, len(queue.workers)),)
                desired, histories[queue.name] = desired_workers(now_s, wanted, history, window_s)
                views.append(
                    QueueView(queue, window, wanted, desired, tuple(samples.get(queue.name, ())))
                )
            self._histories = histories
        return ExporterView(
            at_s=snapshot.at_s,
            read_s=read_s,
            clients=snapshot.clients,
            queues=tuple(views),
            unreadable=snapshot.unreadable,
        )

    def reap(self) -> None:
        """Give back the requests of dead workers, on every queue. Raises Unreachable."""
        with explain_redis_errors(self._url):
            self._watcher.tick()


def make_redeclare(
    url: str, queues: Sequence[tuple[str, int, str]]
) -> Callable[[ExporterView], None]:
    """Return what declares queues again that Redis lost, to be called with every view.

    While a queue has no workers only this declares it, and without it nothing can be submitted
    that makes an autoscaler start a worker. Existing queues are not changed. The function raises
    Unreachable.

    queues: name, maximum (0: unlimited) and note of each; raises InvalidValue for a wrong one.
    """
    for name, maximum, _ in queues:
        checks.queue_name(name)
        checks.count(maximum, "maximum")
    declared_queues = Queues(prepare_connection(url, socket_timeout_s=SOCKET_TIMEOUT_S))

    def redeclare(view: ExporterView) -> None:
        known = {queue.queue.name for queue in view.queues}
        known |= {name for name, _ in view.unreadable}
        for name, maximum, note in queues:
            if name not in known:
                with explain_redis_errors(url):
                    declared_queues.add(name, maximum, note)
                logger.warning("queue %s was missing and is declared again", name)

    return redeclare
