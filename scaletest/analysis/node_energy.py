"""The measured time of a step on the clock of Redis, and the energy that devices used in it."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.analysis.request_time import repeats_of
from scaletest.analysis.steps import Rows, Step
from scaletest.analysis.throughput import Ends, ends_of, progress, span
from scaletest.model import Record
from scaletest.model.declared import Written, called
from scaletest.model.measurement import DEVICE, NodeSample


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


ENERGY_J = "energy_j"


@dataclass(frozen=True, slots=True)
class Energy(Written):
    """Energy that a device used in a step, by the difference of its counter."""

    joules: Annotated[float, "the difference of the device's counter"]
    seconds: Annotated[float, "between its two readings"]
    requests: Annotated[float, "of the whole step in these seconds, with fractions"]
    source: Annotated[str, "where the counter was read"]
    idle_w: Annotated[float | None, "power before the first request"] = None

    @property
    def per_request_j(self) -> Annotated[float, called("joules_per_request")]:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests

    @property
    def power_w(self) -> Annotated[float, "the mean, from the counter"]:
        """The mean power, from the counter."""
        return self.joules / self.seconds


def energies(
    node: str, samples: Sequence[NodeSample], windows: Sequence[MeasuredWindow], first_s: float
) -> tuple[dict[str, Energy], list[str]]:
    """The energy of every device with a counter, and a warning for each unusable counter."""
    by_name: dict[str, Energy] = {}
    warnings: list[str] = []
    for name in sorted(_devices_with_counter(samples)):
        readings = list(_readings(samples, f"{DEVICE}:{name}"))
        parts = [_readings_inside(readings, window) for window in windows]
        if any(_odd(part) for part in parts):
            warnings.append(
                f"the energy counter of {name} on {node} was reset, or its source changed: no"
                " joules are reported"
            )
            continue
        measured = zip(parts, windows, strict=True)
        pairs = [(part[0], part[-1], window) for part, window in measured if len(part) > 1]
        requests = math.fsum(
            sum(progress(window.ends, (first.at_s, last.at_s))) for first, last, window in pairs
        )
        if requests > 0:
            joules = math.fsum(last.joules - first.joules for first, last, _ in pairs)
            seconds = math.fsum(last.at_s - first.at_s for first, last, _ in pairs)
            idle_w = _idle_w(samples, name, first_s)
            by_name[name] = Energy(joules, seconds, requests, pairs[0][0].source, idle_w)
    return by_name, warnings


@dataclass(frozen=True, slots=True)
class _Reading:
    """A counter of energy at one time."""

    at_s: float
    joules: float
    source: str


def _readings(samples: Iterable[NodeSample], resource: str) -> Iterator[_Reading]:
    for sample in samples:
        joules = sample.value(resource, ENERGY_J)
        if joules is not None:
            yield _Reading(sample.at_s, joules, sample.sources.get(resource, ""))


def _readings_inside(readings: Iterable[_Reading], window: MeasuredWindow) -> list[_Reading]:
    return [reading for reading in readings if window.includes(reading.at_s)]


def _devices_with_counter(samples: Iterable[NodeSample]) -> set[str]:
    """The names of the devices with an energy counter."""
    names: set[str] = set()
    for sample in samples:
        devices = sample.of_kind(DEVICE).items()
        names.update(name for name, figures in devices if ENERGY_J in figures)
    return names


def _odd(readings: Sequence[_Reading]) -> bool:
    """Whether the difference of the first and the last reading is not the energy used."""
    return any(
        after.joules < before.joules or after.source != before.source
        for before, after in itertools.pairwise(readings)
    )


def _idle_w(samples: Sequence[NodeSample], device: str, first_s: float) -> float | None:
    """The power of a device before the first request, in W; None where unknown.

    By its energy counter, else by its reading of power.
    """
    resource = f"{DEVICE}:{device}"
    before = [sample for sample in samples if sample.at_s <= first_s]
    readings = list(_readings(before, resource))
    if len(readings) > 1 and readings[-1].at_s > readings[0].at_s and not _odd(readings):
        return (readings[-1].joules - readings[0].joules) / (readings[-1].at_s - readings[0].at_s)
    read = [sample.value(resource, "power") for sample in before]
    power = [watts for watts in read if watts is not None]
    return statistics.fmean(power) if power else None
