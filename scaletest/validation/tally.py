"""Counts of the current step, updated with every record, so that reading them is cheap."""

from __future__ import annotations

import math
from collections import defaultdict

from scaletest.model import Record


class StepTally:
    """Counts and completions of one step. The load's thread calls `add`, the runner's the rest."""

    def __init__(self) -> None:
        self.completions = 0
        self.failures = 0
        self._began_s = math.inf
        self._ends: dict[str, list[float]] = defaultdict(list)

    def add(self, record: Record) -> None:
        """Count a finished request."""
        reply = record.reply
        if reply.started_s:
            self._began_s = min(self._began_s, reply.started_s - reply.wait_s)
        if record.ok:
            self._ends[reply.worker].append(reply.ended_s)
            self.completions += 1
        else:
            self.failures += 1

    def course(self) -> tuple[dict[str, list[float]], float]:
        """Sorted times of each worker's completions, and when the first request was submitted.

        Both are on Redis' clock.
        """
        return {worker: sorted(times) for worker, times in list(self._ends.items())}, self._began_s
