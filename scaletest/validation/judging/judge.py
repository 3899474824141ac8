"""The verdict of a validation. Pure: the same steps give the same verdict."""

import shlex
from collections.abc import Sequence
from types import MappingProxyType

from scaletest.causes.causes import Causes
from scaletest.model import Verdict
from scaletest.stats.thresholds import ThresholdResult, ground_of
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds
from scaletest.validation.judging.doublings import (
    failed_ratio,
    passed_reason,
    undecided_ratio,
)
from scaletest.validation.judging.measurement_grounds import (
    RESUME,
    Disturbances,
    measurement_cut_short,
    records_lost,
    step_missing,
    tester_measured,
    worker_stalled,
)
from scaletest.validation.judging.sharing import Sharing
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.warnings import too_good_lines
from scaletest.validation.plan import Plan

# A base that was too slow makes every ratio good, whatever workers share: above so many times the
# ideal ratio the steps were not alike.
IMPOSSIBLE_RATIO = 1.1


def judge(
    plan: Plan,
    steps: Sequence[Step],
    *,
    interrupted: str = "",
    thresholds: Sequence[ThresholdResult] = (),
    sharing: Sharing | None = None,
    causes: Causes | None = None,
    disturbances: Disturbances = MappingProxyType({}),
) -> Verdict:
    """Return the verdict of a run.

    interrupted: what ended the run early, "" for nothing. sharing: the best number of workers per
    device, where the run compares them. causes: where the requests of the doubling that failed
    spent more time, if the records have it.
    """
    failures = _too_many_failures(plan, steps)
    # where requests fail, a worker that seems to have stopped or a late client proves nothing
    doubt = Rank.OPEN if failures else Rank.NOT_THE_SUBJECT
    stopped = Ground(Rank.OPEN, f"interrupted: {interrupted}", RESUME) if interrupted else None
    unlike = None
    too_good = too_good_lines(steps, IMPOSSIBLE_RATIO)
    if too_good:
        remedy = "compare run times by worker and device, and measure with <repeats> 3"
        unlike = Ground(Rank.OPEN, too_good[0], remedy)
    best = sharing.sentence if sharing else ""
    return verdict_of_grounds(
        [
            # something else was measured
            records_lost(steps),
            worker_stalled(steps, doubt),
            tester_measured(steps, doubt),
            # what was wanted is refuted
            failures,
            failed_ratio(plan, steps, causes, doubt),
            ground_of(thresholds, Rank.REFUTED),
            # it is open
            stopped,
            measurement_cut_short(steps),
            step_missing(plan, steps, disturbances),
            undecided_ratio(plan, steps, sharing, disturbances),
            unlike,
            ground_of(thresholds, Rank.OPEN),
            # it is met
            Ground(Rank.MET, passed_reason(plan, steps, thresholds, best)),
        ]
    )


def _too_many_failures(plan: Plan, steps: Sequence[Step]) -> Ground | None:
    """Return a ground for FAIL where more requests failed than the plan tolerates."""
    count = sum(step.failures for step in steps)
    if count <= plan.tolerate_failures:
        return None
    reason = f"{count} requests failed, {plan.tolerate_failures} are tolerated"
    remedy = "read the error in the report, or try the workload alone: scaletest worker --once"
    if plan.command:
        remedy += f" -- {shlex.join(plan.command)}"
    memory_hits = sum(step.memory_hits for step in steps)
    if memory_hits:
        reason += f"; {memory_hits} reached the limit of a device's memory"
        # device memory may be too small for some numbers of workers per device
        fitting = [str(step.per_device) for step in steps if not step.failures]
        if plan.compares and fitting:
            remedy += f"; or leave out what does not fit: <per_device> {','.join(fitting)}"
    return Ground(Rank.REFUTED, reason, remedy)
