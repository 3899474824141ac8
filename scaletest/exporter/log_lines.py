"""One log line per queue and period, for people without Prometheus (--log-interval)."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from scaletest.analysis.recent_window import over, reach_s
from scaletest.exporter.view import ExporterView, QueueView
from scaletest.model.checks import cut
from scaletest.model.digits import short
from scaletest.model.time_slots import LONGEST_WINDOW_S
from scaletest.render import numbers

logger = logging.getLogger("scaletest.exporter")

COUNTED = ("succeeded", "failed", "timed_out", "rejected", "requeued")


class LogLines:
    """Logs a line for every queue when an interval is over; call it with every view.

    Counts cover the time since the last line. The longest durations come from Redis' ten-second
    slots, which may reach back further; the line says how far.
    """

    def __init__(self, interval_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_s = interval_s
        self._clock = clock
        self._due: float | None = None
        self._last = 0.0
        self._before: dict[str, dict[str, int]] = {}

    def due_in_s(self) -> float:
        """Seconds until the next lines need a view; infinite before the first view."""
        return math.inf if self._due is None else (self._due - self._clock()) % self._interval_s

    def __call__(self, view: ExporterView) -> None:
        """Log the lines if they are due. Counts begin with the first view."""
        now = self._clock()
        if self._due is not None:
            if now < self._due:
                return
            for queue in view.queues:
                logger.info("%s", self._line(queue, view.at_s, now - self._last))
        self._due = self._next(now)
        self._last = now
        self._before = {queue.queue.name: _counts(queue) for queue in view.queues}

    def _next(self, now: float) -> float:
        """When the next lines are due: a multiple of the interval, however late this view was."""
        due = now if self._due is None else self._due
        return due + self._interval_s * (math.floor((now - due) / self._interval_s) + 1)

    def _line(self, view: QueueView, at_s: float, period_s: float) -> str:
        before = self._before.get(view.queue.name, {})
        counts = {
            name: max(0, count - before.get(name, 0)) for name, count in _counts(view).items()
        }
        counted = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
        window_s = min(period_s, LONGEST_WINDOW_S)
        reached_s = math.ceil(reach_s(at_s, window_s))
        window = over(view.queue.slots, at_s, window_s)
        where = ""
        if window.pod or window.node:
            where = (
                f" (pod {cut(window.pod, 100) or 'unknown'} on"
                f" {cut(window.node, 100) or 'unknown'})"
            )
        longest = f"wait {short(window.max_wait_s)} s, run {short(window.max_run_s)} s{where}"
        return (
            f"queue {view.queue.name}: {counted} in {numbers.seconds(period_s)};"
            f" {view.queue.waiting} waiting, {view.queue.running} running, workers"
            f" {len(view.queue.workers)}, wanted {view.desired}; longest of the last {reached_s} s:"
            f" {longest}, total {short(window.max_total_s)} s"
        )


def _counts(view: QueueView) -> dict[str, int]:
    return {**{name: view.counter(name) for name in COUNTED}, "abandoned": view.abandoned}
