"""Slow down a worker whose requests fail at once.

Such a worker attracts load, because it is always free. After FAILURES quick failures in a row it
waits before it takes the next request, twice as long each time, and is suspect until one succeeds.
Pure: no clock, no Redis; the worker acts on what it reads here.
"""

from scaletest.model import Outcome, Reason
from scaletest_workers.workloads.base import Result

FAILURES_TO_SUSPECT = 5
# Seconds that it waits at first, and at most.
FIRST_DELAY_S = 0.1
LONGEST_DELAY_S = 5.0
# A longer failure keeps the worker as busy as work would, so it attracts no requests.
QUICK_FAILURE_S = 1.0
# Reasons that a broken worker or device causes; a broken request (its limit, its data) says nothing
# about the worker.
_WORKER_REASONS = {Reason.EXIT, Reason.SIGNAL, Reason.NO_BINARY, Reason.NO_DEVICE}


class Breaker:
    """Counts quick failures in a row."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def suspect(self) -> bool:
        """Whether an operator should check this worker."""
        return self._failures >= FAILURES_TO_SUSPECT

    @property
    def delay_s(self) -> float:
        """Seconds to wait before the next request; 0 for a worker that is not suspect."""
        if not self.suspect:
            return 0.0
        return float(
            min(LONGEST_DELAY_S, FIRST_DELAY_S * 2 ** min(16, self._failures - FAILURES_TO_SUSPECT))
        )

    def note(self, result: Result, run_s: float) -> bool:
        """Record how a run ended; return whether `suspect` changed."""
        before = self.suspect
        if result.outcome is Outcome.SUCCEEDED:
            self._failures = 0
        elif result.reason in _WORKER_REASONS and run_s < QUICK_FAILURE_S:
            self._failures += 1
        return self.suspect != before
