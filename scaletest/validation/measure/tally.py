"""What a step has done so far: its counts and completions, and its state in a line."""

import math
from collections import defaultdict

from scaletest.model import Record
from scaletest.render.numbers import format_percent, format_significant, plural
from scaletest.stats.completions import Completions
from scaletest.validation.judging.throughput import Throughput


class StepTally:
    """Counts and completions of one step, updated with every record, so that reading is cheap.

    The load's thread calls `add`, the runner's the rest.
    """

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

    def read(self) -> tuple[Completions, float]:
        """Return the completions, and when the first request was submitted on Redis' clock."""
        # a copy of the items, since another thread may add a worker meanwhile
        ends = {worker: sorted(ended_s) for worker, ended_s in list(self._ends.items())}
        return Completions(ends), self._began_s


def progress_line(
    workers: int,
    tally: StepTally,
    passed_s: float,
    longest_s: float,
    rate: Throughput | None,
) -> str:
    """Return the state of a step.

    passed_s, longest_s: how long it lasts, and may last. rate: the throughput at the last check of
    its stopping rule, if there is one.
    """
    done = f"{tally.completions} done"
    if rate:
        done += f", {format_significant(rate.per_s, 4)}/s ± {format_percent(rate.relative)}"
    if tally.failures:
        done += f", {tally.failures} failed"
    duration = f"{passed_s:.0f} s of {longest_s:.0f} s at most"
    return f"{plural(workers, 'worker')}: measuring, {done}, {duration}"
