"""Measures: the named numbers of a run, with their intervals; and which of them changed from a base
run to other runs of its type, by how much, and whether any is worse.

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

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain, islice
from typing import Annotated, Any, ClassVar

from scaletest.model import Verdict, VerdictKind
from scaletest.model.checks import cut
from scaletest.model.declared import INNER, called, flat
from scaletest.model.texts import short
from scaletest.model.writing import Written
from scaletest.stats.estimate import (
    Distribution,
    Estimate,
    RankTest,
    interval_of,
    mann_whitney,
    mean_of,
    t95,
    t_quantile,
    welch,
    within,
)

Place = Mapping[str, str | int | float]
NOWHERE: Place = {}


@dataclass(frozen=True, slots=True)
class Measure(Written):
    """One number of a run."""

    name: Annotated[str, called("measure"), 'its name with its statistic, as in "run.p95"']
    where: Annotated[Place, "of what in the run, as in workers: 8"]
    estimate: Annotated[
        Estimate,
        INNER,
        "with its 95 % interval; infinite ends where that is unknown, equal ones where it was "
        "counted.",
    ]
    unit: Annotated[
        str, 'the base unit, as in s, 1/s, B/s, x; "" for a plain number or a part of 1.'
    ]
    more_is_better: Annotated[bool | None, INNER, "None where neither is."]
    samples: Annotated[
        Sequence[float], INNER, "the single values behind it, if there are any."
    ] = ()
    repeats: Annotated[
        Sequence[float], INNER, "what each repeat measured, where the estimate is their mean."
    ] = ()
    freedom: Annotated[
        int, INNER, "degrees of freedom behind the interval, 0 where they are unknown."
    ] = 0
    resolution: Annotated[float, INNER, "of its clock, in its unit."] = 0.0
    reason: Annotated[str, INNER, 'why it may not be judged, "" when it may.'] = ""
    decides: Annotated[bool, "whether the verdict rests on it"] = False

    @property
    def key(self) -> tuple[object, ...]:
        """What it is in any run."""
        return self.name, *sorted(self.where.items(), key=str)

    @property
    def text(self) -> str:
        """Name and place in words."""
        return f"{self.name} ({place_text(self.where)})" if self.where else self.name

    @property
    def is_counted(self) -> bool:
        """Whether its number has no interval because nothing about it is left to chance."""
        return self.estimate.low == self.estimate.high and not self.reason

    @property
    def is_median(self) -> bool:
        """Whether it is the median of its samples."""
        return self.name.endswith(".p50")


def _shown(setting: str | int | float) -> str:
    return short(setting) if isinstance(setting, float) else str(setting)


def place_text(where: Place) -> str:
    """A place in words; "" for the whole run."""
    return ", ".join(f"{key} {_shown(setting)}" for key, setting in where.items())


def percentiles(
    name: str,
    where: Place,
    spread: Distribution,
    samples: Sequence[float] = (),
    resolution_s: float = 0.0,
) -> list[Measure]:
    """The percentiles of durations in s that are known, and their mean where there are samples."""
    known = {"p50": spread.p50, "p95": spread.p95, "p99": spread.p99}
    estimates = {
        statistic: interval_of(percentile)
        for statistic, percentile in known.items()
        if percentile is not None
    }
    if samples:
        estimates = {"mean": mean_of(samples)} | estimates
    return [
        Measure(
            f"{name}.{statistic}", where, estimate, "s", False, samples, resolution=resolution_s
        )
        for statistic, estimate in estimates.items()
    ]


FAMILY_ERROR = 0.05
# One tolerance for runs of all types.
TOLERANCE = 0.05
FEWEST_REPEATS = 2
SCHEMA_VERSION = 2


class Change(StrEnum):
    """How a measure changed; one of which neither more nor less is better only changes."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    CHANGED = "changed"
    EQUIVALENT = "equivalent"
    NOT_WORSE = "not worse"
    UNDECIDED = "undecided"


FLAGGED = (Change.REGRESSION, Change.IMPROVEMENT, Change.CHANGED)


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Logarithm of candidate over base, its standard error and the degrees of freedom behind it.

    ranks: the test that decides whether there is a change, where there is one.
    """

    value: float
    error: float
    freedom: float
    ranks: RankTest | None = None

    @property
    def estimate(self) -> Estimate:
        """The ratio with its 95 % interval."""
        return within(math.exp(self.value), t95(self.freedom) * self.error if self.error else 0.0)

    def beyond(self, level: float) -> bool:
        """Whether there is a change beyond chance: by ranks, else by the two-sided t test."""
        if self.ranks:
            return self.ranks.p <= level
        bound = t_quantile(1 - level / 2, self.freedom) * self.error if self.error else 0.0
        return abs(self.value) > bound


@dataclass(frozen=True, slots=True)
class MeasureChange(Written):
    """A measure in both runs."""

    base: Annotated[Measure, flat("measure", "where", "unit", "decides"), "the measure of the base"]
    candidate: Annotated[Measure, INNER]
    change: Annotated[
        Change, "regression, improvement, changed, equivalent, not worse or undecided"
    ]
    ratio: Annotated[Estimate | None, "candidate over base, with its 95 % interval"]
    ranks: Annotated[RankTest | None, "whether the candidate's values tend to be larger."]
    significant: Annotated[bool, "whether it differs beyond chance, all considered (Holm)"]
    repeated: Annotated[bool, INNER, "whether the interval holds what differs between repeats."]
    reason: Annotated[str, "why nothing was decided"] = ""

    @property
    def text(self) -> str:
        """The measure and its ratio in words."""
        if self.ratio is None:
            return self.base.text
        return f"{self.base.text} {ratio_text(self.ratio)}"

    @property
    def base_estimate(self) -> Annotated[Estimate, called("base"), "the measure of the base"]:
        """The measure of the base with its interval."""
        return self.base.estimate

    @property
    def candidate_estimate(
        self,
    ) -> Annotated[Estimate, called("candidate"), "the measure of the candidate"]:
        """The measure of the candidate with its interval."""
        return self.candidate.estimate

    @property
    def interval(
        self,
    ) -> Annotated[str, "what the interval holds: between repeats, or within the runs"]:
        """What the interval of the ratio covers."""
        return "between repeats" if self.repeated else "within the runs"


@dataclass(frozen=True, slots=True)
class Difference(Written):
    """One field in which two plans differ."""

    field: str
    base: Any
    candidate: Any
    workload: Annotated[bool, "whether it forbids to compare"] = False

    @property
    def text(self) -> str:
        """The difference in words."""
        return f"{self.field}: {_in_words(self.base)} and {_in_words(self.candidate)}"


def _in_words(setting: Any) -> str:
    """A setting of a plan as people write it; a list of words as a command line."""
    if setting in (None, "", [], ()):
        return "none"
    is_list = isinstance(setting, list | tuple)
    return cut(shlex.join(map(str, setting)) if is_list else str(setting), 80)


@dataclass(frozen=True, slots=True)
class Side(Written):
    """A run as one side of a comparison."""

    name: Annotated[str, called("run"), "its name"]
    folder: str
    measures: Annotated[Sequence[Measure], INNER]


@dataclass(frozen=True, slots=True)
class Contrast(Written):
    """What a candidate's plan and progress have to do with those of the base."""

    differences: Annotated[Sequence[Difference], "in which the plans differ"] = ()
    lacking: Annotated[Sequence[str], "what both were to measure and one has not"] = ()

    @property
    def foreign(self) -> list[str]:
        """The differences because of which the runs measure different things, in words."""
        return [difference.text for difference in self.differences if difference.workload]


@dataclass(frozen=True, slots=True)
class CandidateComparison(Written):
    """What changed from the base to one candidate."""

    candidate: Annotated[Side, flat()]
    changes: Annotated[tuple[MeasureChange, ...], called("measures"), "that both runs have"]
    contrast: Annotated[Contrast, flat()]
    only_base: Annotated[tuple[str, ...], "measures that decide and only the base has"] = ()
    only_candidate: Annotated[
        tuple[str, ...], "the measures that one of them alone has, in words."
    ] = ()

    @property
    def deciding(self) -> list[MeasureChange]:
        """The measures on which the verdict rests."""
        return [change for change in self.changes if change.base.decides]


@dataclass(frozen=True, slots=True)
class Comparison(Written):
    """A base run and its candidates."""

    constants: ClassVar = {"schema_version": SCHEMA_VERSION, "kind": "comparison"}

    run_type: Annotated[str, called("type"), "of the runs"]
    tolerance: Annotated[float, "part by which a measure may be worse"]
    base: Side
    candidates: tuple[CandidateComparison, ...]
    verdict: Verdict = field(default_factory=lambda: Verdict(VerdictKind.INVALID, ""))


def compare(
    run_type: str,
    base: Side,
    candidates: Sequence[tuple[Side, Contrast]],
    tolerance: float = TOLERANCE,
    *,
    force: bool = False,
) -> Comparison:
    """Compare measure by measure. Runs of different workloads are compared only with `force`.

    tolerance: the largest part, from 0 to below 1, by which a measure may be worse.
    """
    foreign = list(chain.from_iterable(contrast.foreign for _, contrast in candidates))
    if foreign and not force:
        verdict = Verdict(
            VerdictKind.INVALID,
            f"the runs measured different workloads, with {'; '.join(dict.fromkeys(foreign))}",
            "compare runs of one workload, or add <force>",
        )
        alone = tuple(CandidateComparison(side, (), contrast) for side, contrast in candidates)
        return Comparison(run_type, tolerance, base, alone, verdict)
    pairs = [_common(base, side) for side, _ in candidates]
    changes = iter(_changes(list(chain.from_iterable(pairs)), tolerance))
    compared = []
    for (side, contrast), own in zip(candidates, pairs, strict=True):
        compared.append(
            CandidateComparison(
                side,
                tuple(islice(changes, len(own))),
                contrast,
                _alone(base, side),
                _alone(side, base),
            )
        )
    return Comparison(run_type, tolerance, base, tuple(compared), _verdict(compared, tolerance))


def differences(
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
    workload: set[str],
    no_matter: set[str],
) -> tuple[Difference, ...]:
    """The fields in which two plans differ, those first that make the runs measure other things.

    workload: the fields that do. no_matter: those that change nothing that is measured.
    """
    names = [
        name
        for name in dict.fromkeys([*base, *candidate])
        if name not in no_matter and base.get(name) != candidate.get(name)
    ]
    differing = [
        Difference(name, base.get(name), candidate.get(name), name in workload) for name in names
    ]
    return tuple(sorted(differing, key=lambda difference: not difference.workload))


def ratio_text(ratio: Estimate) -> str:
    """A ratio with its interval."""
    return f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _common(base: Side, candidate: Side) -> list[tuple[Measure, Measure]]:
    """The measures that both have, in the order of the base."""
    others = {measure.key: measure for measure in candidate.measures}
    return [(measure, others[measure.key]) for measure in base.measures if measure.key in others]


def _alone(side: Side, other: Side) -> tuple[str, ...]:
    """The deciding measures that one of two runs alone has, in words."""
    keys = {measure.key for measure in other.measures}
    return tuple(
        measure.text for measure in side.measures if measure.decides and measure.key not in keys
    )


def _changes(pairs: Sequence[tuple[Measure, Measure]], tolerance: float) -> list[MeasureChange]:
    """The changes of all pairs; each of the two families of measures has its error once."""
    tests = {index: test for index, pair in enumerate(pairs) if (test := _test(*pair))}
    deciding = {index: test for index, test in tests.items() if pairs[index][0].decides}
    others = {index: test for index, test in tests.items() if index not in deciding}
    significant = holm(deciding) | holm(others)
    return [
        _change(pair, tests.get(index), index in significant, tolerance)
        for index, pair in enumerate(pairs)
    ]


def holm(tests: Mapping[int, LogRatio]) -> set[int]:
    """The tests that are beyond chance, 5 % error for all of them together.

    As long as something is rejected at 5 % divided by the number of tests left, the rest is asked
    again more mildly.
    """
    left, rejected = dict(tests), set[int]()
    while left:
        clear = {index for index, test in left.items() if test.beyond(FAMILY_ERROR / len(left))}
        if not clear:
            break
        rejected |= clear
        left = {index: test for index, test in left.items() if index not in clear}
    return rejected


def _test(base: Measure, candidate: Measure) -> LogRatio | None:
    """The test of a pair; None where there is no ratio, or nothing tells how sure one is. A median
    is tested by ranks.
    """
    ratio, ranks = _log_ratio(base, candidate), None
    if base.is_median and not _repeated(base, candidate):
        ranks = mann_whitney(candidate.samples, base.samples)
    if ratio is None or (ratio.value and not ratio.error and not ranks):
        return None
    return replace(ratio, ranks=ranks)


def _repeated(base: Measure, candidate: Measure) -> bool:
    return min(len(base.repeats), len(candidate.repeats)) >= FEWEST_REPEATS


def _log_ratio(base: Measure, candidate: Measure) -> LogRatio | None:
    """None where one of the two may not be judged, is not above 0, or has no interval."""
    if base.reason or candidate.reason:
        return None
    if _repeated(base, candidate):
        if min(*base.repeats, *candidate.repeats) <= 0:
            return None
        moments = [_of_repeats(measure.repeats) for measure in (base, candidate)]
    else:
        floor = _floor(base, candidate)
        estimates = [measure.estimate.at_least(floor) for measure in (base, candidate)]
        if not all(estimate.value > 0 and math.isfinite(estimate.high) for estimate in estimates):
            return None
        moments = list(map(_of_interval, estimates, (base.freedom, candidate.freedom)))
    (mean, variance, freedom), (other, more, left) = moments
    return LogRatio(
        other - mean,
        math.sqrt(variance + more),
        welch([math.sqrt(variance), math.sqrt(more)], [freedom, left]),
    )


def _floor(base: Measure, candidate: Measure) -> float:
    return max(base.resolution, candidate.resolution)


def _of_repeats(repeats: Sequence[float]) -> tuple[float, float, float]:
    """Mean logarithm of the repeats, its variance, degrees of freedom."""
    logs = [math.log(repeat) for repeat in repeats]
    return statistics.fmean(logs), statistics.variance(logs) / len(logs), len(logs) - 1.0


def _of_interval(estimate: Estimate, freedom: float) -> tuple[float, float, float]:
    """Logarithm, its variance by the delta method on the wider side of the interval, freedom."""
    half_width = max(estimate.high - estimate.value, estimate.value - estimate.low)
    freedom = freedom or math.inf
    return (
        math.log(estimate.value),
        (half_width / estimate.value / t95(freedom)) ** 2,
        freedom,
    )


def _change(
    pair: tuple[Measure, Measure],
    test: LogRatio | None,
    significant: bool,
    tolerance: float,
) -> MeasureChange:
    """The change of a measure. significant: whether it is beyond chance."""
    base, candidate = pair
    change, reason = Change.UNDECIDED, ""
    ratio = test.estimate if test else None
    if ratio is None and base.estimate == candidate.estimate and base.is_counted:
        change = Change.EQUIVALENT
    elif ratio is None:
        reason = _missing(base, candidate)
    else:
        change = classify(ratio, base.more_is_better, significant, _slack(pair, tolerance))
        if change is Change.UNDECIDED:
            share = f"{100 * tolerance:.3g} %"
            reason = f"a change for the worse of more than {share} is neither shown nor excluded"
    return MeasureChange(
        base,
        candidate,
        change,
        ratio,
        test.ranks if test else None,
        significant,
        _repeated(base, candidate),
        reason,
    )


def _missing(base: Measure, candidate: Measure) -> str:
    """Why there is no ratio."""
    reasons = {"base": base.reason, "candidate": candidate.reason}
    sides = [side for side, reason in reasons.items() if reason]
    if sides:
        return f"{base.reason or candidate.reason}, in the {' and the '.join(sides)}"
    if min(base.estimate.value, candidate.estimate.value, *base.repeats, *candidate.repeats) <= 0:
        return "a value is not above 0"
    return "one of them has no interval"


def _slack(pair: tuple[Measure, Measure], tolerance: float) -> float:
    """The tolerance, or what the clock can tell where that is more."""
    floor = _floor(*pair)
    if not floor:
        return tolerance
    return max(tolerance, floor / max(floor, *(measure.estimate.value for measure in pair)))


def classify(
    ratio: Estimate, more_is_better: bool | None, significant: bool, slack: float
) -> Change:
    """The change that a ratio of candidate over base is. slack: the part that may be lost."""
    better = ratio.inverse if more_is_better is False else ratio
    least, most = 1 - slack, 1 / (1 - slack) if slack < 1 else math.inf
    if better.low >= least and better.high <= most:
        return Change.EQUIVALENT
    beyond = significant and not least <= better.value <= most
    if more_is_better is None:
        return Change.CHANGED if beyond else Change.UNDECIDED
    if beyond:
        return Change.REGRESSION if better.value < least else Change.IMPROVEMENT
    return Change.NOT_WORSE if better.low >= least else Change.UNDECIDED


def _verdict(compared: Sequence[CandidateComparison], tolerance: float) -> Verdict:
    limit = f"{100 * tolerance:.3g} %"
    deciding: list[tuple[str, MeasureChange]] = []
    for each in compared:
        place = f", in {each.candidate.name}" if len(compared) > 1 else ""
        deciding += [(place, change) for change in each.deciding]
    worse = [pair for pair in deciding if pair[1].change is Change.REGRESSION]
    if worse:
        place, change = min(worse, key=_better)
        return Verdict(
            VerdictKind.FAIL,
            f"worse by more than {limit} in {len(worse)} of {len(deciding)} measures:"
            f" {change.text}{place}",
            "look at what changed between the runs, or measure both again, in turns",
        )
    for place, change in deciding:
        if change.change is Change.UNDECIDED:
            return Verdict(
                VerdictKind.INVALID,
                f"{change.text}: {change.reason}{place}",
                "measure both with more <repeats>, requests or workloads, or allow a larger"
                " <tolerance>",
            )
    reason = f"none of {len(deciding)} measures is worse by more than {limit}"
    if better := sum(change.change is Change.IMPROVEMENT for _, change in deciding):
        reason += f"; {better} better"
    return _incomplete(compared) or Verdict(VerdictKind.PASS, reason)


def _incomplete(compared: Sequence[CandidateComparison]) -> Verdict | None:
    """The verdict where something that decides is not there in both runs."""
    if not all(each.deciding for each in compared):
        return Verdict(
            VerdictKind.INVALID,
            "the runs have no measure in common that decides",
            "give both runs the same plan, and measure both to the end",
        )
    lacking = list(chain.from_iterable(each.contrast.lacking for each in compared))
    if not lacking:
        return None
    return Verdict(
        VerdictKind.INVALID,
        f"not measured in both runs: {', '.join(dict.fromkeys(lacking))}",
        "measure both to the end: <resume>",
    )


def _better(pair: tuple[str, MeasureChange]) -> float:
    """How many times better a regression is: the smallest is the worst."""
    _, change = pair
    assert change.ratio is not None
    return change.ratio.value if change.base.more_is_better else 1 / change.ratio.value
