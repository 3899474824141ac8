"""The figures of every step, all its measurements together: throughput, ratio, times and faults."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated

from scaletest.causes.steps import Rows
from scaletest.model import Measurement, Record
from scaletest.model.declared import (
    INNER,
    Count,
    Positive,
    Unbounded,
    flat,
    named_in_documents,
)
from scaletest.model.record import Outcome
from scaletest.model.writing import Written
from scaletest.render.text import device_name
from scaletest.stats.percentiles import Distribution, summarise_samples
from scaletest.stats.scaling import MeasuredThroughput
from scaletest.stats.student import t95
from scaletest.validation.judging.doubling import Ratio, doubling_ratio, ratio_of_throughputs
from scaletest.validation.judging.fairness import Fairness, fairness_by_group
from scaletest.validation.judging.measured_step import MeasuredStep, measure_steps
from scaletest.validation.judging.slow_requests import Tail, join_tails
from scaletest.validation.judging.step_parts import StepPart, join_parts, parts_to_judge
from scaletest.validation.judging.throughput import Throughput
from scaletest.validation.plan import Plan

# Figures that are amounts of work, such as frames of transcodes, samples of training, bytes moved,
# so that adding them up over requests makes sense.
FIGURES = ("frames", "samples", "bytes")


@dataclass(frozen=True, slots=True)
class WorkRate:
    """Work a second: frames, samples or bytes."""

    per_s: Unbounded
    half_width_per_s: Annotated[Unbounded, "of the 95 % interval"]


@dataclass(frozen=True, slots=True)
class Step(Written):
    """One number of workers, all repeats together. Times are of successful requests, in seconds."""

    workers: Annotated[Positive, "workers, and requests in flight"]
    throughput: Annotated[Throughput, flat()]
    between: Annotated[
        bool,
        named_in_documents("between_repeats"),
        "whether the interval covers the variation between repeats, not that within the run",
    ]
    samples: Annotated[
        tuple[MeasuredStep, ...],
        named_in_documents("repeats"),
        "one for every measurement of the step",
    ]
    ratio: Ratio | None
    failures: Annotated[Count, "requests that failed for a reason of their own"]
    wait: Annotated[
        Distribution, named_in_documents("wait_s"), "from enqueued to started, successful requests"
    ]
    run: Annotated[Distribution, named_in_documents("run_s"), "run time of successful requests"]
    overhead_s: Annotated[float, "mean time that scaletest itself added to a request"]
    fairness: Annotated[
        Mapping[str, Fairness], "by worker, node and device, where there is more than one"
    ]
    per_device: Annotated[Count, "workers on each device, in a run that compares that; else 0"] = 0
    work: Annotated[
        Mapping[str, Throughput],
        INNER,
        "amounts that requests report, per second, by the name of the figure, such as frames.",
    ] = field(default_factory=dict)
    memory_hits: Annotated[
        Count,
        named_in_documents("memory_limit_hits"),
        "requests that met the limit of a device's memory",
    ] = 0
    nodes: Annotated[
        Mapping[str, Count], "successful requests by node, the most first; all repeats"
    ] = field(default_factory=dict)
    devices: Annotated[Mapping[str, Count], "the same by device, e.g. 'renderD128 of node-a'"] = (
        field(default_factory=dict)
    )

    @property
    def work_rates(
        self,
    ) -> Annotated[
        Mapping[str, WorkRate],
        named_in_documents("work"),
        "work that requests report, per second: frames, samples, bytes",
    ]:
        """Work a second by the name of the figure."""
        return {name: WorkRate(rate.per_s, rate.half_width) for name, rate in self.work.items()}

    @property
    def parts(self) -> tuple[StepPart, ...]:
        """Its measurements, as ratios need them."""
        return tuple(sample.part for sample in self.samples)

    @property
    def judged_parts(self) -> Sequence[StepPart]:
        """The measurements that its throughput uses."""
        return parts_to_judge(self.parts)

    @property
    def used_repeats(self) -> frozenset[int]:
        """The repeats of the measurements that its throughput uses."""
        return frozenset(part.repeat for part in self.judged_parts)

    @property
    def tail(self) -> Tail:
        """The slow requests of all its measurements."""
        return join_tails([sample.tail for sample in self.samples])

    @property
    def stops(self) -> str:
        """Why each measuring of it ended."""
        reasons = (sample.measurement.stop for sample in self.samples)
        return ", ".join(dict.fromkeys(filter(None, reasons)))

    @property
    def measured_s(self) -> float:
        """Seconds under load, of all measurings together."""
        return sum(sample.measurement.measured_s for sample in self.samples)

    @property
    def level(self) -> int:
        """The variable of the scaling law in this run: workers, or workers on each device."""
        return self.per_device or self.workers

    @property
    def rate(self) -> MeasuredThroughput:
        """Its throughput by its level, for figures of scaling."""
        return MeasuredThroughput(self.level, self.throughput.per_s, self.throughput.relative)

    @property
    def sound(self) -> bool:
        """Whether every measurement that its throughput uses may be judged."""
        parts = self.judged_parts
        return bool(parts) and self.throughput.enough and all(part.sound for part in parts)

    @property
    def overhead_share(
        self,
    ) -> Annotated[float, "the overhead as a part of the request's whole time"]:
        """The part of a request's total time that the tester itself cost."""
        total = (self.wait.mean or 0.0) + (self.run.mean or 0.0) + self.overhead_s
        return self.overhead_s / total if total > 0 else 0.0


def summarise(plan: Plan, measurements: Sequence[Measurement], records: Rows) -> list[Step]:
    """Return one Step for every number of workers that was measured, in the plan's order."""
    by_step = [
        [measurement for measurement in measurements if measurement.workers == workers]
        for workers in plan.steps
    ]
    measured_steps, trend = measure_steps(plan, list(filter(None, by_step)), records)
    steps: list[Step] = []
    for samples in measured_steps:
        workers = samples[0].measurement.workers
        parts = [sample.part for sample in samples]
        rate, between = join_parts(plan, parts)

        # the ratio over the step before: by all passes, or by their pairs where there are many
        ratio = None
        if steps and not plan.compares:
            base = steps[-1]
            if base.between and between:
                measured = MeasuredThroughput(workers, rate.per_s, rate.relative)
                ratio = ratio_of_throughputs(base.rate, measured, plan)
            else:
                ratio = doubling_ratio(base.parts, parts, plan, trend=trend)

        # the requests of all measurements, successful or not
        of_step: list[Record] = []
        for sample in samples:
            of_step += records.get(sample.measurement.key, ())
        succeeded = [record for record in of_step if record.ok]
        memory_hits = [record.reply.figures.get("memory_limit_hits") for record in of_step]
        device_names = [
            f"{device_name(record.reply.device)} of {record.reply.node}"
            for record in succeeded
            if record.reply.device
        ]
        steps.append(
            Step(
                workers=workers,
                throughput=rate,
                between=between,
                samples=samples,
                ratio=ratio,
                failures=sum(map(has_failed, of_step)),
                wait=summarise_samples(record.reply.wait_s for record in succeeded),
                run=summarise_samples(record.reply.run_s for record in succeeded),
                overhead_s=summarise_samples(record.overhead_s for record in succeeded).mean or 0.0,
                fairness=fairness_by_group(
                    list(chain.from_iterable(sample.counted for sample in samples))
                ),
                per_device=plan.share(workers) if plan.compares else 0,
                work=_join_work(plan, samples),
                memory_hits=sum(_positive_number(hits) is not None for hits in memory_hits),
                nodes=_count_names(record.reply.node for record in succeeded),
                devices=_count_names(device_names),
            )
        )
    return steps


def _join_work(plan: Plan, samples: Sequence[MeasuredStep]) -> dict[str, Throughput]:
    """Return the work of all measurements, joined as the throughput is, so that they agree.

    A figure that a judged measurement lacks is left out.
    """
    judged = {part.repeat for part in parts_to_judge([sample.part for sample in samples])}
    parts_by_figure: dict[str, list[StepPart]] = defaultdict(list)
    for sample in samples:
        if sample.measurement.repeat in judged:
            for name, rate in work_rates(sample.throughput, sample.counted).items():
                parts_by_figure[name].append(replace(sample.part, throughput=rate))
    return {
        name: join_parts(plan, parts).throughput
        for name, parts in parts_by_figure.items()
        if len(parts) == len(judged)
    }


def _count_names(names: Iterable[str]) -> dict[str, int]:
    """Return how often each name occurs, the most frequent first; "" is none."""
    return dict(Counter(filter(None, names)).most_common())


def has_failed(record: Record) -> bool:
    """Return whether a request failed by itself, not as its client left or the queue was purged."""
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def work_rates(rate: Throughput, counted: Sequence[Record]) -> dict[str, Throughput]:
    """Return work per second of every figure that counted requests report, with 95 % intervals.

    It is requests per second times the mean work of the requests that are counted there, so both
    rest on the same completions after the same warm-up, and a request that reports none has done
    none. The relative errors of the two add in squares. Requests of equal work add nothing to the
    error of the throughput.

    rate: of the counted requests.
    """
    rates = {}
    for name in FIGURES:
        reported = [_positive_number(record.reply.figures.get(name)) for record in counted]
        if not any(reported):
            continue
        amounts = [amount or 0.0 for amount in reported]
        mean = statistics.fmean(amounts)
        error = math.inf
        if len(amounts) > 1:
            spread = statistics.stdev(amounts, mean)
            error = t95(len(amounts) - 1) * spread / mean / math.sqrt(len(amounts))
        per_s = rate.per_s * mean
        half_width = per_s * math.hypot(rate.relative, error)
        rates[name] = replace(rate, per_s=per_s, half_width=half_width)
    return rates


def _positive_number(value: object) -> float | None:
    """Return a figure as a number; None for text and negative amounts, which programs may give."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value > 0 else None
