"""How throughput grows with the workers, and what stops it: law, intervals, peak, knees, serial fraction, in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.doubling import judged
from scaletest.analysis.knee import Knee, knees
from scaletest.analysis.law import Choice, choose
from scaletest.analysis.law_coefficients import coefficients
from scaletest.analysis.law_interval import Chance, LawInterval, law_interval
from scaletest.analysis.law_requirements import MissingPoints, lacking
from scaletest.analysis.peak import Peak, find_peak
from scaletest.analysis.scaling import MeasuredThroughput, Scaled, scaling
from scaletest.analysis.serial_fraction import SerialTrend, serial_trend
from scaletest.analysis.steps import Step
from scaletest.analysis.student_t import t95

_NORMAL = t95(1e9)
# Steps of one run differ by so much for reasons that no interval within a step can see (standard deviation, relative).
UNSEEN = 0.01
# For the bootstrap; fixed, so that a stored run is always judged alike.
SEED = 1


@dataclass(frozen=True, slots=True)
class Growth:
    """choice: the law, None where there are too few steps for two of them; lacking: what the missing ones need.

    coefficients: (low, value, high) of contention and coherency, also where another law was chosen.
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
            law = {**self.choice.to_dict(), "intervals": self.interval.to_dict() if self.interval else None}
        return {
            "law": law,
            "lacking": {name: lack.remedy for name, lack in self.lacking.items()},
            "peak": self.peak.to_dict(),
            "knees": [knee.to_dict() for knee in self.knees],
            "scaling": [row.to_dict() for row in self.scaling],
            "serial_fraction": self.serial.to_dict(),
        }


def growth(steps: Sequence[Step], chance: Chance) -> Growth:
    """What the steps with throughput enough say together. chance: for the bootstrap, seeded by the caller.

    Repeats are points of their own and tell the noise themselves. Single measurings bring it as the width of their
    interval, and so do the two of a mirrored step, whose difference may be the machine's. In a run that compares
    numbers of workers per device, throughput is a function of these.
    """
    enough = [step for step in steps if step.throughput.enough]
    rows = [MeasuredThroughput(step.level, step.throughput.per_s, step.throughput.relative) for step in enough]
    parts = [(step, part) for step in enough for part in (judged(step.parts) if step.mirrored else step.parts)]
    points = [(float(step.level), part.throughput.per_s) for step, part in parts]
    single = len(points) == len(enough) or any(step.mirrored for step in enough)
    spreads = [max(UNSEEN, part.throughput.relative / _NORMAL) for _, part in parts] if single else None
    choice = choose(points, spreads)
    relative = [spread * _NORMAL for spread in spreads] if spreads else None
    interval = law_interval(choice.law, points, chance, relative=relative) if choice else None
    return Growth(
        choice=choice,
        interval=interval,
        lacking=lacking([workers for workers, _ in points]),
        peak=find_peak(rows, choice.law if choice else None, interval),
        knees=knees(rows),
        scaling=scaling(rows),
        serial=serial_trend(rows),
        coefficients=coefficients(points, chance, spreads),
    )
