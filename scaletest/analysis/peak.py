"""The number of workers at which throughput is highest, N* = sqrt((1 - a) / b), or why none is named.

A peak that was measured, by a throughput that certainly fell after it, is reported whatever the laws say. A fitted one
is named only when the interval of the coherency b excludes 0, marked as extrapolated when it lies beyond the largest
number of workers tested, and refused beyond twice that: a curve says little about what is so far outside of it.
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
    """workers: where throughput is highest, None when refused; reason: how it was found, or why it was refused.

    low, high: its 95 % interval when fitted (high may be infinite), the steps that enclose it when measured.
    """

    workers: float | None
    low: float | None
    high: float | None
    extrapolated: bool
    measured: bool
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"high": finite(self.high) if self.high is not None else None}


def find_peak(measured: Sequence[MeasuredThroughput], law: Law | None, interval: LawInterval | None) -> Peak:
    """The peak of a run: fitted when law and data agree on where it is, else measured, else refused with the reason.

    measured: one row for every number of workers. law, interval: the law that was chosen, None when none was.
    """
    rows = usable(measured)
    seen = _measured(rows)
    fitted = _fitted(law, interval, float(rows[-1].workers) if rows else 0.0)
    if seen and (fitted.workers is None or fitted.extrapolated):
        return seen
    return fitted


def _fitted(law: Law | None, interval: LawInterval | None, most: float) -> Peak:
    if law is None or interval is None or interval.coherency is None or interval.peak is None:
        return _refused("no law was chosen" if law is None else f"throughput never falls by the {law.name} law")
    if interval.coherency.low <= 0 or law.peak is None:
        return _refused("the interval of the coherency includes 0: it may never fall")
    if law.peak > _FARTHEST * most:
        return _refused(f"it lies beyond twice the {most:g} workers tested")
    beyond = law.peak > most
    reason = f"extrapolated: at most {most:g} workers were tested" if beyond else "fitted within the range tested"
    return Peak(law.peak, interval.peak.low, interval.peak.high, beyond, False, reason)


def _measured(rows: Sequence[MeasuredThroughput]) -> Peak | None:
    """The step with the highest throughput, when a later one is certainly lower; the nearest such ones enclose it."""
    if not rows:
        return None
    best = max(rows, key=lambda row: row.per_s)
    lower = [row for row in rows if _certainly_below(row, best)]
    after = next((row.workers for row in lower if row.workers > best.workers), None)
    if after is None:
        return None
    before = [row.workers for row in lower if row.workers < best.workers]
    reason = f"measured: {after} workers do less than {best.workers}"
    return Peak(best.workers, before[-1] if before else rows[0].workers, after, False, True, reason)


def _certainly_below(row: MeasuredThroughput, best: MeasuredThroughput) -> bool:
    return within(row.per_s / best.per_s, math.hypot(row.relative, best.relative)).high < 1


def _refused(reason: str) -> Peak:
    return Peak(None, None, None, False, False, reason)
