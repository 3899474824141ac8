"""Whether a run of benchmarks meets its thresholds, by the mean over repetitions at each
permutation.

PASS when the whole 95 % interval of the mean meets one, FAIL when none of it does, else INVALID. A
single repetition has no interval: its value decides, and the reason says so. Of several
permutations the worst counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scaletest.analysis.repetitions import Summary
from scaletest.analysis.thresholds import ThresholdResult
from scaletest.kinds.threshold import BenchmarkThreshold
from scaletest.model import VerdictKind
from scaletest.render.text import clean
from scaletest.render.units import quantity

_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)


@dataclass(frozen=True, slots=True)
class Measured:
    """One permutation. name: its values as text. good: its benchmarks with a result.

    summaries: by headline. absent: headlines that it cannot have, with the reason.
    """

    name: str
    values: Mapping[str, object]
    summaries: Mapping[str, Summary]
    good: int
    absent: Mapping[str, str]


def judged(
    thresholds: Sequence[BenchmarkThreshold], rows: Sequence[Measured]
) -> tuple[ThresholdResult, ...]:
    """One result a threshold."""
    return tuple(
        _worst(one, [_judge(one, row) for row in rows if one.about(row.values)])
        for one in thresholds
    )


def _judge(one: BenchmarkThreshold, row: Measured) -> ThresholdResult:
    name, found = clean(row.name, 60), row.summaries.get(one.headline.name)
    if found is None:
        why, remedy = _missing(one.headline.name, row)
        return ThresholdResult(one.text, VerdictKind.INVALID, f"{name}: {why}", remedy)
    half = found.half_width if found.count > 1 else 0.0
    # nothing that is measured here is below 0
    low, high = max(0.0, found.mean - half), found.mean + half
    ends = [one.holds(end) for end in (low, found.mean, high)]
    kind, remedy = VerdictKind.INVALID, "measure more --repetitions"
    if all(ends):
        kind, remedy = VerdictKind.PASS, ""
    elif not any(ends):
        kind, remedy = VerdictKind.FAIL, "find what limits it there, or set another threshold"
    mean, *shown = (quantity(value, one.headline.unit) for value in (found.mean, low, high))
    interval = f"[{shown[0]}, {shown[1]}]" if found.count > 1 else "(one repetition, no interval)"
    return ThresholdResult(
        one.text, kind, f"{name}: {mean} {interval}", remedy, value=found.mean, low=low, high=high
    )


def _missing(name: str, row: Measured) -> tuple[str, str]:
    """Why there is no such number, and what to do about it."""
    if name in row.absent:
        return row.absent[
            name
        ], "leave the threshold out, or name the permutations that have the number"
    if row.good:
        return (
            f"the tool did not report {name}",
            "leave the threshold out, or use another version of the tool",
        )
    return "not measured", "run it to the end"


def _worst(one: BenchmarkThreshold, results: Sequence[ThresholdResult]) -> ThresholdResult:
    sign = 1.0 if one.operator.startswith(">") else -1.0
    return min(
        results, key=lambda result: (_ORDER.index(result.kind), sign * (result.value or 0.0))
    )
