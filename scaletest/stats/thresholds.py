"""The judgement of thresholds, by one rule for every type of run.

A threshold is PASS when the whole interval of its measure meets it, FAIL when none of it does, else
INVALID. Of several places that it is about, the worst counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from scaletest.model import VerdictKind
from scaletest.model.declared import Positive, Unbounded, choice
from scaletest.model.texts import short_number
from scaletest.model.threshold import Threshold
from scaletest.model.verdict import JUDGEMENTS
from scaletest.model.writing import Written
from scaletest.render.numbers import format_quantity
from scaletest.stats.estimate import Estimate
from scaletest.stats.verdict_order import Ground, Rank

# The worst first; among equals the first step counts.
_ORDER = (VerdictKind.FAIL, VerdictKind.INVALID, VerdictKind.PASS)
# The rule that ends a step looks at throughput alone, so a larger --max-step would not help.
_LONGER = "measure longer, with <step_time> or a smaller <precision>, or more often, with <repeats>"
# Remedy for a bound that is refuted.
LIMITED = "find what limits it there, or set another threshold"
# Base units whose values choose their own prefix, whatever the unit of the bound.
PREFIXED = ("bit/s", "B/s", "B")
# A narrow interval is shown with up to so many digits more than usual.
_MORE_DIGITS = 3
# The kind of the results that make a ground of a rank, and how texts call them.
_KINDS = {
    Rank.REFUTED: (VerdictKind.FAIL, "not met"),
    Rank.OPEN: (VerdictKind.INVALID, "undecided"),
}


@dataclass(frozen=True, slots=True)
class ThresholdResult(Written):
    """The judgement of one threshold, with the measured value in base units and its interval."""

    text: Annotated[str, "e.g. efficiency(8)>=0.8"]
    kind: Annotated[VerdictKind, choice(JUDGEMENTS)]
    reason: Annotated[str, "what was measured, in the threshold's unit"]
    remedy: Annotated[str, "what to do"] = ""
    workers: Annotated[Positive | None, "step that decided it, of a validation"] = None
    value: Annotated[Unbounded | None, "in base units"] = None
    low: Annotated[Unbounded | None, "of its interval"] = None
    high: Annotated[Unbounded | None, "None when there are no data."] = None


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured at one place that a threshold is about, or why nothing was."""

    estimate: Estimate | None
    missing: str = ""  # why there is no estimate
    remedy: str = _LONGER  # what to do about a missing estimate, or an undecided threshold
    refuted: str = LIMITED  # what to do about a refuted threshold
    place: str = ""  # in words, "" where it goes without saying
    workers: int | None = None  # the step; None for another place
    remark: str = ""  # what must be known of the estimate


def judge_threshold(threshold: Threshold, places: Sequence[Measured]) -> ThresholdResult:
    """Judge a threshold at all the places that it is about; the worst of them counts."""
    sign = 1.0 if threshold.operator.startswith(">") else -1.0
    return min(
        (_judge_place(threshold, measured) for measured in places),
        key=lambda result: (_ORDER.index(result.kind), sign * (result.value or 0.0)),
    )


def _judge_place(threshold: Threshold, measured: Measured) -> ThresholdResult:
    """Return PASS where all of the interval meets it, FAIL where none of it does, else INVALID."""
    estimate = measured.estimate
    place = f"{measured.place}: " if measured.place else ""
    if estimate is None:
        return ThresholdResult(
            str(threshold),
            VerdictKind.INVALID,
            reason=place + measured.missing,
            remedy=measured.remedy,
            workers=measured.workers,
        )
    holds = [threshold.holds(end) for end in (estimate.low, estimate.value, estimate.high)]
    if all(holds):
        kind, remedy = VerdictKind.PASS, ""
    elif any(holds):
        kind, remedy = VerdictKind.INVALID, measured.remedy
    else:
        kind, remedy = VerdictKind.FAIL, measured.refuted
    return ThresholdResult(
        str(threshold),
        kind,
        reason=place + _value_text(threshold, estimate) + measured.remark,
        remedy=remedy,
        workers=measured.workers,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
    )


def _value_text(threshold: Threshold, estimate: Estimate) -> str:
    """Write the value in the threshold's unit, and its interval when it has one.

    They have so many digits that they can be told apart, or the usual ones where nothing helps.
    """
    is_prefixed = threshold.base in PREFIXED
    numbers = (estimate.value, estimate.low, estimate.high)
    # the row with the fewest digits in which different numbers look different
    rows = []
    for more_digits in range(_MORE_DIGITS + 1):
        if is_prefixed:
            rows.append([format_quantity(end, threshold.base, 4 + more_digits) for end in numbers])
        else:
            rows.append([short_number(end / threshold.factor, 3 + more_digits) for end in numbers])
    value, low, high = next((row for row in rows if len(set(row)) == len(set(numbers))), rows[0])
    unit = f" {threshold.unit}" if threshold.unit and not is_prefixed else ""
    if math.isinf(estimate.high):
        interval = f" [{low}, unknown]" if estimate.low > 0 else ", interval unknown"
        return f"{value}{unit}{interval}"
    return f"{value}{unit}" if low == high else f"{value}{unit} [{low}, {high}]"


def ground_of(results: Sequence[ThresholdResult], rank: Rank) -> Ground | None:
    """Return the ground that thresholds of this rank, refuted or open, give; None without any."""
    kind, outcome = _KINDS[rank]
    relevant = [result for result in results if result.kind is kind]
    if not relevant:
        return None
    example = relevant[0]
    count = f"{len(relevant)} of {len(results)} thresholds {outcome}"
    return Ground(rank, f"{count}: {example.text}: {example.reason}", example.remedy)
