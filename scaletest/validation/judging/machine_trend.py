"""How the machine changed along a run that measures its steps in the pass up and in the pass down.

The two measurements of a step lie the farther apart the fewer workers it has, all around the middle
of the run. So a change by the same part every second makes the logarithm of down over up
proportional to the time between, and cancels in the mean of both; a jump makes it the same for all
steps around it, and does not cancel. A trend counts only where the straight line fits and the best
jump does not: chi square of the line within chance (1 %), and that of the jump larger by six, a
likelihood ratio of 20 (Burnham and Anderson 2002 call that "considerably less support").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.stats.student import chi_square_limit
from scaletest.validation.judging.step_parts import (
    StepPart,
    mean_time_s,
    parts_to_judge,
    tail_of_parts,
    throughput_of_parts,
)

# A trend needs so many steps; and the best jump a chi square that is larger by so much.
LEAST_STEPS = 3
LESS_SUPPORT = 6.0
# Two measurements of one step differ by this relative standard deviation without a cause.
NUISANCE = 0.001
# A straight line fits in all but this part of cases.
LINE_ERROR = 0.01
# The passes differ by chance alone in all but this part of cases.
SCATTER_ERROR = 0.20


@dataclass(frozen=True, slots=True)
class ChangeBetweenPasses:
    """One step measured in the pass up and in the pass down."""

    seconds: float  # from the middle of the one to that of the other
    log_ratio: float  # logarithm of the throughput in the pass down over that in the pass up
    error: float  # its standard error

    @property
    def weight(self) -> float:
        """One over the variance."""
        return 1.0 / (self.error**2 + NUISANCE**2)


@dataclass(frozen=True, slots=True)
class MachineTrend:
    """How the machine changed along a run."""

    # its steady relative change per second, as a logarithm; 0 where none is certain
    per_s: float = 0.0
    # By which factor the passes differ more than the scatter of requests explains, to widen errors;
    # 1 where chance explains it. One number for all steps (Birge 1932), since few steps know little
    # each.
    scatter_factor: float = 1.0


STEADY = MachineTrend()


def trend_of_run(steps: Sequence[Sequence[StepPart]]) -> MachineTrend:
    """Return how the machine changed along the run, by both passes of each step's judged parts."""
    known_changes = filter(None, map(_change_between_passes, steps))
    changes = [
        change for change in known_changes if math.isfinite(change.error) and change.seconds > 0
    ]
    gaps_s = [change.seconds for change in changes]
    slope, misfit = _fit_pattern(changes, gaps_s)
    freedom = len(changes) - 1
    # the steady change, unless it may have been a jump
    per_s = 0.0
    if len(changes) >= LEAST_STEPS and misfit <= chi_square_limit(freedom, LINE_ERROR):
        jumps = [[float(gap_s >= least_s) for gap_s in gaps_s] for least_s in gaps_s]
        misfit_of_best_jump = min(_fit_pattern(changes, jump)[1] for jump in jumps)
        if misfit_of_best_jump - misfit >= LESS_SUPPORT:
            per_s = slope
    # a steady change cancels, whether or not it is certain that it was steady
    if freedom < 1 or misfit <= chi_square_limit(freedom, SCATTER_ERROR):
        return MachineTrend(per_s)
    return MachineTrend(per_s, scatter_factor=math.sqrt(misfit / freedom))


def _fit_pattern(
    changes: Sequence[ChangeBetweenPasses], pattern: Sequence[float]
) -> tuple[float, float]:
    """Return the factor on the pattern closest to the changes, and chi square of the rest."""
    pairs = list(zip(changes, pattern, strict=True))
    denominator = sum(change.weight * height**2 for change, height in pairs)
    factor = 0.0
    if denominator:
        moment = sum(change.weight * height * change.log_ratio for change, height in pairs)
        factor = moment / denominator
    chi_square = sum(
        change.weight * (change.log_ratio - factor * height) ** 2 for change, height in pairs
    )
    return factor, chi_square


def _change_between_passes(parts: Sequence[StepPart]) -> ChangeBetweenPasses | None:
    """Return the change of a step from its pass up to its pass down; None without both.

    By its judged parts, and by their usual requests where some were slow.
    """
    sound = [part for part in parts_to_judge(parts) if part.sound]
    up_parts = [part for part in sound if not part.is_descending]
    down_parts = [part for part in sound if part.is_descending]
    if not up_parts or not down_parts:
        return None
    seconds = mean_time_s(down_parts) - mean_time_s(up_parts)
    up, down = tail_of_parts(up_parts), tail_of_parts(down_parts)
    if up.slow or down.slow:
        if not up.usual or not down.usual:
            return None
        error = math.hypot(up.error, down.error)
        return ChangeBetweenPasses(seconds, math.log(up.usual_s / down.usual_s), error)
    up_rate, down_rate = throughput_of_parts(up_parts), throughput_of_parts(down_parts)
    if up_rate.per_s <= 0 or down_rate.per_s <= 0:
        return None
    error = math.hypot(up_rate.error, down_rate.error)
    return ChangeBetweenPasses(seconds, math.log(down_rate.per_s / up_rate.per_s), error)
