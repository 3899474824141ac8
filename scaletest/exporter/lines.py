"""One log line a queue and period, for people without a Prometheus (--log-interval)."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from scaletest.analysis.recent_window import over, reach_s
from scaletest.exporter.view import QueueView, View
from scaletest.model.checks import cut
from scaletest.model.digits import short
from scaletest.model.slots import LONGEST_WINDOW_S
from scaletest.render import numbers

logger = logging.getLogger("scaletest.exporter")

COUNTED = ("succeeded", "failed", "timed_out", "rejected", "requeued")


class Lines:
    """Logs a line for every queue when an interval is over; call it with every view, and with one when they are due.

    Counts are of the time since the last line. The longest durations are of Redis' ten-second slots, which may reach
    back further: the line says how far.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._due: float | None = None
        self._last = 0.0
        self._before: dict[str, dict[str, int]] = {}

    def due_in_s(self) -> float:
        """Seconds until a view is wanted for the next lines; where the last ones are late, until the next beat."""
        return math.inf if self._due is None else (self._due - self._clock()) % self._interval_s

    def __call__(self, view: View) -> None:
        """Log the lines if they are due. The first view is only what the counts begin from."""
        now = self._clock()
        if self._due is not None:
            if now < self._due:
                return
            for row in view.queues:
                logger.info("%s", self._line(row, view.at_s, now - self._last))
        self._due = self._next(now)
        self._last = now
        self._before = {row.queue.name: _counts(row) for row in view.queues}

    def _next(self, now: float) -> float:
        """Lines keep their beat however late a view was; what was missed is left out."""
        due = now if self._due is None else self._due
        return due + self._interval_s * (math.floor((now - due) / self._interval_s) + 1)

    def _line(self, row: QueueView, at_s: float, period_s: float) -> str:
        before = self._before.get(row.queue.name, {})
        counts = {name: max(0, value - before.get(name, 0)) for name, value in _counts(row).items()}
        told = ", ".join(f"{value} {name.replace('_', ' ')}" for name, value in counts.items())
        window_s = min(period_s, LONGEST_WINDOW_S)
        reached_s = math.ceil(reach_s(at_s, window_s))
        window = over(row.queue.slots, at_s, window_s)
        where = ""
        if window.pod or window.node:
            where = f" (pod {cut(window.pod, 100) or 'unknown'} on {cut(window.node, 100) or 'unknown'})"
        return (
            f"queue {row.queue.name}: {told} in {numbers.seconds(period_s)}; {row.queue.waiting} waiting, "
            f"{row.queue.running} running, workers {len(row.queue.workers)}, wanted {row.desired}; longest of the last "
            f"{reached_s} s: wait {short(window.max_wait_s)} s, run {short(window.max_run_s)} s{where}, total "
            f"{short(window.max_total_s)} s"
        )


def _counts(row: QueueView) -> dict[str, int]:
    return {**{name: row.counter(name) for name in COUNTED}, "abandoned": row.abandoned}
