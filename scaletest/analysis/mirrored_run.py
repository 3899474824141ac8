"""Which steps of a mirrored run are measured next: up and down, and again where that has not decided a doubling.

Every pair of ways is symmetric: the same steps, equally long, in the opposite order. A further pair is as long as all
before it together, so that few are needed, and holds the steps of the doublings that are still open, and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from scaletest.analysis.doubling import StepPart, doubling, run_course, together
from scaletest.analysis.machine_trend import MachineTrend
from scaletest.analysis.stopping import WIDER
from scaletest.model import Plan, VerdictKind

# A further pair is not begun when only this part of its time is left.
LEAST_PART = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """One measuring to come: workers, repeat, and how many seconds; 0 on the first way up, which finds its own."""

    workers: int
    repeat: int
    length_s: float = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, by which records are found."""
        return self.workers, self.repeat


def way(repeat: int) -> str:
    """How people call this measuring of a step: "way up" or "way down", and of which pair beyond the first."""
    direction = "way down" if repeat % 2 else "way up"
    return f"{direction}, pair {repeat // 2 + 1}" if repeat > 1 else direction


def first_pair(plan: Plan) -> list[Turn]:
    """Every step up, then every step down; how long these are the way up tells."""
    up = [Turn(workers, 0) for workers in plan.steps]
    return up + [Turn(turn.workers, 1) for turn in reversed(up)]


def further_pair(plan: Plan, steps: Sequence[Sequence[StepPart]]) -> list[Turn]:
    """The next pair after these steps, each with its parts; empty when all is decided, or no time is left.

    What one step leaves of its longest time others may use, so that the run is never longer than all steps may be.
    """
    if plan.step_s or plan.compares:
        return []
    course = run_course(steps)
    ratios = [doubling(first, second, plan, course=course) for first, second in pairwise(steps)]
    if any(found and found.kind is VerdictKind.FAIL for found in ratios):
        return []
    spent = {parts[0].workers: sum(part.seconds for part in parts) for parts in steps}
    lengths = _lengths(plan, steps, course, spent)
    left = plan.longest_s * len(steps) - sum(spent.values())
    wanted = plan.parts * sum(lengths.values())
    if wanted <= 0 or left < LEAST_PART * wanted:
        return []
    shorter = min(1.0, left / wanted)
    repeat = 1 + max(part.repeat for parts in steps for part in parts)
    up = [Turn(workers, repeat, shorter * lengths[workers]) for workers in plan.steps if workers in lengths]
    return up + [Turn(turn.workers, repeat + 1, turn.length_s) for turn in reversed(up)]


def _lengths(
    plan: Plan, steps: Sequence[Sequence[StepPart]], course: MachineTrend, spent: Mapping[int, float]
) -> dict[int, float]:
    """Seconds of each way of the next pair, for the steps of open doublings: what the shorter of the two has had."""
    lengths: dict[int, float] = {}
    for first, second in pairwise(steps):
        if _open(plan, first, second, course):
            pair = (first[0].workers, second[0].workers)
            length = min(spent[workers] for workers in pair)
            lengths.update({workers: max(length, lengths.get(workers, 0.0)) for workers in pair})
    return lengths


def _open(plan: Plan, first: Sequence[StepPart], second: Sequence[StepPart], course: MachineTrend) -> bool:
    """Whether measuring again may decide this doubling: it is not clear, and what makes it unclear is not precise."""
    found = doubling(first, second, plan, wider=WIDER, course=course)
    if found is None:
        return True
    if found.kind is not VerdictKind.INVALID:
        return False
    return bool(found.widened_by) or any(together(parts).relative > plan.precision for parts in (first, second))
