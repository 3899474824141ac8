"""From the records of every step to ratios and one verdict. Pure: the same records give the same verdict anywhere.

A doubling passes when the lower end of the ratio's 95 % interval reaches what is wanted, fails when the upper end
stays below it, and decides nothing in between. The interval is built on the logarithm, where the errors of the two
throughputs add: half-width of ln r = sqrt(rel(a)^2 + rel(b)^2), rel being half-width over rate.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.throughput import MIN_COMPLETIONS, MIN_COMPLETIONS_PER_WORKER, Throughput, throughput
from scaletest.model import Plan, Record, Verdict, VerdictKind
from scaletest.model.reply import Outcome

WARN_OVERHEAD = 0.02
MOST_OVERHEAD = 0.10
# Below, the client left workers idle; above, completions are on record that nobody had in flight.
LITTLE = (0.90, 1.05)


@dataclass(frozen=True, slots=True)
class Ratio:
    """Throughput over that of the step before, its 95 % interval, and what was wanted."""

    value: float
    low: float
    high: float
    wanted: float

    @property
    def kind(self) -> VerdictKind:
        """What this ratio alone says."""
        if self.low >= self.wanted:
            return VerdictKind.PASS
        return VerdictKind.FAIL if self.high < self.wanted else VerdictKind.INVALID


@dataclass(frozen=True, slots=True)
class Step:
    """One measured step. Times are means over successful requests, in seconds."""

    workers: int
    throughput: Throughput
    ratio: Ratio | None
    efficiency: float | None
    failures: int
    wait_s: float
    run_s: float
    overhead_s: float
    suspects: tuple[str, ...] = ()
    little: float | None = None

    @property
    def overhead_share(self) -> float:
        """The part of a request's total time that the tester itself cost."""
        total = self.wait_s + self.run_s + self.overhead_s
        return self.overhead_s / total if total > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite or missing is null."""
        ratio = None
        if self.ratio:
            ratio = {name: _finite(value) for name, value in asdict(self.ratio).items()} | {
                "verdict": str(self.ratio.kind)
            }
        return {
            "workers": self.workers,
            "throughput_per_s": _finite(self.throughput.per_s),
            "half_width_per_s": _finite(self.throughput.half_width),
            "completions": self.throughput.completions,
            "enough": self.throughput.enough,
            "ratio": ratio,
            "efficiency": self.efficiency,
            "failures": self.failures,
            "wait_s": self.wait_s,
            "run_s": self.run_s,
            "overhead_s": self.overhead_s,
            "overhead_share": self.overhead_share,
            "little": self.little,
            "suspects": list(self.suspects),
        }


def summarise(plan: Plan, records: Mapping[int, Sequence[Record]]) -> list[Step]:
    """One Step for every number of workers that has records or was measured, in the plan's order."""
    steps: list[Step] = []
    for workers in plan.steps:
        if workers not in records:
            continue
        rows = records[workers]
        rate = throughput(rows, workers)
        good = [row for row in rows if row.ok]
        steps.append(
            Step(
                workers=workers,
                throughput=rate,
                ratio=_ratio(steps[-1], workers, rate, plan.scale) if steps else None,
                efficiency=_efficiency(steps[0] if steps else None, workers, rate),
                failures=sum(_failed(row) for row in rows),
                wait_s=_mean([row.reply.wait_s for row in good]),
                run_s=_mean([row.reply.run_s for row in good]),
                overhead_s=_mean([row.overhead_s for row in good]),
                suspects=suspects(rows),
                little=_little(workers, rate, good),
            )
        )
    return steps


def suspects(rows: Sequence[Record]) -> tuple[str, ...]:
    """Workers that failed all of at least five requests while others succeeded."""
    failed = Counter(row.reply.worker for row in rows if _failed(row))
    good = {row.reply.worker for row in rows if row.ok}
    if not good:
        return ()
    return tuple(sorted(name for name, count in failed.items() if name and count >= 5 and name not in good))


def judge(plan: Plan, steps: Sequence[Step], interrupted: str = "") -> Verdict:
    """The verdict of a run: what refutes comes first, then what is missing, then PASS."""
    if interrupted:
        return Verdict(VerdictKind.INVALID, f"interrupted: {interrupted}", "run it again to the end")
    failures = sum(step.failures for step in steps)
    if failures > plan.tolerate_failures:
        suspect = sorted({name for step in steps for name in step.suspects})
        blame = f"; suspect: {', '.join(suspect)}, which failed all of theirs" if suspect else ""
        return Verdict(
            VerdictKind.FAIL,
            f"{failures} requests failed, {plan.tolerate_failures} are tolerated{blame}",
            "read the error in the report, or try the workload alone: scaletest worker --once",
        )
    return (
        _tester(steps)
        or _failed_ratio(steps)
        or _missing(plan, steps)
        or Verdict(VerdictKind.PASS, _passed(plan, steps))
    )


def warnings(steps: Sequence[Step]) -> list[str]:
    """What a reader should know although it decides nothing, one line each with the cure."""
    return [
        f"{step.workers} workers: the tester costs {step.overhead_share:.0%} of a request's time; use longer requests"
        for step in steps
        if WARN_OVERHEAD < step.overhead_share <= MOST_OVERHEAD
    ]


def _tester(steps: Sequence[Step]) -> Verdict | None:
    """Whether the tester, not the workload, was measured. It comes first: it could cause any ratio."""
    for step in steps:
        if step.overhead_share > MOST_OVERHEAD:
            return Verdict(
                VerdictKind.INVALID,
                f"with {step.workers} workers the tester itself cost {step.overhead_share:.0%} of a request's time",
                "use longer requests, or run the client and Redis on machines of their own",
            )
        if step.little is not None and not LITTLE[0] <= step.little <= LITTLE[1]:
            return Verdict(
                VerdictKind.INVALID,
                f"with {step.workers} workers throughput x time in the system is {step.little:.2f} of the requests in "
                "flight (Little's law): records are missing, or the client could not keep up",
                "run the client on a machine of its own, or use longer requests",
            )
    return None


def _failed_ratio(steps: Sequence[Step]) -> Verdict | None:
    for before, step in itertools.pairwise(steps):
        decided = step.throughput.enough and before.throughput.enough
        if decided and step.ratio and step.ratio.kind is VerdictKind.FAIL:
            return Verdict(
                VerdictKind.FAIL,
                f"{before.workers} -> {step.workers} workers: ratio {step.ratio.value:.2f} "
                f"[{step.ratio.low:.2f}, {step.ratio.high:.2f}] is below the {step.ratio.wanted:.2f} wanted",
                f"something that the workers share is used up between {before.workers} and {step.workers} workers: "
                "compare the run times of the two steps",
            )
    return None


def _missing(plan: Plan, steps: Sequence[Step]) -> Verdict | None:
    for step in steps:
        if step.throughput.completions == 0:
            return Verdict(
                VerdictKind.INVALID,
                f"no request was completed with {step.workers} workers",
                f"give a longer --step-time than the {plan.measure_s:g} s of this run, or a true --seconds",
            )
        if not step.throughput.enough:
            return Verdict(
                VerdictKind.INVALID,
                f"too few requests completed with {step.workers} workers: {step.throughput.completions} "
                f"(needs {MIN_COMPLETIONS}, and {MIN_COMPLETIONS_PER_WORKER} of every worker)",
                f"give a longer --step-time than the {plan.measure_s:g} s of this run, or a true --seconds",
            )
    if tuple(step.workers for step in steps) != plan.steps:
        return Verdict(VerdictKind.INVALID, "not every step was measured", "run it again to the end")
    for step in steps:
        if step.ratio and step.ratio.kind is VerdictKind.INVALID:
            return Verdict(
                VerdictKind.INVALID,
                f"{step.workers} workers: ratio {step.ratio.value:.2f} [{step.ratio.low:.2f}, {step.ratio.high:.2f}] "
                f"neither reaches nor misses {step.ratio.wanted:.2f}",
                "measure longer with --step-time",
            )
    return None


def _passed(plan: Plan, steps: Sequence[Step]) -> str:
    ratios = [step.ratio for step in steps if step.ratio]
    if not ratios:
        return "one step, no doubling to judge, no request failed"
    worst = min(ratios, key=lambda ratio: ratio.low / ratio.wanted)
    return f"every doubling up to {plan.limit} workers reaches {plan.scale:.2f}: the least is {worst.value:.2f}"


def _ratio(before: Step, workers: int, rate: Throughput, scale: float) -> Ratio | None:
    """The ratio to the step before; for a last step that is no doubling the wanted ratio shrinks with it."""
    if before.throughput.per_s <= 0 or rate.per_s <= 0:
        return None
    value = rate.per_s / before.throughput.per_s
    spread = math.hypot(before.throughput.relative, rate.relative)
    wanted = scale ** math.log2(workers / before.workers)
    try:
        return Ratio(value, value * math.exp(-spread), value * math.exp(spread), wanted)
    except OverflowError:
        return Ratio(value, 0.0, math.inf, wanted)


def _little(workers: int, rate: Throughput, good: Sequence[Record]) -> float | None:
    """Little's law for closed load: X W / N, which is 1 when N requests are always in flight and all are on record.

    None for less than 20 completions, where the edges of the step weigh too much.
    """
    if len(good) < 20 or not rate.enough:
        return None
    return rate.per_s * _mean([row.total_s for row in good]) / workers


def _efficiency(first: Step | None, workers: int, rate: Throughput) -> float | None:
    """Throughput over that of N times the first step's worker; None without a base."""
    base = first.throughput.per_s / first.workers if first else rate.per_s / workers
    return rate.per_s / (workers * base) if base > 0 else None


def _failed(record: Record) -> bool:
    return record.reply.outcome in (Outcome.FAILED, Outcome.TIMED_OUT)


def _mean(values: Sequence[float]) -> float:
    return statistics.fmean(values) if values else 0.0


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
