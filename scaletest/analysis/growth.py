"""Growth of throughput with the workers: law, intervals, peak, knees and serial fraction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.doubling import StepPart, judged
from scaletest.analysis.knee import Knee, knees
from scaletest.analysis.law import Choice, Point, choose
from scaletest.analysis.law_coefficients import coefficients
from scaletest.analysis.law_interval import Chance, LawInterval, law_interval
from scaletest.analysis.law_requirements import MissingPoints, lacking
from scaletest.analysis.peak import Peak, find_peak
from scaletest.analysis.scaling import MeasuredThroughput, Scaled, scaling
from scaletest.analysis.serial_fraction import SerialTrend, serial_trend
from scaletest.analysis.steps import Step
from scaletest.analysis.student_t import t95

_NORMAL = t95(1e9)
# Steps of one run differ by this relative standard deviation for reasons that no interval within a
# step can show.
UNSEEN = 0.01
# Seed of the bootstrap; fixed, so that a stored run always gets the same verdict.
SEED = 1


@dataclass(frozen=True, slots=True)
class Growth:
    """How throughput grows.

    choice: the law, None where there are too few steps for two laws; lacking: the points that the
    other laws need. coefficients: (low, value, high) of contention and coherency, also where
    another law was chosen.
    """

    choice: Choice | None
    interval: LawInterval | None
    lacking: dict[str, MissingPoints]
    peak: Peak
    knees: tuple[Knee, ...]
    scaling: list[Scaled]
    serial: SerialTrend
    coefficients: dict[str, tuple[float, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        law = None
        if self.choice:
            law = {**self.choice.to_dict(), "intervals": None}
            if self.interval:
                law["intervals"] = self.interval.to_dict()
        return {
            "law": law,
            "lacking": {name: lack.remedy for name, lack in self.lacking.items()},
            "peak": self.peak.to_dict(),
            "knees": [knee.to_dict() for knee in self.knees],
            "scaling": [step.to_dict() for step in self.scaling],
            "serial_fraction": self.serial.to_dict(),
        }


def growth(steps: Sequence[Step], chance: Chance) -> Growth:
    """Fit all steps with enough requests together. chance: for the bootstrap, seeded by the caller.

    Repeats are points of their own and show the noise themselves. Single measurements bring it as
    the width of their interval, and so do the two of a mirrored step, whose difference may come
    from the machine. In a run that compares numbers of workers per device, throughput is a function
    of these.
    """
    enough = [step for step in steps if step.throughput.enough]
    rates = [
        MeasuredThroughput(step.level, step.throughput.per_s, step.throughput.relative)
        for step in enough
    ]
    points, widths = _points(enough)
    spreads = None
    if len(points) == len(enough) or any(step.mirrored for step in enough):
        spreads = [max(UNSEEN, width / _NORMAL) for width in widths]
    choice = choose(points, spreads)
    law, interval = None, None
    if choice:
        law = choice.law
        relative = None
        if spreads:
            relative = [spread * _NORMAL for spread in spreads]
        interval = law_interval(law, points, chance, relative=relative)
    return Growth(
        choice=choice,
        interval=interval,
        lacking=lacking([workers for workers, _ in points]),
        peak=find_peak(rates, law, interval),
        knees=knees(rates),
        scaling=scaling(rates),
        serial=serial_trend(rates),
        coefficients=coefficients(points, chance, spreads),
    )


def _points(steps: Sequence[Step]) -> tuple[list[Point], list[float]]:
    """Points (workers, requests/s) for a law, and the relative half-width of each."""
    points, widths = [], []
    for step in steps:
        parts: Sequence[StepPart] = step.parts
        if step.mirrored:
            parts = judged(parts)
        for part in parts:
            points.append((float(step.level), part.throughput.per_s))
            widths.append(part.throughput.relative)
    return points, widths
