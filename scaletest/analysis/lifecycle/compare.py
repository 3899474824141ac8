"""Comparison of two lifecycle runs: which steps became slower.

A step is slower when its values tend to be larger beyond chance (Mann and Whitney, all steps
together by Holm's procedure at 5 %) and its median grew by more than the tolerance and by more than
the resolution of its sources: 1 s where times of the API have a part in them, 20 ms where all were
stamped on arrival. Faster likewise.
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
    """How the durations of a step changed."""

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
            "step": self.name,
            "change": str(self.change),
            "base_s": self.base_s,
            "candidate_s": self.candidate_s,
            "test": self.test.to_dict() if self.test else None,
        }


@dataclass(frozen=True, slots=True)
class LifecycleComparison:
    """Every step that both runs have."""

    tolerance: float
    steps: tuple[PhaseChange, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "lifecycle_comparison",
            "tolerance": self.tolerance,
            "steps": [step.to_dict() for step in self.steps],
            "verdict": self.verdict.to_dict(),
        }


def compare(
    base: LifecycleResult, candidate: LifecycleResult, tolerance: float
) -> LifecycleComparison:
    """Compare step by step: FAIL when a step is slower, INVALID when there is nothing to compare.

    tolerance: the part of its median by which a step may grow.
    """
    pairs = []
    for phase in base.steps:
        other = candidate.step(phase.step.name)
        if other is not None:
            pairs.append((phase, other))
    tests = [mann_whitney(_values(other), _values(phase)) for phase, other in pairs]
    steps = []
    for (phase, other), test, sure in zip(pairs, tests, _holm(tests), strict=True):
        steps.append(_change(phase, other, test, sure, tolerance))
    return LifecycleComparison(tolerance, tuple(steps), _verdict(steps, base, candidate))


def _values(phase: PhaseDurations) -> list[float]:
    return [seconds for seconds in phase.values if seconds is not None]


def _holm(tests: Sequence[RankTest | None]) -> list[bool]:
    """Which of the tests are beyond chance, by Holm's procedure for all of them together."""
    beyond = [False] * len(tests)
    chances = []
    for index, test in enumerate(tests):
        chance = 1.0
        if test:
            chance = test.p
        chances.append((chance, index))
    for rank, (chance, index) in enumerate(sorted(chances)):
        if chance > FAMILY_ERROR / (len(tests) - rank):
            break
        beyond[index] = True
    return beyond


def _change(
    base: PhaseDurations,
    candidate: PhaseDurations,
    test: RankTest | None,
    sure: bool,
    tolerance: float,
) -> PhaseChange:
    """The change of one step. sure: whether it is beyond chance."""
    before = quantile(sorted(_values(base)), 0.5)
    after = quantile(sorted(_values(candidate)), 0.5)
    resolution_s = WHOLE_S
    if set(base.sources) | set(candidate.sources) <= {"watch"}:
        resolution_s = WATCHED_S
    change = DurationChange.SAME
    if test is None:
        change = DurationChange.UNKNOWN
    elif sure and abs(after - before) > max(tolerance * before, resolution_s):
        change = DurationChange.FASTER
        if after > before:
            change = DurationChange.SLOWER
    return PhaseChange(base.step.name, change, before, after, test)


def _verdict(
    steps: Sequence[PhaseChange], base: LifecycleResult, candidate: LifecycleResult
) -> Verdict:
    slower = [step for step in steps if step.change is DurationChange.SLOWER]
    if slower:
        worst = max(slower, key=lambda step: step.candidate_s - step.base_s)
        return Verdict(
            VerdictKind.FAIL,
            f"{len(slower)} of {len(steps)} steps are slower: "
            f"{worst.name} {short(worst.base_s)} s -> {short(worst.candidate_s)} s",
            "look at what changed between the runs",
        )
    if not any(step.test for step in steps):
        return Verdict(
            VerdictKind.INVALID,
            "the runs have no step in common with enough values",
            "measure more workloads",
        )
    if (
        candidate.books.measured < base.books.measured
        and candidate.books.pending + candidate.books.lost
    ):
        return Verdict(
            VerdictKind.INVALID, "the candidate measured fewer workloads", "measure it to the end"
        )
    return Verdict(VerdictKind.PASS, f"none of {len(steps)} steps is slower")
