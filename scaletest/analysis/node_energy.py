"""The energy that devices used in a step, by their counters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.completions import progress
from scaletest.analysis.measured_window import MeasuredWindow
from scaletest.model.node_sample import DEVICE, NodeSample

ENERGY_J = "energy_j"


@dataclass(frozen=True, slots=True)
class Energy:
    """Energy that a device used in a step, by the difference of its counter.

    seconds: between the first and the last reading; requests: of the whole step in that time, with
    fractions. source: where the counter was read. idle_w: the device's power before the first
    request; None where it is unknown.
    """

    joules: float
    seconds: float
    requests: float
    source: str
    idle_w: float | None = None

    @property
    def per_request_j(self) -> float:
        """Joules that the device used for each request of the step."""
        return self.joules / self.requests

    @property
    def power_w(self) -> float:
        """The mean power, from the counter."""
        return self.joules / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "joules": self.joules,
            "seconds": self.seconds,
            "requests": self.requests,
            "joules_per_request": self.per_request_j,
            "power_w": self.power_w,
            "idle_w": self.idle_w,
            "source": self.source,
        }


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
    return [reading for reading in readings if window.begin_s <= reading.at_s <= window.end_s]


def _devices_with_counter(samples: Iterable[NodeSample]) -> set[str]:
    """The names of the devices with an energy counter."""
    names: set[str] = set()
    for sample in samples:
        devices = sample.of_kind(DEVICE)
        names.update(name for name, figures in devices.items() if ENERGY_J in figures)
    return names


def _odd(readings: Sequence[_Reading]) -> bool:
    """Whether the difference of the first and the last reading is not the energy used."""
    pairs = list(itertools.pairwise(readings))
    return any(
        after.joules < before.joules or after.source != before.source for before, after in pairs
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
    if power:
        return math.fsum(power) / len(power)
    return None
