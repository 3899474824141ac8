"""Grounds against a verdict that lie in the measurements: incomplete, unsteady, or of the tester.

A step that was not steady, or has too few requests, can neither pass nor fail a doubling. Too many
failed requests refute a run although a worker seems to have stopped, or the client to be late: a
worker whose requests fail completes nothing, and they end sooner than the client replaces them. So
these are given the rank of their doubt.
"""

import itertools
import math
from collections.abc import Mapping, Sequence

from scaletest.causes.interference import Interference, costliest_between
from scaletest.render.numbers import plural
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.judging.measured_step import MeasuredStep
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.judging.throughput import MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER
from scaletest.validation.plan import Plan

# What may slow a machine down for a while, where no samples of its resources say more.
CHANGES = "thermal throttling, frequency scaling, other programs on the machine"
POSSIBLE_CAUSES = f"possible causes: {CHANGES}"
RESUME = "continue it where it ended: <resume>"
# The part of a request's time that the tester may cost; above there is no verdict.
MOST_OVERHEAD = 0.10
# Requests in flight by the records over those that the client kept in flight. Below this range the
# client left workers idle; above it there are records of requests that were never in flight.
LITTLE = (0.90, 1.05)


def records_lost(steps: Sequence[Step]) -> Ground | None:
    """Return not the subject where records are missing, or too many: a file was cut."""
    for step in steps:
        at = plural(step.workers, "worker")
        for measured in step.samples:
            if measured.lost:
                reason = f"{-measured.lost} records with {at} are too many"
                if measured.lost > 0:
                    count = measured.measurement.requests
                    reason = f"{measured.lost} of {count} records with {at} are missing"
                return Ground(
                    Rank.NOT_THE_SUBJECT, reason, "measure what is damaged again: <resume>"
                )
    return None


def worker_stalled(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Return a doubt where a worker stopped during a step: fewer than planned did the rest."""
    for step in steps:
        for measured in _doubtful(step):
            if measured.stall:
                return Ground(
                    doubt,
                    f"with {plural(step.workers, 'worker')}, {measured.stall.worker} finished"
                    f" nothing in the last {measured.stall.silent_s:.1f} s, much longer than any"
                    " request took",
                    "check whether it, its device or its node stopped: see the end of workers.log,"
                    " or of the pod's log",
                )
    return None


def tester_measured(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Return not the subject where the tester was measured instead of the workload.

    A doubt where the client may have been late.
    """
    for step in steps:
        at = plural(step.workers, "worker")
        if step.overhead_share > MOST_OVERHEAD:
            return Ground(
                Rank.NOT_THE_SUBJECT,
                f"with {at} the tester itself cost {step.overhead_share:.0%} of a request's time",
                "use longer requests, or run the client and Redis on machines of their own",
            )
        for measured in step.samples:
            if measured.little is not None and not LITTLE[0] <= measured.little <= LITTLE[1]:
                return Ground(
                    doubt,
                    f"with {at} the records show {measured.little:.2f} of the requests in flight "
                    "(Little's law): records are missing, or the client could not keep up",
                    "run the client on a machine of its own, or use longer requests",
                )
    return None


def measurement_cut_short(steps: Sequence[Step]) -> Ground | None:
    """Return open where a measurement is incomplete: a worker died, or the run was ended."""
    for step in steps:
        if any(measured.measurement.stop == Stop.ENDED for measured in step.samples):
            return Ground(
                Rank.OPEN,
                f"the measurement with {plural(step.workers, 'worker')} was cut short",
                RESUME,
            )
    return None


def step_missing(
    plan: Plan, steps: Sequence[Step], complete: bool, worst: Mapping[tuple[int, int], Interference]
) -> Ground | None:
    """Return open where a step is missing, has too few requests, or was not steady."""
    longer = "give a longer <max_step>"
    if plan.step_s:
        longer = f"give a longer <step_time> than {plan.step_s:g} s"
    for step in steps:
        if step.throughput.completions == 0:
            return Ground(
                Rank.OPEN,
                f"no request was completed with {plural(step.workers, 'worker')}",
                f"{longer}, or correct <seconds>",
            )
        if not step.throughput.enough:
            return Ground(Rank.OPEN, _too_few(step), f"{longer}, or correct <seconds>")
        at = f"with {plural(step.workers, 'worker')}"
        for measured in _doubtful(step):
            if measured.drift.unsteady:
                return Ground(
                    Rank.OPEN,
                    f"{at} throughput changed by {measured.drift.shift:+.1%} while measured",
                    _steadier(measured, worst),
                )
            if not measured.settled:
                return Ground(
                    Rank.OPEN,
                    f"{at} throughput had not settled by the end of the step",
                    f"{longer}, or say how long warming up takes with <warmup>",
                )
    if not complete:
        return Ground(Rank.OPEN, "not every step was measured", "run it again to the end")
    return None


def _doubtful(step: Step) -> Sequence[MeasuredStep]:
    """Return the measurements of a step that may not be judged; none of a sound one."""
    return () if step.sound else step.samples


def _too_few(step: Step) -> str:
    """Return how many requests the shortest measurement of a step has, and how many each needs."""
    fewest = min(
        [sample.throughput.completions for sample in step.samples if not sample.throughput.enough],
        default=step.throughput.completions,
    )
    once = f"{fewest}"
    if len(step.samples) > 1:
        once = f"{fewest} in one of {len(step.samples)} measurements"
    return (
        f"too few requests completed with {plural(step.workers, 'worker')}: {once} "
        f"(needs {MIN_COMPLETIONS}, and {MIN_COMPLETIONS_PER_WORKER} of every worker)"
    )


def _steadier(sample: MeasuredStep, worst: Mapping[tuple[int, int], Interference]) -> str:
    """Return the remedy for a throughput that changed within one measured step."""
    disturbance = worst.get(sample.measurement.key)
    if disturbance:
        return f"{disturbance.sentence}: end that, and run it again"
    at_s = sample.warmup_s + sample.drift.shift_at_s
    if sample.drift.shift > 0:
        return f"it may have been warming up: try <warmup> {math.ceil(at_s)}"
    return f"find what changed after {at_s:.0f} s ({CHANGES}), and run it again"


def worst_disturbances(
    steps: Sequence[Step], disturbed: Sequence[Interference]
) -> dict[tuple[int, int], Interference]:
    """Return what disturbed each measurement most, by its key, where that is known."""
    worst = {}
    for sample in itertools.chain.from_iterable(step.samples for step in steps):
        end_s = sample.began_s + sample.measurement.measured_s
        spell = costliest_between(disturbed, sample.began_s, end_s)
        if spell:
            worst[sample.measurement.key] = spell
    return worst
