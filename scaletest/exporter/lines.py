"""One log line a queue and period, for people without a Prometheus (--log-interval)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from scaletest.analysis.window import over
from scaletest.exporter.view import QueueView, View
from scaletest.model.checks import cut

logger = logging.getLogger("scaletest.exporter")

COUNTED = ("succeeded", "failed", "timed_out", "rejected", "requeued")


class Lines:
    """Called with every view; logs when a period is over. Counts are of the period, maxima of its ten-second slots."""

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._due: float | None = None
        self._before: dict[str, dict[str, int]] = {}

    def __call__(self, view: View) -> None:
        now = self._clock()
        if self._due is None:
            self._due = now + self._interval_s
        elif now >= self._due:
            self._due = now + self._interval_s
            for row in view.queues:
                logger.info("%s", self._line(row, view.at_s))
        else:
            return
        self._before = {row.queue.name: _counts(row) for row in view.queues}

    def _line(self, row: QueueView, at_s: float) -> str:
        before = self._before.get(row.queue.name, {})
        counts = {name: max(0, value - before.get(name, 0)) for name, value in _counts(row).items()}
        told = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts.items())
        window = over(row.queue.slots, at_s, self._interval_s)
        where = ""
        if window.pod or window.node:
            where = f" (pod {cut(window.pod, 100) or 'unknown'} on {cut(window.node, 100) or 'unknown'})"
        return (
            f"queue {row.queue.name}: {told} in {self._interval_s:g} s; {row.queue.waiting} waiting, "
            f"{row.queue.running} running, workers {len(row.queue.workers)}, wanted {row.desired}; longest wait "
            f"{window.max_wait_s:.3g} s, run {window.max_run_s:.3g} s{where}, total {window.max_total_s:.3g} s"
        )


def _counts(row: QueueView) -> dict[str, int]:
    return {**{name: row.counter(name) for name in COUNTED}, "abandoned": row.abandoned}
