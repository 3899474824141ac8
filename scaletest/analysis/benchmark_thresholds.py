"""Whether a run of benchmarks meets its thresholds, by the mean over repetitions at each
permutation.

PASS when the whole 95 % interval of the mean meets one, FAIL when none of it does, else INVALID. A
single repetition has no interval: its value decides, and the reason says so. Of several
permutations the worst counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.repetitions import Summary
from scaletest.analysis.thresholds import ThresholdResult, judge_interval
from scaletest.kinds.threshold import BenchmarkThreshold
from scaletest.model import VerdictKind
from scaletest.render.text import clean
from scaletest.render.units import quantity

_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)


@dataclass(frozen=True, slots=True)
class MeasuredPermutation:
    """One permutation. name: its values as text. good, failed: its benchmarks with a result, and
    without.

    summaries: by headline. absent: headlines that it cannot have, with the reason.
    """

    number: int
    name: str
    values: Mapping[str, Any]
    good: int
    failed: int
    summaries: Mapping[str, Summary]
    absent: Mapping[str, str]


def judge_thresholds(
    thresholds: Sequence[BenchmarkThreshold], permutations: Sequence[MeasuredPermutation]
) -> tuple[ThresholdResult, ...]:
    """One result a threshold."""
    results = []
    for threshold in thresholds:
        relevant = [each for each in permutations if threshold.about(each.values)]
        results.append(_worst(threshold, [_judge(threshold, each) for each in relevant]))
    return tuple(results)


def _judge(threshold: BenchmarkThreshold, measured: MeasuredPermutation) -> ThresholdResult:
    headline = threshold.headline
    name, summary = clean(measured.name, 60), measured.summaries.get(headline.name)
    if summary is None:
        why, remedy = _missing(headline.name, measured)
        return ThresholdResult(threshold.text, VerdictKind.INVALID, f"{name}: {why}", remedy)
    half = summary.half_width if summary.count > 1 else 0.0
    # nothing that is measured here is below 0
    low, high = max(0.0, summary.mean - half), summary.mean + half
    interval = "(one repetition, no interval)"
    if summary.count > 1:
        interval = f"[{quantity(low, headline.unit)}, {quantity(high, headline.unit)}]"
    return judge_interval(
        threshold.text,
        threshold.holds,
        Estimate(summary.mean, low, high),
        f"{name}: {quantity(summary.mean, headline.unit)} {interval}",
        "measure more --repetitions",
    )


def _missing(name: str, measured: MeasuredPermutation) -> tuple[str, str]:
    """Why there is no such number, and what to do about it."""
    if name in measured.absent:
        remedy = "leave the threshold out, or name the permutations that have the number"
        return measured.absent[name], remedy
    if measured.good:
        remedy = "leave the threshold out, or use another version of the tool"
        return f"the tool did not report {name}", remedy
    return "not measured", "run it to the end"


def _worst(threshold: BenchmarkThreshold, results: Sequence[ThresholdResult]) -> ThresholdResult:
    sign = -1.0
    if threshold.operator.startswith(">"):
        sign = 1.0
    return min(
        results, key=lambda result: (_ORDER.index(result.kind), sign * (result.value or 0.0))
    )
