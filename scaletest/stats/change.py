"""Changes of measures from a base run to a candidate, and which of them go beyond chance.

A measure that both runs have gives the ratio of candidate over base with a 95 % interval, built on
the logarithm. Where a measure was repeated on both sides, the repeats are the units (Kalibera and
Jones 2013) and Welch's t gives the interval. Else it comes from the intervals of the two measures;
those of single runs do not hold what differs from run to run, which may be all that is seen. A
median of eight or more durations on both sides is tested by ranks (Mann and Whitney) instead of by
its interval. Durations below the resolution of their clock count as that.

A measure is a regression when it differs beyond chance and is worse by more than the tolerance, and
an improvement likewise. It is equivalent when the whole interval lies within the tolerance, and not
worse when only its worse end does. The tolerance t spans 1 - t to 1 / (1 - t), so that exchanging
the runs gives the mirrored answer.

"Beyond chance" is asked of all measures and of all candidates together by Holm's procedure (1979)
at 5 %, whatever they have to do with each other: of equal runs, no more than one comparison in
twenty has anything flagged. The measures that decide are one family, so that they lose nothing to
the many others, which are another one and decide nothing. Equivalence needs no such correction,
since every measure must show it.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated

from scaletest.model.declared import INNER, flat, named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.estimate import Estimate, estimate_within
from scaletest.stats.measure import Measure
from scaletest.stats.rank_test import RankTest, mann_whitney
from scaletest.stats.student import t95, t_quantile, welch_freedom

# The error of all comparisons of a family together.
FAMILY_ERROR = 0.05
# With at least so many repeats on both sides, these are the units.
FEWEST_REPEATS = 2


class Change(StrEnum):
    """How a measure changed; CHANGED is one of which neither more nor less is better."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGED = "changed"
    EQUIVALENT = "equivalent"
    NOT_WORSE = "not worse"
    UNDECIDED = "undecided"


FLAGGED = (Change.REGRESSION, Change.IMPROVEMENT, Change.CHANGED)


@dataclass(frozen=True, slots=True)
class LogEstimate:
    """The logarithm of a measure, or of candidate over base, with its error."""

    value: float
    error: float  # standard error
    freedom: float  # degrees of freedom behind the error
    ranks: RankTest | None = None  # where there is one, it decides instead of the interval

    @property
    def estimate(self) -> Estimate:
        """The measure or ratio itself, with its 95 % interval."""
        return estimate_within(math.exp(self.value), self._half_width(0.975))

    def is_beyond_chance(self, level: float) -> bool:
        """Test for a change at this level of error: by ranks, else by the two-sided t test."""
        if self.ranks:
            return self.ranks.p <= level
        return abs(self.value) > self._half_width(1 - level / 2)

    def _half_width(self, p: float) -> float:
        """Return how far the p-quantile lies from the logarithm."""
        # an infinite quantile of no error is none
        return t_quantile(p, self.freedom) * self.error if self.error else 0.0


@dataclass(frozen=True, slots=True)
class MeasureChange(Written):
    """A measure that both runs have, and how it changed."""

    base: Annotated[Measure, flat("measure", "where", "unit", "decides"), "the measure of the base"]
    candidate: Annotated[Measure, INNER]
    change: Annotated[
        Change, "regression, improvement, changed, equivalent, not worse or undecided"
    ]
    ratio: Annotated[Estimate | None, "candidate over base, with its 95 % interval"]
    ranks: Annotated[RankTest | None, "whether the candidate's values tend to be larger."]
    significant: Annotated[bool, "whether it differs beyond chance, all considered (Holm)"]
    repeated: Annotated[
        bool,
        named_in_documents("between_repeats"),
        "whether the interval covers the variation between repeats, not that within the runs",
    ]
    reason: Annotated[str, "why nothing was decided"] = ""

    @property
    def text(self) -> str:
        """The measure and its ratio in words."""
        if self.ratio is None:
            return self.base.text
        return f"{self.base.text} {ratio_text(self.ratio)}"

    @property
    def base_estimate(
        self,
    ) -> Annotated[Estimate, named_in_documents("base"), "the measure of the base"]:
        """The measure of the base with its interval."""
        return self.base.estimate

    @property
    def candidate_estimate(
        self,
    ) -> Annotated[Estimate, named_in_documents("candidate"), "the measure of the candidate"]:
        """The measure of the candidate with its interval."""
        return self.candidate.estimate


def ratio_text(ratio: Estimate) -> str:
    """Write a ratio with its interval."""
    return f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def changes_of(pairs: Sequence[tuple[Measure, Measure]], tolerance: float) -> list[MeasureChange]:
    """Return the changes of all pairs of base and candidate.

    Each of the two families of measures, those that decide and the others, has its error once.
    """
    tests: dict[int, LogEstimate] = {}  # by the index of the pair
    for index, (base, candidate) in enumerate(pairs):
        ratio = _log_ratio(base, candidate)
        ranks = None
        if base.is_median and not _is_repeated(base, candidate):
            ranks = mann_whitney(candidate.samples, base.samples)
        # a difference without any spread cannot be tested
        if ratio is not None and (ratio.error or ranks or not ratio.value):
            tests[index] = replace(ratio, ranks=ranks)
    deciding = {index: test for index, test in tests.items() if pairs[index][0].decides}
    others = {index: test for index, test in tests.items() if index not in deciding}
    significant = holm(deciding) | holm(others)
    return [
        _judge_change(
            *pair, tests.get(index), is_significant=index in significant, tolerance=tolerance
        )
        for index, pair in enumerate(pairs)
    ]


def holm(tests: Mapping[int, LogEstimate]) -> set[int]:
    """Return the tests that show a change, with 5 % error for all of them together.

    While some show one at 5 % divided by the number of undecided tests, the others are tried again
    at the milder level that fewer tests need.
    """
    undecided = dict(tests)
    while True:
        level = FAMILY_ERROR / max(1, len(undecided))
        changed = {index for index, test in undecided.items() if test.is_beyond_chance(level)}
        if not changed:
            return tests.keys() - undecided.keys()
        undecided = {index: test for index, test in undecided.items() if index not in changed}


def _is_repeated(base: Measure, candidate: Measure) -> bool:
    """Return whether the repeats of both runs are the units."""
    return min(len(base.repeats), len(candidate.repeats)) >= FEWEST_REPEATS


def _log_ratio(base: Measure, candidate: Measure) -> LogEstimate | None:
    """Return the ratio of two measures, None where it cannot be formed.

    That is where one of them may not be judged, is not above 0, or has no interval.
    """
    if base.reason or candidate.reason:
        return None
    if _is_repeated(base, candidate):
        if min(*base.repeats, *candidate.repeats) <= 0:
            return None
        sides = [_log_of_repeats(measure.repeats) for measure in (base, candidate)]
    else:
        resolution = _coarser_resolution(base, candidate)
        estimates = [measure.estimate.at_least(resolution) for measure in (base, candidate)]
        if not all(estimate.value > 0 and math.isfinite(estimate.high) for estimate in estimates):
            return None
        sides = [
            _log_of_estimate(estimate, measure.freedom or math.inf)
            for estimate, measure in zip(estimates, (base, candidate), strict=True)
        ]
    errors = [side.error for side in sides]
    return LogEstimate(
        sides[1].value - sides[0].value,
        error=math.hypot(*errors),
        freedom=welch_freedom(errors, [side.freedom for side in sides]),
    )


def _log_of_repeats(repeats: Sequence[float]) -> LogEstimate:
    """Return the mean logarithm of repeats."""
    logs = [math.log(repeat) for repeat in repeats]
    error = math.sqrt(statistics.variance(logs) / len(logs))
    return LogEstimate(statistics.fmean(logs), error, freedom=len(logs) - 1.0)


def _log_of_estimate(estimate: Estimate, freedom: float) -> LogEstimate:
    """Return the logarithm of an estimate, by the delta method on its wider side."""
    half_width = max(estimate.high - estimate.value, estimate.value - estimate.low)
    error = half_width / estimate.value / t95(freedom)
    return LogEstimate(math.log(estimate.value), error, freedom)


def _coarser_resolution(base: Measure, candidate: Measure) -> float:
    """Return the resolution of the coarser clock, in its unit."""
    return max(base.resolution, candidate.resolution)


def _judge_change(
    base: Measure,
    candidate: Measure,
    test: LogEstimate | None,
    *,
    is_significant: bool,
    tolerance: float,
) -> MeasureChange:
    """Return the change of a measure. is_significant: whether it goes beyond chance."""
    ratio, ranks, reason = None, None, ""
    if test is None:
        reason = _why_untested(base, candidate)
        change = Change.UNDECIDED if reason else Change.EQUIVALENT
    else:
        ratio, ranks = test.estimate, test.ranks
        # the tolerance, or what the clock can tell where that is more
        slack = tolerance
        resolution = _coarser_resolution(base, candidate)
        if resolution:
            largest = max(resolution, base.estimate.value, candidate.estimate.value)
            slack = max(tolerance, resolution / largest)
        change = _classify(ratio, base.more_is_better, is_significant=is_significant, slack=slack)
        if change is Change.UNDECIDED:
            share = f"{100 * tolerance:.3g} %"
            reason = f"not enough data to rule out a regression of more than {share}"
    return MeasureChange(
        base=base,
        candidate=candidate,
        change=change,
        ratio=ratio,
        ranks=ranks,
        significant=is_significant,
        repeated=_is_repeated(base, candidate),
        reason=reason,
    )


def _why_untested(base: Measure, candidate: Measure) -> str:
    """Return why a change cannot be tested; "" for two equal counts, which need no test."""
    is_counted = base.estimate.low == base.estimate.high and not base.reason
    if is_counted and base.estimate == candidate.estimate:
        return ""
    if base.reason or candidate.reason:
        reasons = {"base": base.reason, "candidate": candidate.reason}
        sides = " and the ".join(side for side, reason in reasons.items() if reason)
        return f"{base.reason or candidate.reason}, in the {sides}"
    values = (base.estimate.value, candidate.estimate.value)
    if min(*values, *base.repeats, *candidate.repeats) <= 0:
        return "a value is not above 0"
    return "one of them has no interval"


def _classify(
    ratio: Estimate, more_is_better: bool | None, *, is_significant: bool, slack: float
) -> Change:
    """Classify a ratio of candidate over base. slack: the part that may be lost."""
    # from here on more is better
    gain = ratio.inverse if more_is_better is False else ratio
    lowest = 1 - slack
    highest = 1 / lowest if slack < 1 else math.inf
    if gain.low >= lowest and gain.high <= highest:
        return Change.EQUIVALENT
    has_changed = is_significant and not lowest <= gain.value <= highest
    if more_is_better is None:
        return Change.CHANGED if has_changed else Change.UNDECIDED
    if has_changed:
        return Change.REGRESSION if gain.value < lowest else Change.IMPROVEMENT
    return Change.NOT_WORSE if gain.low >= lowest else Change.UNDECIDED
