"""The order of the measurements of a mirrored run: up and down, and again for undecided doublings.

Every pair of ways is symmetric: the same steps, equally long, in the opposite order. A further pair
is as long as all before it together, so that few are needed, and has only the steps of the
doublings that are still open.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from scaletest.analysis.doubling import StepPart, doubling, run_course, together
from scaletest.analysis.machine_trend import MachineTrend
from scaletest.analysis.stopping import WIDER
from scaletest.model import Plan, VerdictKind

# A further pair is not begun when only this part of its time is left.
LEAST_PART = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """A measurement to come: workers, repeat, and how many seconds.

    length_s: 0 on the first way up, which lasts as long as it takes.
    """

    workers: int
    repeat: int
    length_s: float = 0.0

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, the key of its records."""
        return self.workers, self.repeat


def way(repeat: int) -> str:
    """The name of a measurement: "way up" or "way down", and its pair beyond the first."""
    direction = "way up"
    if repeat % 2:
        direction = "way down"
    if repeat > 1:
        return f"{direction}, pair {repeat // 2 + 1}"
    return direction


def first_pair(plan: Plan) -> list[Turn]:
    """Every step up, then every step down, as long as on the way up."""
    up = [Turn(workers, 0) for workers in plan.steps]
    return up + [Turn(turn.workers, 1) for turn in reversed(up)]


def further_pair(plan: Plan, steps: Sequence[Sequence[StepPart]]) -> list[Turn]:
    """The next pair after these steps; empty when all is decided or time is up.

    Other steps may use the time that a step has left, so that the run is never longer than all
    steps may be.
    """
    if plan.step_s or plan.compares:
        return []
    course = run_course(steps)
    if _fails(plan, steps, course):
        return []
    spent = {parts[0].workers: _seconds(parts) for parts in steps}
    lengths = _lengths(plan, steps, course, spent)
    left = plan.longest_s * len(steps) - sum(spent.values())
    wanted = plan.parts * sum(lengths.values())
    if wanted <= 0 or left < LEAST_PART * wanted:
        return []
    shorter = min(1.0, left / wanted)
    repeat = 1 + max(part.repeat for part in chain.from_iterable(steps))
    open_steps = [workers for workers in plan.steps if workers in lengths]
    up = [Turn(workers, repeat, shorter * lengths[workers]) for workers in open_steps]
    return up + [Turn(turn.workers, repeat + 1, turn.length_s) for turn in reversed(up)]


def _fails(plan: Plan, steps: Sequence[Sequence[StepPart]], course: MachineTrend) -> bool:
    """Whether a doubling fails, which decides the run."""
    ratios = [doubling(first, second, plan, course=course) for first, second in pairwise(steps)]
    return any(ratio and ratio.kind is VerdictKind.FAIL for ratio in ratios)


def _seconds(parts: Sequence[StepPart]) -> float:
    return sum(part.seconds for part in parts)


def _lengths(
    plan: Plan,
    steps: Sequence[Sequence[StepPart]],
    course: MachineTrend,
    spent: Mapping[int, float],
) -> dict[int, float]:
    """Seconds of each way of the next pair, for the steps of open doublings.

    Each as long as the shorter step of the doubling was measured so far.
    """
    lengths: dict[int, float] = {}
    for first, second in pairwise(steps):
        if _open(plan, first, second, course):
            pair = (first[0].workers, second[0].workers)
            length = min(spent[workers] for workers in pair)
            for workers in pair:
                lengths[workers] = max(length, lengths.get(workers, 0.0))
    return lengths


def _open(
    plan: Plan, first: Sequence[StepPart], second: Sequence[StepPart], course: MachineTrend
) -> bool:
    """Whether measuring again may decide this doubling: it is undecided and still imprecise."""
    ratio = doubling(first, second, plan, wider=WIDER, course=course)
    if ratio is None:
        return True
    if ratio.kind is not VerdictKind.INVALID:
        return False
    if ratio.widened_by:
        return True
    return max(together(first).relative, together(second).relative) > plan.precision
