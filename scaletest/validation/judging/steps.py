"""The figures of every step from its records: throughput, ratio, times, fairness, and faults.

How evenly the throughput of a step is shared out between workers, nodes or devices.

Amounts are completions or rates of groups that had the same chance: count in one window, and pass a
group that did nothing as 0, since one that is absent would not count.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Annotated

from scaletest.causes.steps import Rows
from scaletest.model import Measurement, Record
from scaletest.model.declared import INNER, Count, Positive, Unbounded, called, choice, flat
from scaletest.model.record import Outcome
from scaletest.model.writing import Written
from scaletest.render.text import device_name
from scaletest.stats.completions import Ends, deal_in_turn, ends_of, span
from scaletest.stats.percentiles import Distribution, summary
from scaletest.stats.scaling import MeasuredThroughput
from scaletest.stats.student import t95
from scaletest.validation.judging.doubling import (
    MachineTrend,
    Ratio,
    StepPart,
    doubling,
    judged,
    pairs_of,
    ratio,
    run_course,
    together,
)
from scaletest.validation.judging.drift import Drift, beyond_noise, drift
from scaletest.validation.judging.slow_requests import Tail, joined_tails, tail, usual
from scaletest.validation.judging.stall import (
    STARVED_RATIO,
    Stall,
    StarvedWorker,
    find_starved,
    rate_together,
    stall,
)
from scaletest.validation.judging.stopping import Stop, trimmed
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.judging.work import Work, hits, work
from scaletest.validation.plan import Plan


@dataclass(frozen=True, slots=True)
class GroupShare(Written):
    """One group: its amount, and its part of the whole, from 0 to 1."""

    name: str
    amount: float
    share: Annotated[float, "part of the whole"]


@dataclass(frozen=True, slots=True)
class Fairness(Written):
    """Shares, largest first."""

    shares: Annotated[tuple[GroupShare, ...], called("groups"), "most first"]
    ratio: Annotated[Unbounded, "largest over smallest"]


def fairness(amounts: Mapping[str, float]) -> Fairness | None:
    """The shares of groups by name; None when there is no group or none of them did anything."""
    total = sum(amounts.values())
    if total <= 0:
        return None
    ordered = sorted(amounts.items(), key=lambda group: (-group[1], group[0]))
    most, least = ordered[0][1], ordered[-1][1]
    shares = tuple(GroupShare(name, amount, amount / total) for name, amount in ordered)
    return Fairness(shares, most / least if least > 0 else math.inf)


GROUPS = ("worker", "pod", "node", "device")
# From this many pairs of ways on, the interval is the one between them.
REPEATS_FOR_INTERVAL = 3
# What the interval of a step covers.
BETWEEN_REPEATS, WITHIN_RUN = "between repeats", "within the run"


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
    counted: Annotated[Sequence[Record], INNER, "records behind the throughput."]
    lost: Annotated[
        int, INNER, "records that were written and are not there, below 0 when there are too many."
    ] = 0
    stall: Annotated[Stall | None, INNER, "the worker that stopped meanwhile."] = None
    tail: Annotated[Tail, flat("slow"), "its slow requests."] = field(
        default_factory=lambda: tail({})
    )
    middle_s: Annotated[float, INNER, "the middle of the measurement on the clock of Redis."] = 0.0
    starved: Annotated[StarvedWorker | None, INNER, "the worker that others kept waiting."] = None

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
        at = self.measurement
        return StepPart(
            at.workers,
            at.repeat,
            at.measured_s,
            self.middle_s,
            self.throughput,
            self.tail,
            self.sound,
        )


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
        INNER,
        "whether the interval is the one between pairs of ways; else it is the one within them.",
    ]
    samples: Annotated[
        tuple[MeasuredStep, ...], called("repeats"), "one for every measurement of the step"
    ]
    ratio: Ratio | None
    efficiency: Annotated[float | None, "throughput over that of as many single workers"]
    failures: Annotated[Count, "requests that failed for a reason of their own"]
    wait: Annotated[Distribution, called("wait_s"), "from enqueued to started, successful requests"]
    run: Annotated[Distribution, called("run_s"), "run time of successful requests"]
    overhead_s: Annotated[float, "mean time that the tester itself added to a request"]
    suspects: Annotated[tuple[str, ...], "workers that failed all of at least five requests"]
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
        Count, called("memory_limit_hits"), "requests that met the limit of a device's memory"
    ] = 0
    nodes: Annotated[
        Mapping[str, Count], "successful requests by node, the most first; all repeats"
    ] = field(default_factory=dict)
    devices: Annotated[Mapping[str, Count], "the same by device, as in 'renderD128 of node-a'"] = (
        field(default_factory=dict)
    )

    @property
    def interval(
        self,
    ) -> Annotated[
        str,
        choice((BETWEEN_REPEATS, WITHIN_RUN)),
        "variation that the interval of the rate covers",
    ]:
        """Variation that the interval of the rate covers."""
        return BETWEEN_REPEATS if self.between else WITHIN_RUN

    @property
    def work_rates(
        self,
    ) -> Annotated[
        Mapping[str, WorkRate],
        called("work"),
        "work that requests report, per second: frames, samples, bytes",
    ]:
        """Work a second by the name of the figure."""
        return {name: WorkRate(rate.per_s, rate.half_width) for name, rate in self.work.items()}

    @property
    def parts(self) -> tuple[StepPart, ...]:
        """Its measurements, as ratios need them."""
        return tuple(_parts(self.samples))

    @property
    def judged_parts(self) -> Sequence[StepPart]:
        """The measurements that its throughput uses."""
        return judged(self.parts)

    @property
    def used_repeats(self) -> frozenset[int]:
        """The repeats of the measurements that its throughput uses."""
        return frozenset(part.repeat for part in self.judged_parts)

    @property
    def tail(self) -> Tail:
        """The slow requests of all its measurements."""
        return joined_tails([sample.tail for sample in self.samples])

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
    """One Step for every number of workers that was measured, in the plan's order."""
    samples = _samples(plan, measurements, records)
    course = course_of(samples)
    if course.per_s:  # a steady change along the whole run is no fault of a step
        samples = _samples(plan, measurements, records, course.per_s)
        # with the parts that may be judged once the change is taken out, as later callers get it
        course = course_of(samples)
    steps: list[Step] = []
    for own in samples:
        own_records = chain.from_iterable(records.get(each.measurement.key, ()) for each in own)
        steps.append(_step(plan, own, list(own_records), steps, course))
    return steps


def course_of(samples: Iterable[Sequence[MeasuredStep]]) -> MachineTrend:
    """How the machine's speed changed along a run."""
    return run_course(list(map(_parts, samples)))


def _parts(samples: Iterable[MeasuredStep]) -> list[StepPart]:
    """The measurements of a step, as ratios need them."""
    return [sample.part for sample in samples]


def _samples(
    plan: Plan, measurements: Sequence[Measurement], records: Rows, per_s: float = 0.0
) -> list[tuple[MeasuredStep, ...]]:
    """The measurements of every step that has any, summarised."""
    samples: list[tuple[MeasuredStep, ...]] = []
    fewer_did = 0.0  # requests/s with fewer workers, all together
    for workers in plan.steps:
        of_step = [each for each in measurements if each.workers == workers]
        if not of_step:
            continue
        ends = [ends_of(records.get(each.key, ())) for each in of_step]
        all_did = statistics.fmean(map(rate_together, ends))
        starving = None
        if all_did < STARVED_RATIO * fewer_did:
            starving = next(filter(None, map(find_starved, ends)), None)
        fewer_did = all_did
        samples.append(
            tuple(
                measured_step(plan, each, records.get(each.key, ()), per_s, starving)
                for each in of_step
            )
        )
    return samples


def measured_step(
    plan: Plan,
    measurement: Measurement,
    rows: Sequence[Record],
    per_s: float = 0.0,
    starved: StarvedWorker | None = None,
) -> MeasuredStep:
    """The figures of one measurement of a step.

    per_s: the trend of the run, no fault of it. starved: the worker that others kept waiting here
    or in another measurement of the step.
    """
    submitted = (
        record.reply.started_s - record.reply.wait_s for record in rows if record.reply.started_s
    )
    began_s = min(submitted, default=0.0)
    ends = deal_in_turn(ends_of(rows)) if starved else ends_of(rows)
    warm = trimmed(ends, plan.warmup_s, began_s, measurement.warm_at_s, per_s)
    rate = throughput(warm.ends, measurement.workers)
    first, last = span(warm.ends)
    counted = [record for record in rows if record.ok and record.reply.ended_s >= first]
    little = None
    if rate.enough and len(counted) >= 20:
        little = _in_flight(rows, first, last) / measurement.workers
    warmup_s = max(0.0, warm.cut_s - began_s) if warm.cut_s and began_s else 0.0
    lost = measurement.requests - len(rows) if measurement.requests is not None else 0
    return MeasuredStep(
        measurement,
        rate,
        warmup_s,
        warm.settled,
        _drift(warm.ends, rate, per_s),
        little,
        began_s,
        counted,
        lost,
        stall(warm.ends),
        tail(warm.ends),
        (first + last) / 2.0,
        starved,
    )


def _drift(ends: Ends, rate: Throughput, per_s: float) -> Drift:
    """What happened within one measurement."""
    if not rate.enough:
        return Drift()
    # a slow request is a dip, and no lasting change
    within = replace(drift(usual(ends), per_s), dips=drift(ends, per_s).dips)
    return beyond_noise(within, rate.relative)


def _in_flight(rows: Sequence[Record], first: float, last: float) -> float:
    """Mean number of requests in flight from `first` to `last`, failed ones included."""
    spent = 0.0
    for record in rows:
        begun = record.reply.started_s - record.reply.wait_s
        spent += max(0.0, min(last, begun + record.total_s) - max(first, begun))
    return spent / (last - first)


def _step(
    plan: Plan,
    samples: tuple[MeasuredStep, ...],
    records: Sequence[Record],
    before: list[Step],
    course: MachineTrend,
) -> Step:
    """One step from all its measurements and records. before: the steps with fewer workers."""
    workers = samples[0].measurement.workers
    parts = _parts(samples)
    rate = _joined(plan, parts)
    succeeded = [record for record in records if record.ok]
    return Step(
        workers=workers,
        throughput=rate,
        between=_between(plan, parts),
        samples=samples,
        ratio=_ratio(plan, before, parts, rate, course),
        efficiency=_efficiency(workers, rate, before),
        failures=sum(failed(record) for record in records),
        wait=summary(record.reply.wait_s for record in succeeded),
        run=summary(record.reply.run_s for record in succeeded),
        overhead_s=summary(record.overhead_s for record in succeeded).mean or 0.0,
        suspects=suspects(records),
        fairness=_fairness(list(chain.from_iterable(sample.counted for sample in samples))),
        per_device=plan.share(workers) if plan.compares else 0,
        work=_work(plan, samples),
        memory_hits=hits(records),
        nodes=_counted(record.reply.node for record in succeeded),
        devices=_counted(
            f"{device_name(record.reply.device)} of {record.reply.node}"
            for record in succeeded
            if record.reply.device
        ),
    )


def _efficiency(workers: int, rate: Throughput, before: Sequence[Step]) -> float | None:
    """Throughput per worker over that of the first step; None where the first has none."""
    base = before[0].throughput.per_s / before[0].workers if before else rate.per_s / workers
    if base <= 0:
        return None
    return rate.per_s / (workers * base)


def _work(plan: Plan, samples: Sequence[MeasuredStep]) -> dict[str, Throughput]:
    """The figures of all measurements of a step, joined as its throughput is, so they agree."""
    used = {part.repeat for part in judged(_parts(samples))}
    samples = [sample for sample in samples if sample.measurement.repeat in used]
    reported: list[Work] = [work(sample.throughput, sample.counted) for sample in samples]
    joined_work = {}
    for name in reported[0]:
        if all(name in figures for figures in reported):
            parts = [
                replace(sample.part, throughput=figures[name])
                for sample, figures in zip(samples, reported, strict=True)
            ]
            joined_work[name] = _joined(plan, parts)
    return joined_work


def _ratio(
    plan: Plan,
    before: Sequence[Step],
    parts: Sequence[StepPart],
    rate: Throughput,
    course: MachineTrend,
) -> Ratio | None:
    """The ratio over the step before: by both ways, or by the pairs of ways where there are many.

    None for the first step, and in a run that compares numbers of workers per device.
    """
    if not before or plan.compares:
        return None
    base = before[-1]
    if not (base.between and _between(plan, parts)):
        return doubling(base.parts, parts, plan, course=course)
    doublings = len(plan.steps) - 1
    return ratio(
        (base.workers, base.throughput), (parts[0].workers, rate), plan.scale, doublings=doublings
    )


def _between(plan: Plan, parts: Sequence[StepPart]) -> bool:
    """Whether the interval of a step is the one between its pairs of ways."""
    return plan.repeats > 1 and len(pairs_of(judged(parts))) >= REPEATS_FOR_INTERVAL


def _joined(plan: Plan, parts: Sequence[StepPart]) -> Throughput:
    """The throughput of a step from the parts that may be judged.

    Of enough planned pairs of ways, their mean with the interval between them: the pair is the unit
    then (Kalibera and Jones 2013).
    """
    if not _between(plan, parts):
        return together(judged(parts))
    rates = [together(pair) for pair in pairs_of(judged(parts))]
    count = len(rates)
    mean = statistics.fmean(rate.per_s for rate in rates)
    half = t95(count - 1) * statistics.stdev(rate.per_s for rate in rates) / math.sqrt(count)
    completions = sum(rate.completions for rate in rates)
    return Throughput(mean, half, completions, count - 1, all(rate.enough for rate in rates))


def failed(record: Record) -> bool:
    """Whether a request failed by itself, not since its client left or the queue was purged."""
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def suspects(rows: Sequence[Record]) -> tuple[str, ...]:
    """Workers that failed all of their requests, at least five, while others succeeded."""
    wrong = Counter(record.reply.worker for record in rows if failed(record))
    good = {record.reply.worker for record in rows if record.ok}
    failing = (
        name for name, count in wrong.items() if good and name and count >= 5 and name not in good
    )
    return tuple(sorted(failing))


def _counted(names: Iterable[str]) -> dict[str, int]:
    """How often each name occurs, the most frequent first; "" is none."""
    return dict(Counter(filter(None, names)).most_common())


def _fairness(records: Sequence[Record]) -> dict[str, Fairness]:
    """Shares of workers, and of pods, nodes and devices per worker there.

    So three workers on two devices are fair. Each way starts and ends workers, so workers and pods
    count in the first one only; nodes and devices count in all.
    """
    by_group = {group: _shares(group, records) for group in GROUPS}
    return {group: shares for group, shares in by_group.items() if shares}


def _shares(group: str, records: Sequence[Record]) -> Fairness | None:
    """The shares of the members of one group: worker, pod, node or device."""
    if group in ("worker", "pod"):
        records = [record for record in records if record.repeat == records[0].repeat]
    counts: Counter[str] = Counter()
    workers: dict[str, set[str]] = defaultdict(set)
    for record in records:
        name = getattr(record.reply, group)
        if name:
            counts[name] += 1
            workers[name].add(record.reply.worker)
    if len(counts) < 2:
        return None
    return fairness({name: count / len(workers[name]) for name, count in counts.items()})
