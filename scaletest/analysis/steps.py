"""From the records of every step to what is said of it: throughput, ratio, times, fairness, and what went wrong."""

from __future__ import annotations

import math
import statistics
from collections import Counter
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
    """One measuring of a step. Times in s; warmup_s counts from the first submission, middle_s on Redis' clock.

    settled: whether the warm-up ended in time. little: requests in flight by the records / requests kept in flight,
    which is 1 when all of them are on record and the client kept up (Little's law for closed load); None for less than
    20 completions. counted: records behind the throughput. lost: records that were written and are not there, below 0
    when there are too many. stall: the worker that stopped meanwhile. tail: its slow requests.
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
        return self.whole and self.throughput.enough and self.settled and not self.drift.unsteady and not self.stall

    @property
    def part(self) -> StepPart:
        """What ratios need of it."""
        at = self.measurement
        return StepPart(at.workers, at.repeat, at.measured_s, self.middle_s, self.throughput, self.tail, self.sound)

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

    between: whether the interval is that between repeats; else it is the one within them.
    fairness: by worker, pod, node and device, where there is more than one; completions per worker.
    per_device: how many workers shared each device, in a run that compares that; else 0.
    work: what the requests report to have done, per second, by the name of the figure.
    memory_hits: requests that met the limit of a device's memory.
    mirrored: whether it is measured up and down, so that a sound pair of measurings is enough.
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
        """Its measurings, as ratios need them."""
        return tuple(sample.part for sample in self.samples)

    @property
    def tail(self) -> Tail:
        """The slow requests of all its measurings."""
        return joined_tails([sample.tail for sample in self.samples])

    @property
    def level(self) -> int:
        """Of what throughput is a function in this run: workers, or workers on each device."""
        return self.per_device or self.workers

    @property
    def sound(self) -> bool:
        """Whether every repeat may be judged; of a mirrored step, every measuring that its throughput rests on."""
        parts = judged(self.parts) if self.mirrored else self.parts
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
        return self.overhead_s / total if total > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or missing is null."""
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
            "fairness": {name: found.to_dict() for name, found in self.fairness.items()},
            "per_device": self.per_device,
            "work": {
                name: {"per_s": finite(rate.per_s), "half_width_per_s": finite(rate.half_width)}
                for name, rate in self.work.items()
            },
            MEMORY_HITS: self.memory_hits,
        }


def summarise(plan: Plan, measurements: Sequence[Measurement], records: Rows) -> list[Step]:
    """One Step for every number of workers that was measured, in the plan's order."""
    samples = _samples(plan, measurements, records)
    course = course_of(plan, samples)
    if course.per_s:  # what the whole run did is no fault of a step
        samples = _samples(plan, measurements, records, course.per_s)
        course = course_of(plan, samples)  # by parts that are judged without it, as everybody who asks later finds
    steps: list[Step] = []
    for own in samples:
        rows = [row for one in own for row in records.get(one.measurement.key, ())]
        steps.append(_step(plan, own, rows, steps, course))
    return steps


def course_of(plan: Plan, samples: Iterable[Sequence[MeasuredStep]]) -> MachineTrend:
    """What the machine did along a mirrored run; nothing is known of another."""
    return run_course([[one.part for one in own] for own in samples]) if plan.mirrored else STEADY


def _samples(
    plan: Plan, measurements: Sequence[Measurement], records: Rows, per_s: float = 0.0
) -> list[tuple[MeasuredStep, ...]]:
    """The measurings of every step that has any."""
    by_step = [
        tuple(sample(plan, one, records.get(one.key, ()), per_s) for one in measurements if one.workers == workers)
        for workers in plan.steps
    ]
    return [own for own in by_step if own]


def sample(plan: Plan, measurement: Measurement, rows: Sequence[Record], per_s: float = 0.0) -> MeasuredStep:
    """What one measuring of a step says. per_s: the run's trend, which is no fault of it."""
    began_s = min((row.reply.started_s - row.reply.wait_s for row in rows if row.reply.started_s), default=0.0)
    warm = trimmed(ends_of(rows), plan.warmup_s, began_s, measurement.warm_at_s, per_s)
    rate = throughput(warm.ends, measurement.workers, parts=plan.parts)
    first, last = span(warm.ends)
    counted = [row for row in rows if row.ok and row.reply.ended_s >= first]
    little = _in_flight(rows, first, last) / measurement.workers if rate.enough and len(counted) >= 20 else None
    warmup_s = max(0.0, warm.cut_s - began_s) if warm.cut_s and began_s else 0.0
    lost = 0 if measurement.requests is None else measurement.requests - len(rows)
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
    """What happened within one measuring."""
    if not rate.enough:
        return Drift()
    # a slow request is a dip, and no lasting change
    within = replace(drift(usual(ends), per_s), dips=drift(ends, per_s).dips)
    return beyond_noise(within, rate.relative) if plan.mirrored else within


def _in_flight(rows: Sequence[Record], first: float, last: float) -> float:
    """Requests in flight on average from `first` to `last`, failed ones included: their time there, added up."""
    spent = 0.0
    for row in rows:
        begun = row.reply.started_s - row.reply.wait_s
        spent += max(0.0, min(last, begun + row.total_s) - max(first, begun))
    return spent / (last - first)


def _step(
    plan: Plan, samples: tuple[MeasuredStep, ...], rows: Sequence[Record], before: list[Step], course: MachineTrend
) -> Step:
    workers, parts = samples[0].measurement.workers, [one.part for one in samples]
    rate = together(judged(parts)) if plan.mirrored else joined([one.throughput for one in samples])
    good = [row for row in rows if row.ok]
    last = before[-1] if before else None
    base = before[0].throughput.per_s / before[0].workers if before else rate.per_s / workers
    return Step(
        workers=workers,
        throughput=rate,
        between=not plan.mirrored and len(samples) >= REPEATS_FOR_INTERVAL,
        samples=samples,
        ratio=_ratio(plan, last, parts, rate, course) if last and not plan.compares else None,
        efficiency=rate.per_s / (workers * base) if base > 0 else None,
        failures=sum(failed(row) for row in rows),
        wait=summary(row.reply.wait_s for row in good),
        run=summary(row.reply.run_s for row in good),
        overhead_s=statistics.fmean([row.overhead_s for row in good]) if good else 0.0,
        suspects=suspects(rows),
        fairness=_fairness([row for one in samples for row in one.counted]),
        per_device=plan.share(workers) if plan.compares else 0,
        work=_work(plan, samples),
        memory_hits=hits(rows),
        mirrored=plan.mirrored,
    )


def _work(plan: Plan, samples: Sequence[MeasuredStep]) -> dict[str, Throughput]:
    """The figures that every measuring reports, joined as the throughput is, so that the two agree."""
    if plan.mirrored:
        counted = {part.repeat for part in judged([one.part for one in samples])}
        samples = [one for one in samples if one.measurement.repeat in counted]
    done: list[Work] = [work(one.throughput, one.counted) for one in samples]
    figures = {}
    for name in done[0]:
        if not all(name in row for row in done):
            continue
        rates = [row[name] for row in done]
        parts = [replace(one.part, throughput=rate) for one, rate in zip(samples, rates, strict=True)]
        figures[name] = together(parts) if plan.mirrored else joined(rates)
    return figures


def _ratio(plan: Plan, base: Step, parts: Sequence[StepPart], rate: Throughput, course: MachineTrend) -> Ratio | None:
    """The ratio over the step before: by what both ways of a mirrored run say, else by the throughputs of all."""
    if plan.mirrored:
        return doubling(base.parts, parts, plan, course=course)
    doublings = len(plan.steps) - 1
    return ratio((base.workers, base.throughput), (parts[0].workers, rate), plan.scale, doublings=doublings)


def joined(rates: Sequence[Throughput]) -> Throughput:
    """The mean of repeats. From three on with the interval between them: the run is the unit (Kalibera, Jones 2013)."""
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
    """Whether a request failed for a reason of its own, not because its client left or it was purged."""
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def suspects(rows: Sequence[Record]) -> tuple[str, ...]:
    """Workers that failed all of at least five requests while others succeeded."""
    wrong = Counter(row.reply.worker for row in rows if failed(row))
    good = {row.reply.worker for row in rows if row.ok}
    if not good:
        return ()
    return tuple(sorted(name for name, count in wrong.items() if name and count >= 5 and name not in good))


def _fairness(rows: Sequence[Record]) -> dict[str, Fairness]:
    """Shares of workers, and of pods, nodes and devices per worker there: three workers on two devices are fair.

    Repeats have workers of their own, so each worker counts in the first repeat only; the others count in all.
    """
    found = {}
    for group in GROUPS:
        own = [row for row in rows if row.repeat == rows[0].repeat] if group in ("worker", "pod") else rows
        counts = Counter(getattr(row.reply, group) for row in own)
        counts.pop("", None)
        members: dict[str, set[str]] = {name: set() for name in counts}
        for row in own:
            if name := getattr(row.reply, group):
                members[name].add(row.reply.worker)
        amounts = {name: count / len(members[name]) for name, count in counts.items()}
        shares = fairness(amounts) if len(counts) > 1 else None
        if shares:
            found[group] = shares
    return found


def rate_dict(rate: Throughput) -> dict[str, Any]:
    """A throughput as plain values for JSON."""
    return {
        "throughput_per_s": finite(rate.per_s),
        "half_width_per_s": finite(rate.half_width),
        "completions": rate.completions,
        "enough": rate.enough,
    }
