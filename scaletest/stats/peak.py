"""The number of workers with the highest throughput, N* = sqrt((1 - a) / b), or why there is none.

A peak that was measured, by a throughput that certainly fell after it, is reported whatever the
laws say. A fitted one is named only when the interval of the coherency b excludes 0, marked as
extrapolated when it lies beyond the largest number of workers tested, and refused beyond twice
that: a curve says little about numbers so far beyond its points.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model.declared import Unbounded
from scaletest.model.writing import Written
from scaletest.stats.law import Law
from scaletest.stats.law_interval import LawInterval
from scaletest.stats.scaling import MeasuredThroughput, throughput_ratio

# A peak beyond so many times the workers tested is refused.
_FARTHEST = 2.0


@dataclass(frozen=True, slots=True)
class Peak(Written):
    """Where throughput is highest."""

    workers: Annotated[float | None, "where throughput is highest; null when unknown"]
    low: Annotated[
        float | None,
        "its 95 % interval when fitted (high may be infinite), the steps that enclose it when "
        "measured.",
    ]
    high: Annotated[
        Unbounded | None,
        "its 95 % interval when fitted (high may be infinite), the steps that enclose it when "
        "measured.",
    ]
    extrapolated: Annotated[bool, "whether it is beyond the measured steps"]
    measured: Annotated[bool, "whether it was measured, not fitted"]
    reason: Annotated[str, "how it was determined, or why it was refused."]


def find_peak(
    rows: Sequence[MeasuredThroughput], law: Law | None, interval: LawInterval | None
) -> Peak:
    """Return the peak of a run: fitted when law and data agree on it, else measured, else refused.

    rows: steps with a throughput, by workers, ascending. law, interval: of the chosen law, None
    without one.
    """
    fitted = _fitted_peak(law, interval, float(max((step.workers for step in rows), default=0)))
    if not rows or not (fitted.workers is None or fitted.extrapolated):
        return fitted
    # the step with the highest throughput was the peak when a later one is certainly lower; the
    # nearest steps that are certainly lower enclose it
    best = max(rows, key=lambda step: step.per_s)
    lower = [step.workers for step in rows if throughput_ratio(step, best).high < 1]
    next_lower = next((workers for workers in lower if workers > best.workers), None)
    if next_lower is None:
        return fitted
    lower_before = [workers for workers in lower if workers < best.workers]
    return Peak(
        best.workers,
        low=lower_before[-1] if lower_before else rows[0].workers,
        high=next_lower,
        extrapolated=False,
        measured=True,
        reason=f"measured: {next_lower} workers do less than {best.workers}",
    )


def _fitted_peak(law: Law | None, interval: LawInterval | None, most_workers: float) -> Peak:
    """Return the peak of the law, refused where law and data do not agree on one."""
    if law is None:
        return _refuse("no law was chosen")
    if interval is None or interval.coherency is None or interval.peak is None:
        return _refuse(f"throughput never falls by the {law.name} law")
    if interval.coherency.low <= 0 or law.peak is None:
        return _refuse("the interval of the coherency includes 0: it may never fall")
    if law.peak > _FARTHEST * most_workers:
        return _refuse(f"it would be beyond twice the {most_workers:g} workers tested")
    is_extrapolated = law.peak > most_workers
    reason = "fitted within the range tested"
    if is_extrapolated:
        reason = f"extrapolated: at most {most_workers:g} workers were tested"
    return Peak(
        law.peak,
        low=interval.peak.low,
        high=interval.peak.high,
        extrapolated=is_extrapolated,
        measured=False,
        reason=reason,
    )


def _refuse(reason: str) -> Peak:
    """Return that there is no peak to tell, and why."""
    return Peak(None, None, None, extrapolated=False, measured=False, reason=reason)
