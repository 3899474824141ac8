"""The figures of every step from its records: throughput, ratio, times, fairness, and faults."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from scaletest.analysis.completions import Ends, ends_of, span
from scaletest.analysis.doubling import STEADY, StepPart, doubling, judged, run_course, together
from scaletest.analysis.drift import Drift, beyond_noise, drift
from scaletest.analysis.estimate import finite
from scaletest.analysis.fairness import Fairness, fairness
from scaletest.analysis.machine_trend import MachineTrend
from scaletest.analysis.percentiles import Distribution, summary
from scaletest.analysis.ratio import Ratio, ratio
from scaletest.analysis.stall import Stall, stall
from scaletest.analysis.stopping import Stop, trimmed
from scaletest.analysis.student_t import t95
from scaletest.analysis.tails import Tail, tail, usual
from scaletest.analysis.tails import joined as joined_tails
from scaletest.analysis.throughput import Throughput, throughput
from scaletest.analysis.work_rate import MEMORY_HITS, Work, hits, work
from scaletest.model import Measurement, Plan, Record
from scaletest.model.reply import Outcome

# (workers, repeat) -> records
Rows = Mapping[tuple[int, int], Sequence[Record]]
GROUPS = ("worker", "pod", "node", "device")
# From this many repeats on, the interval is the one between them.
REPEATS_FOR_INTERVAL = 3


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A step, measured once. Times in s; warmup_s counts from the first submission.

    middle_s: the middle of the measurement on the clock of Redis. settled: whether the warm-up
    ended in time. little: requests in flight by the records / requests kept in flight, which is 1
    when all of them are on record and the client kept up (Little's law for closed load); None for
    less than 20 completions. counted: records behind the throughput. lost: records that were
    written and are not there, below 0 when there are too many. stall: the worker that stopped
    meanwhile. tail: its slow requests.
    """

    measurement: Measurement
    throughput: Throughput
    warmup_s: float
    settled: bool
    drift: Drift
    little: float | None
    began_s: float
    counted: Sequence[Record]
    lost: int = 0
    stall: Stall | None = None
    tail: Tail = field(default_factory=lambda: tail({}))
    middle_s: float = 0.0

    @property
    def sound(self) -> bool:
        """Whether the throughput may be judged."""
        return (
            self.whole
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

    @property
    def whole(self) -> bool:
        """Whether it was measured to its end, and all records of it are there."""
        return self.measurement.stop != Stop.ENDED and not self.lost

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "repeat": self.measurement.repeat,
            **rate_dict(self.throughput),
            "scale_s": self.measurement.scale_s,
            "measured_s": self.measurement.measured_s,
            "stop": self.measurement.stop,
            "warmup_s": self.warmup_s,
            "settled": self.settled,
            "drift": {**asdict(self.drift), "dips": [list(dip) for dip in self.drift.dips]},
            "little": self.little,
            "slow": self.tail.slow,
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One number of workers, all repeats together. Times are of successful requests, in seconds.

    between: whether the interval is the one between repeats; else it is the one within them.
    fairness: by worker, pod, node and device, where there is more than one; completions per worker.
    per_device: how many workers shared each device, in a run that compares that; else 0.
    work: amounts that requests report, per second, by the name of the figure, such as frames.
    memory_hits: requests that reached the limit of a device's memory.
    mirrored: whether it is measured up and down, so that a sound pair of measurements is enough.
    """

    workers: int
    throughput: Throughput
    between: bool
    samples: tuple[MeasuredStep, ...]
    ratio: Ratio | None
    efficiency: float | None
    failures: int
    wait: Distribution
    run: Distribution
    overhead_s: float
    suspects: tuple[str, ...]
    fairness: Mapping[str, Fairness]
    per_device: int = 0
    work: Mapping[str, Throughput] = field(default_factory=dict)
    memory_hits: int = 0
    mirrored: bool = False

    @property
    def parts(self) -> tuple[StepPart, ...]:
        """Its measurements, as ratios need them."""
        return tuple(sample.part for sample in self.samples)

    @property
    def tail(self) -> Tail:
        """The slow requests of all its measurements."""
        return joined_tails([sample.tail for sample in self.samples])

    @property
    def level(self) -> int:
        """The variable of the scaling law in this run: workers, or workers on each device."""
        return self.per_device or self.workers

    @property
    def sound(self) -> bool:
        """Whether every repeat may be judged.

        Of a mirrored step, every part that its throughput uses.
        """
        parts: Sequence[StepPart] = self.parts
        if self.mirrored:
            parts = judged(parts)
        return bool(parts) and self.throughput.enough and all(part.sound for part in parts)

    @property
    def wait_s(self) -> float:
        """Mean wait."""
        return self.wait.mean or 0.0

    @property
    def run_s(self) -> float:
        """Mean run time."""
        return self.run.mean or 0.0

    @property
    def overhead_share(self) -> float:
        """The part of a request's total time that the tester itself cost."""
        total = self.wait_s + self.run_s + self.overhead_s
        if total > 0:
            return self.overhead_s / total
        return 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or missing is null."""
        work = {}
        for name, rate in self.work.items():
            work[name] = {
                "per_s": finite(rate.per_s),
                "half_width_per_s": finite(rate.half_width),
            }
        return {
            "workers": self.workers,
            **rate_dict(self.throughput),
            "interval": "between repeats" if self.between else "within the run",
            "repeats": [sample.to_dict() for sample in self.samples],
            "ratio": self.ratio.to_dict() if self.ratio else None,
            "efficiency": self.efficiency,
            "failures": self.failures,
            "wait_s": self.wait.to_dict(),
            "run_s": self.run.to_dict(),
            "overhead_s": self.overhead_s,
            "overhead_share": self.overhead_share,
            "suspects": list(self.suspects),
            "fairness": {name: shares.to_dict() for name, shares in self.fairness.items()},
            "per_device": self.per_device,
            "work": work,
            MEMORY_HITS: self.memory_hits,
        }


def summarise(plan: Plan, measurements: Sequence[Measurement], records: Rows) -> list[Step]:
    """One Step for every number of workers that was measured, in the plan's order."""
    samples = _samples(plan, measurements, records)
    course = course_of(plan, samples)
    if course.per_s:  # a steady change along the whole run is no fault of a step
        samples = _samples(plan, measurements, records, course.per_s)
        # with the parts that may be judged once the change is taken out, as later callers get it
        course = course_of(plan, samples)
    steps: list[Step] = []
    for own in samples:
        own_records: list[Record] = []
        for sample in own:
            own_records += records.get(sample.measurement.key, ())
        steps.append(_step(plan, own, own_records, steps, course))
    return steps


def course_of(plan: Plan, samples: Iterable[Sequence[MeasuredStep]]) -> MachineTrend:
    """How the machine's speed changed along a mirrored run; steady for any other run."""
    if not plan.mirrored:
        return STEADY
    parts = []
    for own in samples:
        parts.append([sample.part for sample in own])
    return run_course(parts)


def _samples(
    plan: Plan, measurements: Sequence[Measurement], records: Rows, per_s: float = 0.0
) -> list[tuple[MeasuredStep, ...]]:
    """The measurements of every step that has any, summarised."""
    by_step = []
    for workers in plan.steps:
        own = [measurement for measurement in measurements if measurement.workers == workers]
        if own:
            summaries = (
                measured_step(plan, each, records.get(each.key, ()), per_s) for each in own
            )
            by_step.append(tuple(summaries))
    return by_step


def measured_step(
    plan: Plan, measurement: Measurement, rows: Sequence[Record], per_s: float = 0.0
) -> MeasuredStep:
    """The figures of one measurement of a step. per_s: the trend of the run, no fault of it."""
    submitted = (
        record.reply.started_s - record.reply.wait_s for record in rows if record.reply.started_s
    )
    began_s = min(submitted, default=0.0)
    warm = trimmed(ends_of(rows), plan.warmup_s, began_s, measurement.warm_at_s, per_s)
    rate = throughput(warm.ends, measurement.workers, parts=plan.parts)
    first, last = span(warm.ends)
    counted = [record for record in rows if record.ok and record.reply.ended_s >= first]
    little = None
    if rate.enough and len(counted) >= 20:
        little = _in_flight(rows, first, last) / measurement.workers
    warmup_s = 0.0
    if warm.cut_s and began_s:
        warmup_s = max(0.0, warm.cut_s - began_s)
    lost = 0
    if measurement.requests is not None:
        lost = measurement.requests - len(rows)
    return MeasuredStep(
        measurement,
        rate,
        warmup_s,
        warm.settled,
        _drift(plan, warm.ends, rate, per_s),
        little,
        began_s,
        counted,
        lost,
        stall(warm.ends),
        tail(warm.ends),
        (first + last) / 2.0,
    )


def _drift(plan: Plan, ends: Ends, rate: Throughput, per_s: float) -> Drift:
    """What happened within one measurement."""
    if not rate.enough:
        return Drift()
    # a slow request is a dip, and no lasting change
    within = replace(drift(usual(ends), per_s), dips=drift(ends, per_s).dips)
    if plan.mirrored:
        return beyond_noise(within, rate.relative)
    return within


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
    parts = [sample.part for sample in samples]
    rate = _throughput(plan, samples)
    succeeded = [record for record in records if record.ok]
    overhead_s = 0.0
    if succeeded:
        overhead_s = statistics.fmean([record.overhead_s for record in succeeded])
    counted: list[Record] = []
    for sample in samples:
        counted += sample.counted
    return Step(
        workers=workers,
        throughput=rate,
        between=not plan.mirrored and len(samples) >= REPEATS_FOR_INTERVAL,
        samples=samples,
        ratio=_ratio(plan, before, parts, rate, course),
        efficiency=_efficiency(workers, rate, before),
        failures=sum(failed(record) for record in records),
        wait=summary(record.reply.wait_s for record in succeeded),
        run=summary(record.reply.run_s for record in succeeded),
        overhead_s=overhead_s,
        suspects=suspects(records),
        fairness=_fairness(counted),
        per_device=plan.share(workers) if plan.compares else 0,
        work=_work(plan, samples),
        memory_hits=hits(records),
        mirrored=plan.mirrored,
    )


def _throughput(plan: Plan, samples: Sequence[MeasuredStep]) -> Throughput:
    """The throughput of all measurements of a step together."""
    if plan.mirrored:
        return together(judged([sample.part for sample in samples]))
    return joined([sample.throughput for sample in samples])


def _efficiency(workers: int, rate: Throughput, before: Sequence[Step]) -> float | None:
    """Throughput per worker over that of the first step; None where the first has none."""
    base = rate.per_s / workers
    if before:
        base = before[0].throughput.per_s / before[0].workers
    if base <= 0:
        return None
    return rate.per_s / (workers * base)


def _work(plan: Plan, samples: Sequence[MeasuredStep]) -> dict[str, Throughput]:
    """The figures of all measurements of a step, joined as its throughput is, so they agree."""
    if plan.mirrored:
        parts = [sample.part for sample in samples]
        counted = {part.repeat for part in judged(parts)}
        samples = [sample for sample in samples if sample.measurement.repeat in counted]
    reported: list[Work] = [work(sample.throughput, sample.counted) for sample in samples]
    shared = set(reported[0]).intersection(*reported)
    figures = {}
    for name in reported[0]:
        if name in shared:
            figures[name] = _joined_work(plan, samples, [by_name[name] for by_name in reported])
    return figures


def _joined_work(
    plan: Plan, samples: Sequence[MeasuredStep], rates: Sequence[Throughput]
) -> Throughput:
    """One figure of all measurements together. rates: the figure of each."""
    if not plan.mirrored:
        return joined(rates)
    pairs = zip(samples, rates, strict=True)
    return together([replace(sample.part, throughput=rate) for sample, rate in pairs])


def _ratio(
    plan: Plan,
    before: Sequence[Step],
    parts: Sequence[StepPart],
    rate: Throughput,
    course: MachineTrend,
) -> Ratio | None:
    """The ratio over the step before: by both ways of a mirrored run, else by all throughputs.

    None for the first step, and in a run that compares numbers of workers per device.
    """
    if not before or plan.compares:
        return None
    base = before[-1]
    if plan.mirrored:
        return doubling(base.parts, parts, plan, course=course)
    doublings = len(plan.steps) - 1
    larger = (parts[0].workers, rate)
    return ratio((base.workers, base.throughput), larger, plan.scale, doublings=doublings)


def joined(rates: Sequence[Throughput]) -> Throughput:
    """The mean of repeats. From three on with the interval between them.

    The run is the unit then (Kalibera and Jones 2013).
    """
    count = len(rates)
    mean = statistics.fmean(rate.per_s for rate in rates)
    completions = sum(rate.completions for rate in rates)
    enough = all(rate.enough for rate in rates)
    if count < REPEATS_FOR_INTERVAL:
        half = math.hypot(*(rate.half_width for rate in rates)) / count
        return Throughput(mean, half, completions, sum(rate.freedom for rate in rates), enough)
    half = t95(count - 1) * statistics.stdev(rate.per_s for rate in rates) / math.sqrt(count)
    return Throughput(mean, half, completions, count - 1, enough)


def failed(record: Record) -> bool:
    """Whether a request failed by itself, not since its client left or the queue was purged."""
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def suspects(rows: Sequence[Record]) -> tuple[str, ...]:
    """Workers that failed all of their requests, at least five, while others succeeded."""
    wrong = Counter(record.reply.worker for record in rows if failed(record))
    good = {record.reply.worker for record in rows if record.ok}
    if not good:
        return ()
    failing = [name for name, count in wrong.items() if name and count >= 5 and name not in good]
    return tuple(sorted(failing))


def _fairness(records: Sequence[Record]) -> dict[str, Fairness]:
    """Shares of workers, and of pods, nodes and devices per worker there.

    So three workers on two devices are fair. Repeats have workers of their own, so workers and pods
    count in the first repeat only; nodes and devices count in all.
    """
    by_group = {}
    for group in GROUPS:
        shares = _shares(group, records)
        if shares:
            by_group[group] = shares
    return by_group


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


def rate_dict(rate: Throughput) -> dict[str, Any]:
    """A throughput as plain values for JSON."""
    return {
        "throughput_per_s": finite(rate.per_s),
        "half_width_per_s": finite(rate.half_width),
        "completions": rate.completions,
        "enough": rate.enough,
    }
