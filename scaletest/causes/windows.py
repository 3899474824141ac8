"""The time behind a step's throughput.

Of every measurement that counts, from the first completion of all workers to the last.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.causes.steps import MeasuredStep, Rows
from scaletest.model import Record
from scaletest.model.node_sample import NodeSample
from scaletest.stats.completions import Completions


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The time of one measurement on Redis's clock."""

    begin_s: float
    end_s: float
    completions: Completions
    rows: Sequence[Record]  # of the measurement
    # since when all workers run requests that count, before the first of these are completed
    at_work_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s

    def covers(self, sample: NodeSample) -> float:
        """The seconds of a sample's interval that lie in it."""
        return max(
            0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s)
        )

    def includes(self, instant_s: float) -> bool:
        """Whether an instant lies in it."""
        return self.begin_s <= instant_s <= self.end_s


def windows_of(step: MeasuredStep, records: Rows) -> list[MeasuredWindow]:
    """Return the times behind a step's throughput."""
    repeats = step.used_repeats
    windows = []
    for sample in step.samples:
        completions = sample.counted_completions
        if sample.starved:
            completions = completions.in_turn
        first_s, last_s = completions.span
        if sample.measurement.repeat not in repeats or last_s <= first_s:
            continue
        # when the last worker began its first request that counts; `first_s` where it is unknown
        began: dict[str, float] = {}
        for record in sample.counted:
            reply = record.reply
            began[reply.worker] = min(reply.started_s or first_s, began.get(reply.worker, first_s))
        rows = records.get(sample.measurement.key, ())
        at_work_s = max(began.values(), default=first_s)
        windows.append(MeasuredWindow(first_s, last_s, completions, rows, at_work_s))
    return windows
