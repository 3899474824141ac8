"""The time behind the throughput of a step, on the clock of Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scaletest.analysis.completions import Ends, ends_of, span
from scaletest.analysis.request_time import repeats_of
from scaletest.analysis.steps import Rows, Step
from scaletest.model import Record
from scaletest.model.node_sample import NodeSample


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The time of one measurement on Redis's clock.

    ends: completions by worker; rows: the records of the measurement. at_work_s: since when all
    workers run requests that count, which is before the first of these are completed.
    """

    begin_s: float
    end_s: float
    ends: Ends
    rows: Sequence[Record]
    at_work_s: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s

    @property
    def with_first_requests(self) -> MeasuredWindow:
        """This measurement, from when all workers are at work."""
        return replace(self, begin_s=self.at_work_s)

    def covers(self, sample: NodeSample) -> float:
        """The seconds of a sample's interval that lie in it."""
        return max(
            0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s)
        )

    def includes(self, instant_s: float) -> bool:
        """Whether an instant lies in it."""
        return self.begin_s <= instant_s <= self.end_s


def windows_of(step: Step, records: Rows) -> list[MeasuredWindow]:
    """The times behind a step's throughput."""
    repeats = repeats_of(step)
    windows = []
    for sample in step.samples:
        ends = ends_of(sample.counted)
        first_s, last_s = span(ends)
        if sample.measurement.repeat in repeats and last_s > first_s:
            rows = records.get(sample.measurement.key, ())
            at_work_s = min(first_s, _at_work_s(sample.counted, first_s))
            windows.append(MeasuredWindow(first_s, last_s, ends, rows, at_work_s))
    return windows


def _at_work_s(counted: Sequence[Record], first_s: float) -> float:
    """When the last worker began its first request that counts; `first_s` where that is unknown."""
    began: dict[str, float] = {}
    for record in counted:
        reply = record.reply
        began[reply.worker] = min(reply.started_s or first_s, began.get(reply.worker, first_s))
    return max(began.values(), default=first_s)
