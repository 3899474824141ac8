"""Two lifecycle runs: which steps became slower.

A step is slower when its values tend to be larger beyond chance (Mann and Whitney, all steps together by Holm's
procedure at 5 %) and its median grew by more than the tolerance and by more than what its sources can tell: 1 s where
times of the API have a part in them, 20 ms where all were stamped on arrival. Faster likewise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from scaletest.analysis.lifecycle.result import LifecycleResult, PhaseDurations
from scaletest.analysis.percentiles import quantile
from scaletest.analysis.rank_test import RankTest, mann_whitney
from scaletest.model.digits import short
from scaletest.model.verdict import Verdict, VerdictKind
from scaletest.model.wire import SCHEMA_VERSION

FAMILY_ERROR = 0.05
WATCHED_S, WHOLE_S = 0.02, 1.0


class DurationChange(StrEnum):
    """What became of a step."""

    SLOWER = "slower"
    FASTER = "faster"
    SAME = "no change beyond chance and tolerance"
    UNKNOWN = "too few values"


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """One step in both runs: medians in s, and the test; None where there are too few values."""

    name: str
    change: DurationChange
    base_s: float
    candidate_s: float
    test: RankTest | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "step": self.name, "change": str(self.change), "base_s": self.base_s, "candidate_s": self.candidate_s,
            "test": self.test.to_dict() if self.test else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class LifecycleComparison:
    """Every step that both runs have."""

    tolerance: float
    steps: tuple[PhaseChange, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION, "kind": "lifecycle_comparison", "tolerance": self.tolerance,
            "steps": [one.to_dict() for one in self.steps], "verdict": self.verdict.to_dict(),
        }  # fmt: skip


def compare(base: LifecycleResult, candidate: LifecycleResult, tolerance: float) -> LifecycleComparison:
    """FAIL when a step is slower, INVALID when there is nothing to compare."""
    pairs = [(one, other) for one in base.steps if (other := candidate.step(one.step.name)) is not None]
    tests = [mann_whitney(_values(other), _values(one)) for one, other in pairs]
    beyond = _holm([test.p if test else 1.0 for test in tests])
    steps = tuple(
        _change(one, other, test, sure, tolerance)
        for (one, other), test, sure in zip(pairs, tests, beyond, strict=True)
    )
    return LifecycleComparison(tolerance, steps, _verdict(steps, base, candidate))


def _values(one: PhaseDurations) -> list[float]:
    return [value for value in one.values if value is not None]


def _holm(chances: Sequence[float]) -> list[bool]:
    """Which of them are beyond chance, all considered."""
    found = [False] * len(chances)
    for rank, index in enumerate(sorted(range(len(chances)), key=lambda each: chances[each])):
        if chances[index] > FAMILY_ERROR / (len(chances) - rank):
            break
        found[index] = True
    return found


def _change(
    one: PhaseDurations, other: PhaseDurations, test: RankTest | None, sure: bool, tolerance: float
) -> PhaseChange:
    before, after = (quantile(sorted(_values(each)), 0.5) for each in (one, other))
    watched = set(one.sources) | set(other.sources) <= {"watch"}
    least = max(tolerance * before, WATCHED_S if watched else WHOLE_S)
    change = DurationChange.SAME
    if test is None:
        change = DurationChange.UNKNOWN
    elif sure and abs(after - before) > least:
        change = DurationChange.SLOWER if after > before else DurationChange.FASTER
    return PhaseChange(one.step.name, change, before, after, test)


def _verdict(steps: Sequence[PhaseChange], base: LifecycleResult, candidate: LifecycleResult) -> Verdict:
    slower = [one for one in steps if one.change is DurationChange.SLOWER]
    if slower:
        worst = max(slower, key=lambda one: one.candidate_s - one.base_s)
        return Verdict(
            VerdictKind.FAIL,
            f"{len(slower)} of {len(steps)} steps are slower: "
            f"{worst.name} {short(worst.base_s)} s -> {short(worst.candidate_s)} s",
            "look at what changed between the runs",
        )
    if not any(one.test for one in steps):
        return Verdict(
            VerdictKind.INVALID, "the runs have no step in common with values enough", "measure more workloads"
        )
    if candidate.books.measured < base.books.measured and candidate.books.pending + candidate.books.lost:
        return Verdict(VerdictKind.INVALID, "the candidate measured fewer workloads", "measure it to the end")
    return Verdict(VerdictKind.PASS, f"none of {len(steps)} steps is slower")
