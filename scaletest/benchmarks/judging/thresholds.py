"""Judge the thresholds of a run by the mean over repetitions at each permutation.

A threshold is met when the whole 95 % interval of the mean meets it, missed when none of it does,
else undecided. A single repetition has no interval: its value decides, and the reason says so. Of
several permutations the worst counts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from scaletest.benchmarks.plan import place_of
from scaletest.model.declared import INNER, called
from scaletest.model.threshold import Threshold
from scaletest.model.writing import Written
from scaletest.render.text import clean
from scaletest.stats.estimate import exactly
from scaletest.stats.repetitions import Summary
from scaletest.stats.thresholds import Measured, ThresholdResult, judge


@dataclass(frozen=True, slots=True)
class MeasuredPermutation(Written):
    """One permutation, with the summaries of its repetitions."""

    number: Annotated[int, INNER]
    name: Annotated[str, INNER, "its values as text"]
    values: Mapping[str, Any]
    succeeded: Annotated[int, "its benchmarks with a result"]
    failed: Annotated[int, "its benchmarks without a result"]
    summaries: Annotated[Mapping[str, Summary], called("headlines")]
    absent: Annotated[Mapping[str, str], INNER, "headlines that it cannot have, with the reason"]


def judge_thresholds(
    thresholds: Sequence[Threshold], permutations: Sequence[MeasuredPermutation]
) -> tuple[ThresholdResult, ...]:
    """Return one result a threshold."""
    results = []
    for threshold in thresholds:
        numbers = [
            _number_at(permutation, threshold.measure)
            for permutation in permutations
            if threshold.about(place_of(permutation.values))
        ]
        results.append(judge(threshold, numbers))
    return tuple(results)


def _number_at(permutation: MeasuredPermutation, name: str) -> Measured:
    """Return a number of a permutation, or why there is none and what to do about it."""
    place, summary = clean(permutation.name, 60), permutation.summaries.get(name)
    remedy = "measure more <repetitions>"
    if summary is not None and summary.count > 1:
        return Measured(summary.estimate, remedy=remedy, place=place)
    if summary is not None:
        return Measured(
            exactly(summary.mean),
            remedy=remedy,
            place=place,
            remark=" (one repetition, no interval)",
        )
    reason, remedy = "not measured", "run it to the end"
    if name in permutation.absent:
        reason = permutation.absent[name]
        remedy = "leave the threshold out, or name the permutations that have the number"
    elif permutation.succeeded:
        reason = f"the tool did not report {name}"
        remedy = "leave the threshold out, or use another version of the tool"
    return Measured(None, reason, remedy, place=place)
