"""The order of the measurements: up and down, and again for undecided doublings.

Every pair of passes is symmetric: the same steps, equally long, in the opposite order. A further
pair is as long as all before it together, so that few are needed, and has only the steps of the
doublings that are still open.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.model import VerdictKind
from scaletest.validation.judging.doubling import doubling_ratio
from scaletest.validation.judging.machine_trend import trend_of_run
from scaletest.validation.judging.step_parts import StepPart, throughput_of_parts
from scaletest.validation.judging.stopping import PARTS, TO_98_PERCENT
from scaletest.validation.plan import Plan

# A further pair is not begun when less than this part of its time is left.
LEAST_SHARE_LEFT = 0.5


@dataclass(frozen=True, slots=True)
class Turn:
    """A measurement to come."""

    workers: int
    repeat: int
    length_s: float = 0.0  # 0 on the first pass up, which lasts as long as it takes

    @property
    def key(self) -> tuple[int, int]:
        """Workers and repeat, the key of its records."""
        return self.workers, self.repeat


def pass_name(repeat: int) -> str:
    """Return the name of a measurement: "ascending pass", or "descending pass 2"."""
    direction = "descending pass" if repeat % 2 else "ascending pass"
    return f"{direction} {repeat // 2 + 1}" if repeat > 1 else direction


def planned_pairs(plan: Plan) -> list[Turn]:
    """Return every step up, then every step down, as often as planned."""
    turns = []
    for pair in range(plan.repeats):
        turns += [Turn(workers, 2 * pair) for workers in plan.steps]
        turns += [Turn(workers, 2 * pair + 1) for workers in reversed(plan.steps)]
    return turns


def further_pair(plan: Plan, steps: Sequence[Sequence[StepPart]]) -> list[Turn]:
    """Return the next pair after these steps; empty when all is decided or time is up.

    Other steps may use the time that a step has left, so that the run is never longer than all
    steps may be.
    """
    if plan.step_s or plan.compares or plan.repeats > 1:
        return []
    trend = trend_of_run(steps)
    spent_s = {parts[0].workers: sum(part.seconds for part in parts) for parts in steps}
    # seconds of each pass, for the steps of open doublings: as long as the shorter step of the
    # doubling was measured so far
    lengths_s: dict[int, float] = {}
    for before, after in itertools.pairwise(steps):
        ratio = doubling_ratio(before, after, plan, trend=trend)
        if ratio and ratio.kind is VerdictKind.FAIL:
            return []  # a doubling that fails decides the run
        # measuring again may decide it: undecided by the interval that counts while measuring, and
        # still imprecise
        open_ratio = doubling_ratio(before, after, plan, confidence=TO_98_PERCENT, trend=trend)
        if open_ratio and open_ratio.kind is not VerdictKind.INVALID:
            continue
        relative = max(throughput_of_parts(parts).relative for parts in (before, after))
        if open_ratio and not open_ratio.widened_by and relative <= plan.precision:
            continue
        workers_before, workers_after = before[0].workers, after[0].workers
        length_s = min(spent_s[workers_before], spent_s[workers_after])
        lengths_s[workers_before] = max(length_s, lengths_s.get(workers_before, 0.0))
        lengths_s[workers_after] = length_s

    # the turns up and down, shorter where less time is left, unless that is too short
    left_s = plan.longest_s * len(steps) - sum(spent_s.values())
    wanted_s = PARTS * sum(lengths_s.values())
    if wanted_s <= 0 or left_s < LEAST_SHARE_LEFT * wanted_s:
        return []
    share = min(1.0, left_s / wanted_s)
    repeat = 1 + max(part.repeat for part in itertools.chain.from_iterable(steps))
    open_steps = [workers for workers in plan.steps if workers in lengths_s]
    up = [Turn(workers, repeat, share * lengths_s[workers]) for workers in open_steps]
    return up + [Turn(turn.workers, repeat + 1, turn.length_s) for turn in reversed(up)]
