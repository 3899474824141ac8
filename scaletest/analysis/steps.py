"""From the records of every step to what is said of it: throughput, ratio, times, fairness, and what went wrong."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from scaletest.analysis.drift import Drift, drift
from scaletest.analysis.estimate import finite
from scaletest.analysis.fairness import Fairness, fairness
from scaletest.analysis.percentiles import Distribution, summary
from scaletest.analysis.ratio import Ratio, ratio
from scaletest.analysis.series import ends_of, span
from scaletest.analysis.stall import Stall, stall
from scaletest.analysis.stopping import Stop, trimmed
from scaletest.analysis.student import t95
from scaletest.analysis.throughput import Throughput, throughput
from scaletest.analysis.work import MEMORY_HITS, Work, hits, work
from scaletest.model import Measurement, Plan, Record
from scaletest.model.reply import Outcome

# (workers, repeat) -> records
Rows = Mapping[tuple[int, int], Sequence[Record]]
GROUPS = ("worker", "pod", "node", "device")
# From this many repeats on, the interval is the one between them.
REPEATS_FOR_INTERVAL = 3


@dataclass(frozen=True, slots=True)
class Sample:
    """One measuring of a step. Times in s; warmup_s counts from the first submission.

    settled: whether the warm-up ended in time. little: requests in flight by the records / requests kept in flight,
    which is 1 when all of them are on record and the client kept up (Little's law for closed load); None for less than
    20 completions. counted: records behind the throughput. lost: records that were written and are not there, below 0
    when there are too many. stall: the worker that stopped meanwhile.
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

    @property
    def sound(self) -> bool:
        """Whether the throughput may be judged."""
        return self.whole and self.throughput.enough and self.settled and not self.drift.unsteady and not self.stall

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
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One number of workers, all repeats together. Times are of successful requests, in seconds.

    between: whether the interval is that between repeats; else it is the one within them.
    fairness: by worker, pod, node and device, where there is more than one; completions per worker.
    per_device: how many workers shared each device, in a run that compares that; else 0.
    work: what the requests report to have done, per second, by the name of the figure.
    memory_hits: requests that met the limit of a device's memory.
    """

    workers: int
    throughput: Throughput
    between: bool
    samples: tuple[Sample, ...]
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

    @property
    def level(self) -> int:
        """Of what throughput is a function in this run: workers, or workers on each device."""
        return self.per_device or self.workers

    @property
    def sound(self) -> bool:
        """Whether every repeat may be judged."""
        return bool(self.samples) and self.throughput.enough and all(sample.sound for sample in self.samples)

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
    steps: list[Step] = []
    for workers in plan.steps:
        samples = tuple(sample(plan, one, records.get(one.key, ())) for one in measurements if one.workers == workers)
        if samples:
            rows = [row for one in samples for row in records.get(one.measurement.key, ())]
            steps.append(_step(plan, workers, samples, rows, steps))
    return steps


def sample(plan: Plan, measurement: Measurement, rows: Sequence[Record]) -> Sample:
    """What one measuring of a step says."""
    began_s = min((row.reply.started_s - row.reply.wait_s for row in rows if row.reply.started_s), default=0.0)
    warm = trimmed(ends_of(rows), plan.warmup_s, began_s, measurement.warm_at_s)
    rate = throughput(warm.ends, measurement.workers)
    first, last = span(warm.ends)
    counted = [row for row in rows if row.ok and row.reply.ended_s >= first]
    little = _in_flight(rows, first, last) / measurement.workers if rate.enough and len(counted) >= 20 else None
    warmup_s = max(0.0, warm.cut_s - began_s) if warm.cut_s and began_s else 0.0
    found = drift(warm.ends) if rate.enough else Drift()
    lost = 0 if measurement.requests is None else measurement.requests - len(rows)
    return Sample(measurement, rate, warmup_s, warm.settled, found, little, began_s, counted, lost, stall(warm.ends))


def _in_flight(rows: Sequence[Record], first: float, last: float) -> float:
    """Requests in flight on average from `first` to `last`, failed ones included: their time there, added up."""
    spent = 0.0
    for row in rows:
        begun = row.reply.started_s - row.reply.wait_s
        spent += max(0.0, min(last, begun + row.total_s) - max(first, begun))
    return spent / (last - first)


def _step(plan: Plan, workers: int, samples: tuple[Sample, ...], rows: Sequence[Record], before: list[Step]) -> Step:
    rate = joined([one.throughput for one in samples])
    done: list[Work] = [work(one.throughput, one.counted) for one in samples]
    good = [row for row in rows if row.ok]
    last = before[-1] if before else None
    base = before[0].throughput.per_s / before[0].workers if before else rate.per_s / workers
    return Step(
        workers=workers,
        throughput=rate,
        between=len(samples) >= REPEATS_FOR_INTERVAL,
        samples=samples,
        ratio=ratio((last.workers, last.throughput), (workers, rate), plan.scale)
        if last and not plan.compares
        else None,
        efficiency=rate.per_s / (workers * base) if base > 0 else None,
        failures=sum(failed(row) for row in rows),
        wait=summary(row.reply.wait_s for row in good),
        run=summary(row.reply.run_s for row in good),
        overhead_s=statistics.fmean([row.overhead_s for row in good]) if good else 0.0,
        suspects=suspects(rows),
        fairness=_fairness([row for one in samples for row in one.counted]),
        per_device=plan.share(workers) if plan.compares else 0,
        work={name: joined([one[name] for one in done]) for name in done[0] if all(name in one for one in done)},
        memory_hits=hits(rows),
    )


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
