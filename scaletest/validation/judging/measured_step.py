"""One measurement of a step, judged once from its records."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated

from scaletest.causes.steps import Rows
from scaletest.model import Measurement, Record
from scaletest.model.declared import INNER, flat
from scaletest.model.writing import Written
from scaletest.stats.completions import Completions
from scaletest.validation.judging.drift import Drift, drift_of, has_settled
from scaletest.validation.judging.machine_trend import MachineTrend, trend_of_run
from scaletest.validation.judging.slow_requests import Tail, find_slow
from scaletest.validation.judging.stall import (
    IdleWorker,
    find_stall,
    find_starving_steps,
)
from scaletest.validation.judging.step_parts import StepPart
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.judging.warm_up import cut_warm_up
from scaletest.validation.plan import Plan

# Fewer successful requests tell little of how many were in flight.
LEAST_FOR_LITTLES_LAW = 20


@dataclass(frozen=True, slots=True)
class MeasuredStep(Written):
    """A step, measured once. Times in s; warmup_s counts from the first submission."""

    measurement: Annotated[Measurement, flat("repeat", "scale_s", "measured_s", "stop")]
    throughput: Annotated[Throughput, flat()]
    warmup_s: Annotated[float, "beginning that does not count"]
    settled: Annotated[bool, "whether the warm-up ended in time"]
    drift: Drift
    little: Annotated[
        float | None, "throughput x time in the system / requests in flight; 1 by Little's law"
    ]
    began_s: Annotated[float, INNER]
    completions: Annotated[Completions, INNER, "all of them, those of the warm-up too."]
    counted: Annotated[Sequence[Record], INNER, "records that the throughput is computed from."]
    counted_completions: Annotated[Completions, INNER, "of these records."]
    lost: Annotated[
        int, INNER, "records that were written and are not there, below 0 when there are too many."
    ] = 0
    stall: Annotated[IdleWorker | None, INNER, "the worker that stopped meanwhile."] = None
    tail: Annotated[Tail, flat("slow"), "its slow requests."] = field(
        default_factory=lambda: find_slow(Completions({}))
    )
    middle_s: Annotated[float, INNER, "the middle of the measurement on the clock of Redis."] = 0.0
    starved: Annotated[IdleWorker | None, INNER, "the worker that others kept waiting."] = None

    @property
    def sound(self) -> bool:
        """Whether the throughput may be judged: it is whole and steady."""
        return (
            self.measurement.stop != Stop.ENDED
            and not self.lost
            and self.throughput.enough
            and self.settled
            and not self.drift.unsteady
            and not self.stall
        )

    @property
    def part(self) -> StepPart:
        """The figures of it that ratios need."""
        return StepPart(
            workers=self.measurement.workers,
            repeat=self.measurement.repeat,
            seconds=self.measurement.measured_s,
            middle_s=self.middle_s,
            throughput=self.throughput,
            tail=self.tail,
            sound=self.sound,
        )


def measure_steps(
    plan: Plan,
    measurements_by_step: Sequence[Sequence[Measurement]],
    records: Rows,
) -> tuple[list[tuple[MeasuredStep, ...]], MachineTrend]:
    """Return the measurements of every step, and how the machine changed meanwhile.

    measurements_by_step: those of each step, with ever more workers.
    """
    completions = {}
    for measurement in chain.from_iterable(measurements_by_step):
        completions[measurement.key] = Completions.of(records.get(measurement.key, ()))
    starved = find_starving_steps(measurements_by_step, completions)

    def measure_all(trend_per_s: float) -> list[tuple[MeasuredStep, ...]]:
        """Return the measurements of every step without that trend."""
        steps = []
        for measurements in measurements_by_step:
            step = [
                measure_step(
                    plan,
                    measurement,
                    records.get(measurement.key, ()),
                    completions[measurement.key],
                    starved=starved.get(measurement.workers),
                    trend_per_s=trend_per_s,
                )
                for measurement in measurements
            ]
            steps.append(tuple(step))
        return steps

    steps = measure_all(0.0)
    trend = trend_of_steps(steps)
    if trend.per_s:  # a steady change along the whole run is no fault of a step
        steps = measure_all(trend.per_s)
        # with the parts that may be judged once the change is taken out, as later callers get it
        trend = trend_of_steps(steps)
    return steps, trend


def trend_of_steps(steps: Iterable[Sequence[MeasuredStep]]) -> MachineTrend:
    """Return how the machine's speed changed along a run of these steps."""
    return trend_of_run([[measured.part for measured in step] for step in steps])


def measure_step(
    plan: Plan,
    measurement: Measurement,
    rows: Sequence[Record],
    completions: Completions,
    *,
    starved: IdleWorker | None = None,
    trend_per_s: float = 0.0,
) -> MeasuredStep:
    """Return the figures of one measurement of a step from its records and their completions.

    starved: the worker that others kept waiting here or in another measurement of the step.
    trend_per_s: the trend of the run, no fault of it.
    """
    submitted = (
        record.reply.started_s - record.reply.wait_s for record in rows if record.reply.started_s
    )
    began_s = min(submitted, default=0.0)

    # what counts: the completions after the warm-up, and the records in the time of all workers
    judged = completions.dealt_in_turn if starved else completions
    warm = cut_warm_up(judged, plan.warmup_s, began_s, measurement.warm_at_s)
    begin_s, end_s = warm.rest.span
    counted = [record for record in rows if record.ok and record.reply.ended_s >= begin_s]
    rate = throughput(warm.rest, measurement.workers)
    warmup_s = 0.0
    if warm.cut_s and began_s:
        warmup_s = max(0.0, warm.cut_s - began_s)

    # requests in flight by Little's law, those that failed included
    little = None
    if rate.enough and len(counted) >= LEAST_FOR_LITTLES_LAW:
        in_system_s = 0.0
        for record in rows:
            submitted_s = record.reply.started_s - record.reply.wait_s
            ended_s = submitted_s + record.total_s
            in_system_s += max(0.0, min(end_s, ended_s) - max(begin_s, submitted_s))
        little = in_system_s / (end_s - begin_s) / measurement.workers

    return MeasuredStep(
        measurement=measurement,
        throughput=rate,
        warmup_s=warmup_s,
        settled=has_settled(warm, trend_per_s),
        drift=drift_of(warm.rest, rate, trend_per_s),
        little=little,
        began_s=began_s,
        completions=completions,
        counted=counted,
        counted_completions=Completions.of(counted),
        lost=measurement.requests - len(rows) if measurement.requests is not None else 0,
        stall=find_stall(warm.rest),
        tail=find_slow(warm.rest),
        middle_s=(begin_s + end_s) / 2.0,
        starved=starved,
    )
