"""The number of workers with the highest throughput, N* = sqrt((1 - a) / b), or why there is none.

A peak that was measured, by a throughput that certainly fell after it, is reported whatever the
laws say. A fitted one is named only when the interval of the coherency b excludes 0, marked as
extrapolated when it lies beyond the largest number of workers tested, and refused beyond twice
that: a curve says little about numbers so far beyond its points.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.estimate import finite, within
from scaletest.analysis.law import Law
from scaletest.analysis.law_interval import LawInterval
from scaletest.analysis.scaling import MeasuredThroughput, usable

_FARTHEST = 2.0


@dataclass(frozen=True, slots=True)
class Peak:
    """Where throughput is highest.

    workers: None when refused; reason: how it was determined, or why it was refused. low, high: its
    95 % interval when fitted (high may be infinite), the steps that enclose it when measured.
    """

    workers: float | None
    low: float | None
    high: float | None
    extrapolated: bool
    measured: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        document = asdict(self)
        if self.high is not None:
            document["high"] = finite(self.high)
        return document


def find_peak(
    measured: Sequence[MeasuredThroughput], law: Law | None, interval: LawInterval | None
) -> Peak:
    """The peak of a run: fitted when law and data agree on it, else measured, else refused.

    measured: one throughput for every number of workers. law, interval: the chosen law, None
    without one.
    """
    rows = usable(measured)
    measured_peak = _measured(rows)
    most = max((step.workers for step in rows), default=0)
    fitted = _fitted(law, interval, float(most))
    if measured_peak and (fitted.workers is None or fitted.extrapolated):
        return measured_peak
    return fitted


def _fitted(law: Law | None, interval: LawInterval | None, most: float) -> Peak:
    if law is None:
        return _refused("no law was chosen")
    if interval is None or interval.coherency is None or interval.peak is None:
        return _refused(f"throughput never falls by the {law.name} law")
    if interval.coherency.low <= 0 or law.peak is None:
        return _refused("the interval of the coherency includes 0: it may never fall")
    if law.peak > _FARTHEST * most:
        return _refused(f"it lies beyond twice the {most:g} workers tested")
    beyond = law.peak > most
    reason = "fitted within the range tested"
    if beyond:
        reason = f"extrapolated: at most {most:g} workers were tested"
    return Peak(law.peak, interval.peak.low, interval.peak.high, beyond, False, reason)


def _measured(rows: Sequence[MeasuredThroughput]) -> Peak | None:
    """The step with the highest throughput, when a later one is certainly lower.

    The nearest steps that are certainly lower enclose it.
    """
    if not rows:
        return None
    best = max(rows, key=lambda step: step.per_s)
    lower = [step for step in rows if _certainly_below(step, best)]
    after = next((step.workers for step in lower if step.workers > best.workers), None)
    if after is None:
        return None
    before = [step.workers for step in lower if step.workers < best.workers]
    reason = f"measured: {after} workers do less than {best.workers}"
    low = rows[0].workers
    if before:
        low = before[-1]
    return Peak(best.workers, low, after, False, True, reason)


def _certainly_below(step: MeasuredThroughput, best: MeasuredThroughput) -> bool:
    return within(step.per_s / best.per_s, math.hypot(step.relative, best.relative)).high < 1


def _refused(reason: str) -> Peak:
    return Peak(None, None, None, False, False, reason)
