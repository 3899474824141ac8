"""Comparison of a base run with other runs of its type, and the verdict whether any is worse."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Annotated, Any, ClassVar

from scaletest.model import Verdict, VerdictKind
from scaletest.model.checks import cut_text
from scaletest.model.declared import INNER, flat, named_in_documents
from scaletest.model.writing import Written
from scaletest.stats.change import Change, MeasureChange, changes_of
from scaletest.stats.measure import Measure

# One tolerance for runs of all types.
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Difference(Written):
    """One field in which two plans differ."""

    field: str
    base: Any
    candidate: Any
    workload: Annotated[bool, "whether it rules out a comparison"] = False

    @property
    def text(self) -> str:
        """The difference in words."""
        return f"{self.field}: {_setting_text(self.base)} and {_setting_text(self.candidate)}"


def _setting_text(setting: Any) -> str:
    """Write a setting of a plan as people do; a list of words as a command line."""
    if setting in (None, "", [], ()):
        return "none"
    is_list = isinstance(setting, list | tuple)
    return cut_text(shlex.join(map(str, setting)) if is_list else str(setting), 80)


@dataclass(frozen=True, slots=True)
class Side(Written):
    """A run as one side of a comparison."""

    name: Annotated[str, named_in_documents("run"), "its name"]
    folder: str
    measures: Annotated[Sequence[Measure], INNER]
    cause: Annotated[str, "what limits it in a few words; empty where nothing does"] = ""


@dataclass(frozen=True, slots=True)
class Contrast(Written):
    """How far a candidate can be compared with the base, by their plans and progress."""

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
    changes: Annotated[
        tuple[MeasureChange, ...], named_in_documents("measures"), "that both runs have"
    ]
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

    constants: ClassVar = {"schema_version": 2, "kind": "comparison"}

    run_type: Annotated[str, named_in_documents("type"), "of the runs"]
    tolerance: Annotated[float, "part by which a measure may be worse"]
    base: Side
    candidates: tuple[CandidateComparison, ...]
    verdict: Verdict


def compare_runs(
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
        refused = tuple(CandidateComparison(side, (), contrast) for side, contrast in candidates)
        return Comparison(run_type, tolerance, base, refused, verdict)
    # the measures that both have, in the order of the base, are judged for all candidates together
    pairs_by_candidate = []
    for side, _ in candidates:
        by_key = {measure.key: measure for measure in side.measures}
        pairs_by_candidate.append(
            [(measure, by_key[measure.key]) for measure in base.measures if measure.key in by_key]
        )
    changes = iter(changes_of(list(chain.from_iterable(pairs_by_candidate)), tolerance))
    comparisons = [
        CandidateComparison(
            side,
            tuple(islice(changes, len(pairs))),
            contrast,
            only_base=_deciding_only_in(base, side),
            only_candidate=_deciding_only_in(side, base),
        )
        for (side, contrast), pairs in zip(candidates, pairs_by_candidate, strict=True)
    ]
    verdict = _judge_candidates(comparisons, tolerance)
    return Comparison(run_type, tolerance, base, tuple(comparisons), verdict)


def plan_differences(
    base: Mapping[str, Any],
    candidate: Mapping[str, Any],
    workload: set[str],
    no_matter: set[str],
) -> tuple[Difference, ...]:
    """Return the fields in which two plans differ, those of the workload first.

    workload: fields that decide what is measured. no_matter: those that change nothing about it.
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


def _deciding_only_in(side: Side, other: Side) -> tuple[str, ...]:
    """Name the deciding measures that one of two runs has and the other lacks."""
    keys = {measure.key for measure in other.measures}
    return tuple(
        measure.text for measure in side.measures if measure.decides and measure.key not in keys
    )


def _judge_candidates(comparisons: Sequence[CandidateComparison], tolerance: float) -> Verdict:
    """Return the verdict on all candidates: FAIL where a measure that decides is worse."""
    limit = f"{100 * tolerance:.3g} %"
    # every measure that decides, with the candidate in words where there are several
    deciding: list[tuple[str, MeasureChange]] = []
    for comparison in comparisons:
        place = f", in {comparison.candidate.name}" if len(comparisons) > 1 else ""
        deciding += [(place, change) for change in comparison.deciding]
    worse = [pair for pair in deciding if pair[1].change is Change.REGRESSION]
    if worse:
        place, change = min(worse, key=_improvement_factor)
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
    # runs that broke off early may have nothing that decides in common
    if not all(comparison.deciding for comparison in comparisons):
        return Verdict(
            VerdictKind.INVALID,
            "the runs have no measure in common that decides",
            "give both runs the same plan, and measure both to the end",
        )
    lacking = list(chain.from_iterable(comparison.contrast.lacking for comparison in comparisons))
    if lacking:
        return Verdict(
            VerdictKind.INVALID,
            f"not measured in both runs: {', '.join(dict.fromkeys(lacking))}",
            "measure both to the end: <resume>",
        )
    reason = f"none of {len(deciding)} measures is worse by more than {limit}"
    better = [change for _, change in deciding if change.change is Change.IMPROVEMENT]
    if better:
        reason += f"; {len(better)} better"
    return Verdict(VerdictKind.PASS, reason)


def _improvement_factor(pair: tuple[str, MeasureChange]) -> float:
    """Return how many times better a regression is: the smallest is the worst."""
    _, change = pair
    assert change.ratio is not None
    return change.ratio.value if change.base.more_is_better else 1 / change.ratio.value
