"""Grounds against a verdict that lie in the measurements: incomplete, unsteady, or of the tester.

A step that was not steady, or has too few requests, can neither pass nor fail a doubling. Too many
failed requests refute a run although a worker seems to have stopped, or the client to be late: a
worker whose requests fail completes nothing, and they end sooner than the client replaces them. So
these are given the rank of their doubt.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

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
RESUME = "continue it where it ended: <resume> with the name of this run"
# The part of a request's time that the tester may cost; above there is no verdict.
MOST_OVERHEAD = 0.10
# Requests in flight by the records, over those that the client kept in flight (Little's law). Below
# this range the client left workers idle; above it there are records of requests that were never in
# flight.
LEAST_IN_FLIGHT = 0.90
MOST_IN_FLIGHT = 1.05
# What disturbed each measurement most, by its key, where that is known.
Disturbances = Mapping[tuple[int, int], Interference]


def all_measured(plan: Plan, steps: Sequence[Step]) -> bool:
    """Return whether all steps were measured as planned, and every pass up has its pass down."""
    measured_keys = {measured.measurement.key for _, measured in _measurements_of(steps)}
    wanted_keys = set(itertools.product(plan.steps, range(2 * plan.repeats)))
    wanted_keys |= {(workers, repeat + 1) for workers, repeat in measured_keys if repeat % 2 == 0}
    return wanted_keys <= measured_keys


def records_lost(steps: Sequence[Step]) -> Ground | None:
    """Return a ground for INVALID where not as many records are there as were written."""
    for step, measured in _measurements_of(steps):
        if measured.lost:
            workers = plural(step.workers, "worker")
            written = measured.measurement.requests or 0
            found = written - measured.lost
            reason = f"{found} records with {workers} are there, but {written} were written"
            return Ground(Rank.NOT_THE_SUBJECT, reason, "measure what is damaged again: <resume>")
    return None


def worker_stalled(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Return a ground of that rank where a worker stopped during a step.

    Then fewer than planned did the rest.
    """
    for step, measured in _measurements_of(steps):
        if measured.stall and not step.sound:
            return Ground(
                doubt,
                f"with {plural(step.workers, 'worker')}, {measured.stall.worker} finished"
                f" nothing in the last {measured.stall.seconds:.1f} s, much longer than any"
                " request took",
                "check whether it, its device or its node stopped: see the end of workers.log,"
                " or of the pod's log",
            )
    return None


def tester_measured(steps: Sequence[Step], doubt: Rank) -> Ground | None:
    """Return a ground for INVALID where the tester was measured instead of the workload.

    One of rank `doubt` where the client may have been late.
    """
    for step, measured in _measurements_of(steps):
        workers = plural(step.workers, "worker")
        if step.overhead_share > MOST_OVERHEAD:
            return Ground(
                Rank.NOT_THE_SUBJECT,
                f"with {workers} scaletest itself cost {step.overhead_share:.0%} of a request's"
                " time",
                "use longer requests, or run the client and Redis on machines of their own",
            )
        in_flight = measured.little
        if in_flight is not None and not LEAST_IN_FLIGHT <= in_flight <= MOST_IN_FLIGHT:
            return Ground(
                doubt,
                f"with {workers} the records show {in_flight:.2f} of the requests in flight"
                " (Little's law): records are missing, or the client could not keep up",
                "run the client on a machine of its own, or use longer requests",
            )
    return None


def measurement_cut_short(steps: Sequence[Step]) -> Ground | None:
    """Return a ground for INVALID where a worker died, or the run was ended, in a measurement."""
    for step, measured in _measurements_of(steps):
        if measured.measurement.stop == Stop.ENDED:
            workers = plural(step.workers, "worker")
            return Ground(Rank.OPEN, f"the measurement with {workers} was cut short", RESUME)
    return None


def step_missing(plan: Plan, steps: Sequence[Step], disturbances: Disturbances) -> Ground | None:
    """Return a ground for INVALID where a step is missing, too short, or was not steady."""
    longer = "give a longer <max_step>"
    if plan.step_s:
        longer = f"give a longer <step_time> than {plan.step_s:g} s"
    for step, measured in _measurements_of(steps):
        workers = plural(step.workers, "worker")
        if step.throughput.completions == 0:
            reason = f"no request was completed with {workers}"
            return Ground(Rank.OPEN, reason, f"{longer}, or correct <seconds>")
        if not step.throughput.enough:
            fewest = min(sample.throughput.completions for sample in step.samples)
            reason = (
                f"too few requests completed with {workers}: {fewest} in one pass (needs"
                f" {MIN_COMPLETIONS}, and {MIN_COMPLETIONS_PER_WORKER} of every worker)"
            )
            return Ground(Rank.OPEN, reason, f"{longer}, or correct <seconds>")
        if step.sound:
            continue
        if measured.drift.unsteady:
            change = f"{measured.drift.shift:+.1%}"
            reason = f"with {workers} throughput changed by {change} while measured"
            return Ground(Rank.OPEN, reason, _remedy_for_change(measured, disturbances))
        if not measured.settled:
            reason = f"with {workers} throughput had not settled by the end of the step"
            remedy = f"{longer}, or say how long warming up takes with <warmup>"
            return Ground(Rank.OPEN, reason, remedy)
    if not all_measured(plan, steps):
        return Ground(Rank.OPEN, "not every step was measured", "run it again to the end")
    return None


def _measurements_of(steps: Sequence[Step]) -> Iterator[tuple[Step, MeasuredStep]]:
    """Yield each measurement with its step, in order."""
    for step in steps:
        for measured in step.samples:
            yield step, measured


def _remedy_for_change(measured: MeasuredStep, disturbances: Disturbances) -> str:
    """Return the remedy for a throughput that changed within one measured step."""
    disturbance = disturbances.get(measured.measurement.key)
    if disturbance:
        return f"{disturbance.sentence}: stop that, and run it again"
    at_s = measured.warmup_s + measured.drift.shift_at_s
    if measured.drift.shift > 0:
        return f"it may have been warming up: try <warmup> {math.ceil(at_s)}"
    return f"find what changed after {at_s:.0f} s ({CHANGES}), and run it again"


def find_disturbances(
    steps: Sequence[Step], interferences: Sequence[Interference]
) -> dict[tuple[int, int], Interference]:
    """Return what disturbed each measurement most, by its key, where that is known."""
    disturbances = {}
    for _, measured in _measurements_of(steps):
        end_s = measured.began_s + measured.measurement.measured_s
        disturbance = costliest_between(interferences, measured.began_s, end_s)
        if disturbance:
            disturbances[measured.measurement.key] = disturbance
    return disturbances
