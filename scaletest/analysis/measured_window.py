"""The time behind the throughput of a step, on the clock of Redis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.analysis.completions import Ends, ends_of, span
from scaletest.analysis.request_time import repeats_of
from scaletest.analysis.steps import Rows, Step
from scaletest.model import Record
from scaletest.model.node_sample import NodeSample


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """The time of one measurement on Redis's clock.

    ends: completions by worker; rows: the records of the measurement.
    """

    begin_s: float
    end_s: float
    ends: Ends
    rows: Sequence[Record]

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end_s - self.begin_s

    def covers(self, sample: NodeSample) -> float:
        """The seconds of a sample's interval that lie in it."""
        return max(
            0.0, min(self.end_s, sample.at_s) - max(self.begin_s, sample.at_s - sample.interval_s)
        )


def windows_of(step: Step, records: Rows) -> list[MeasuredWindow]:
    """The times behind a step's throughput."""
    repeats = repeats_of(step)
    windows = []
    for sample in step.samples:
        ends = ends_of(sample.counted)
        first_s, last_s = span(ends)
        if sample.measurement.repeat in repeats and last_s > first_s:
            windows.append(
                MeasuredWindow(first_s, last_s, ends, records.get(sample.measurement.key, ()))
            )
    return windows
