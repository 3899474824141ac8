"""Queues as people, KEDA and Prometheus see them: snapshot, last minute, and needed workers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scaletest.analysis.recent_window import RecentWindow
from scaletest.broker.snapshot import QueueSnapshot
from scaletest.model import NodeSample, wire
from scaletest.model.reply import Outcome

STATES = ("idle", "busy", "suspect")


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue. desired: workers that it needs. wanted: workers that it needs at this moment,
    without the highest need of the window.

    nodes: latest samples of its workers' nodes.
    """

    queue: QueueSnapshot
    window: RecentWindow
    wanted: int
    desired: int
    nodes: tuple[NodeSample, ...] = ()

    def counter(self, name: str) -> int:
        """A counter of docs/reference/redis.md; 0 when nothing was counted yet."""
        return self.queue.counters.get(name, 0)

    @property
    def abandoned(self) -> int:
        """Requests whose client was gone: dropped before they ran, or without receiver."""
        return self.counter("client_gone") + self.counter("undelivered")

    @property
    def oldest_waiting_s(self) -> float | None:
        """Age of the oldest waiting request in seconds: 0 without any, None when unknown."""
        return self.queue.oldest_waiting_s if self.queue.waiting else 0.0

    @property
    def workers(self) -> dict[str, int]:
        """Live workers by state; each worker has one state."""
        counts = dict.fromkeys(STATES, 0)
        for worker in self.queue.workers:
            if worker.suspect:
                counts["suspect"] += 1
            elif worker.busy:
                counts["busy"] += 1
            else:
                counts["idle"] += 1
        return counts

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
            "oldest_waiting_s": self.oldest_waiting_s,
            "workers": self.workers,
            "paused": queue.paused,
            "maximum": queue.maximum,
            "note": queue.note,
            "submitted_per_s": window.submitted_per_s,
            "mean_run_s": window.mean_run_s,
            "max_wait_s": window.max_wait_s,
            "max_run_s": window.max_run_s,
            "max_total_s": window.max_total_s,
            "submitted": self.counter("submitted"),
            **{str(outcome): self.counter(outcome) for outcome in Outcome},
            "abandoned": self.abandoned,
            "requeued": self.counter("requeued"),
            "rejected": self.counter("rejected"),
        }


@dataclass(frozen=True, slots=True)
class ExporterView:
    """All queues at `at_s`, Redis server time. read_s: seconds that reading them took.

    pages: number of calls that read them; with 1 all are of the same instant.
    unreadable: names of the queues that are left out, and why.
    """

    at_s: float
    read_s: float
    clients: int
    queues: tuple[QueueView, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    pages: int = 1
