"""Counts and completions of the step that is being measured, and the line that shows them."""

import math
from collections import defaultdict

from scaletest.model import Record
from scaletest.render.numbers import percent, plural, significant
from scaletest.stats.completions import Completions
from scaletest.validation.judging.throughput import Throughput


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

    def course(self) -> tuple[Completions, float]:
        """Return the completions, and when the first request was submitted on Redis' clock."""
        times = {worker: sorted(own) for worker, own in list(self._ends.items())}
        return Completions(times), self._began_s


def progress_line(
    workers: int,
    tally: StepTally,
    passed_s: float,
    longest_s: float,
    rate: Throughput | None,
) -> str:
    """The state of a step. rate: throughput at its last evaluation, if there is one."""
    seen = f", {significant(rate.per_s, 4)}/s ± {percent(rate.relative)}" if rate else ""
    failed = f", {tally.failures} failed" if tally.failures else ""
    time_used = f"{passed_s:.0f} s of {longest_s:.0f} s at most"
    done = f"{tally.completions} done{seen}{failed}"
    return f"{plural(workers, 'worker')}: measuring, {done}, {time_used}"
