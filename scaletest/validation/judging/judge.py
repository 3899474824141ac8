"""The verdict of a validation. Pure: the same steps give the same verdict."""

import shlex
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from scaletest.causes.causes import Causes
from scaletest.causes.interference import Interference
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


def judge(
    plan: Plan,
    steps: Sequence[Step],
    *,
    interrupted: str = "",
    thresholds: Sequence[ThresholdResult] = (),
    shared: Sharing | None = None,
    causes: Causes | None = None,
    worst: Mapping[tuple[int, int], Interference] = MappingProxyType({}),
) -> Verdict:
    """Return the verdict of a run.

    shared: the best number of workers per device, where the run compares them. causes: where the
    requests of the doubling that failed spent more time, if the records have it. worst: what
    disturbed each measurement most, if there are samples of the nodes.
    """
    # more failed requests than the plan tolerates
    failures = None
    count = sum(step.failures for step in steps)
    if count > plan.tolerate_failures:
        blame = ""
        memory_hits = sum(step.memory_hits for step in steps)
        if memory_hits:
            blame = f"; {memory_hits} reached the limit of a device's memory"
        remedy = "read the error in the report, or try the workload alone: scaletest worker --once"
        if plan.command:
            remedy += f" -- {shlex.join(plan.command)}"
        # device memory may be too small for some numbers of workers per device
        fitting = [str(step.per_device) for step in steps if not step.failures]
        if plan.compares and fitting and memory_hits:
            remedy += f"; or leave out what does not fit: <per_device> {','.join(fitting)}"
        reason = f"{count} requests failed, {plan.tolerate_failures} are tolerated{blame}"
        failures = Ground(Rank.REFUTED, reason, remedy)
    # where requests fail, a worker that seems to have stopped or a late client proves nothing
    doubt = Rank.OPEN if failures else Rank.NOT_THE_SUBJECT
    stopped = Ground(Rank.OPEN, f"interrupted: {interrupted}", RESUME) if interrupted else None
    # A base that was too slow makes every ratio good, whatever workers share: above 1.1 times the
    # ideal ratio they were not alike.
    too_good = too_good_lines(steps, 1.1)
    unlike_remedy = "compare run times by worker and device, and measure with <repeats> 3"
    best = shared.sentence if shared else ""
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
            step_missing(plan, steps, worst),
            undecided_ratio(plan, steps, shared, worst),
            Ground(Rank.OPEN, too_good[0], unlike_remedy) if too_good else None,
            ground_of(thresholds, Rank.OPEN),
            # it is met
            Ground(Rank.MET, passed_reason(plan, steps, thresholds, best)),
        ]
    )
