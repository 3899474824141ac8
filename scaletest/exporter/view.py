"""A queue as people, KEDA and Prometheus see it: its snapshot, its last minute, and the workers it needs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.recent_window import RecentWindow
from scaletest.broker.snapshot import QueueSnapshot
from scaletest.model import NodeSample, wire
from scaletest.model.reply import Outcome

STATES = ("idle", "busy", "suspect")


@dataclass(frozen=True, slots=True)
class QueueView:
    """desired: workers that the queue needs. wanted: the same at this moment, without waiting for the window.

    nodes: what the nodes of its workers do now, as far as somebody samples them.
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
        """Requests whose client had gone: dropped before they ran, or run with nobody to take the reply."""
        return self.counter("client_gone") + self.counter("undelivered")

    @property
    def oldest_waiting_s(self) -> float | None:
        """Age of the oldest waiting request in seconds: 0 when none waits, None when it cannot be known."""
        return self.queue.oldest_waiting_s if self.queue.waiting else 0.0

    @property
    def workers(self) -> dict[str, int]:
        """Living workers by state; the states add up to all of them."""
        states = Counter("suspect" if w.suspect else "busy" if w.busy else "idle" for w in self.queue.workers)
        return {state: states[state] for state in STATES}

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
class View:
    """All queues from `at_s` on, Redis server time. read_s: what reading them took, in seconds.

    pages: in how many calls they were read; with 1 they are of one instant.
    unreadable: names of the queues that are left out, and why.
    """

    at_s: float
    read_s: float
    clients: int
    queues: tuple[QueueView, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    pages: int = 1
