"""Read all queues from Redis, and remember how many workers each needed during the last window."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from scaletest.analysis.desired_workers import History, QueueDemand, Targets, desired, wanted
from scaletest.analysis.recent_window import over
from scaletest.broker.connection import explained, prepare
from scaletest.broker.reaper import Watcher
from scaletest.broker.samples import latest
from scaletest.broker.snapshot import QueueSnapshot, snapshot
from scaletest.exporter.view import ExporterView, QueueView
from scaletest.model import NodeSample

# A scrape that takes longer is of no use: Prometheus gives up after 10 s, a probe after fewer.
SOCKET_TIMEOUT_S = 5.0


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
        self._redis = prepare(url, socket_timeout_s=SOCKET_TIMEOUT_S)
        self._watcher = Watcher(self._redis, interval_s, max_attempts)
        self._histories: dict[str, History] = {}
        self._lock = threading.Lock()

    def read(self) -> ExporterView:
        """All queues at this moment. Raises Unreachable."""
        began = time.perf_counter()
        with explained(self._url):
            everything = snapshot(self._redis)
            nodes = {queue.name: _number_of_nodes(queue) for queue in everything.queues}
            samples = latest(self._redis, nodes)
        read_s = time.perf_counter() - began
        with self._lock:
            queues = tuple(
                self._view(queue, samples.get(queue.name, [])) for queue in everything.queues
            )
            known = {queue.name for queue in everything.queues}
            self._histories = {
                name: history for name, history in self._histories.items() if name in known
            }
        return ExporterView(
            everything.at_s,
            read_s,
            everything.clients,
            queues,
            everything.unreadable,
            everything.pages,
        )

    def reap(self) -> None:
        """Give back the requests of dead workers, on every queue. Raises Unreachable."""
        with explained(self._url):
            self._watcher.tick()

    def _view(self, queue: QueueSnapshot, samples: list[NodeSample]) -> QueueView:
        window = over(queue.slots, queue.at_s, self.targets.window_s)
        demand = QueueDemand(
            queue.waiting, queue.running, window.submitted_per_s, window.mean_run_s
        )
        need, now = wanted(demand, self.targets), self._clock()
        # The need before the first reading is unknown, so the present workers stand for it. A
        # restart of the exporter then never removes workers. HPA does the same with its first
        # recommendation.
        before = self._histories.get(queue.name) or ((now, len(queue.workers)),)
        number, self._histories[queue.name] = desired(now, need, before, self.targets.window_s)
        return QueueView(queue, window, need, number, tuple(samples))


def _number_of_nodes(queue: QueueSnapshot) -> int:
    return len({worker.node for worker in queue.workers if worker.node})
