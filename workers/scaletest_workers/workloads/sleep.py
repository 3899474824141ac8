"""Sleep: the workload without contention, which shows the capacity of the framework."""

import math
from dataclasses import replace

from scaletest.model import Outcome, Reason, State
from scaletest.model.checks import MAX_TIME_LIMIT_S, cut_text
from scaletest_workers.devices import ChosenDevice
from scaletest_workers.workloads.base import (
    SUCCEEDED,
    Interrupted,
    Result,
    ServedWorkload,
    WorkloadSetup,
    timed_out_result,
)

# The time of shorter requests is not split into states: splitting would be a part of it.
SHORTEST_S = 0.01


class Sleep(ServedWorkload):
    """Sleeps for the seconds in its first argument, the worker's if given, else the request's."""

    def __init__(self, setup: WorkloadSetup) -> None:
        self._setup = setup

    def run(
        self, arguments: tuple[str, ...], limit_s: float, device: ChosenDevice | None
    ) -> Result:
        """Sleep; timed out after `limit_s` when that is shorter."""
        arguments = self._setup.options or arguments
        try:
            seconds = float(arguments[0]) if arguments else math.nan
        except ValueError:
            seconds = math.nan
        if not 0 <= seconds <= MAX_TIME_LIMIT_S:
            shown = cut_text(arguments[0], 80) if arguments else "nothing"
            return Result(
                Outcome.FAILED,
                Reason.EXIT,
                error=f"sleep needs seconds from 0 to 30 days, not {shown!r}",
            )
        if 0 < limit_s < seconds:
            self._wait(limit_s)
            return timed_out_result(limit_s)
        if self._setup.sampler is None or seconds < SHORTEST_S:
            self._wait(seconds)
            return SUCCEEDED
        watch = self._setup.sampler.begin()
        self._wait(seconds)
        return replace(SUCCEEDED, activity=watch.close_own(State.SLEEP))

    def _wait(self, seconds: float) -> None:
        if seconds and self._setup.interrupt.wait(seconds):
            raise Interrupted
