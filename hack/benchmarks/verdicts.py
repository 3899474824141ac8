"""Does the verdict keep its word? Records with known truth, the production stopping rule, coverage and error rates.

Each run measures steps of 1, 2 and 4 workers, at most 100 completions a worker, on a virtual clock. Between steps
the true throughput grows by the ratio under test. Prints a table; `study` is what the tests call.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from heapq import merge

from scaletest.analysis.drift import drift
from scaletest.analysis.ratio import ratio
from scaletest.analysis.stopping import Stopping, trimmed
from scaletest.analysis.throughput import Throughput, throughput
from scaletest.model import Plan

MOST = 100
CV = 0.1
CORRELATION = 0.6
RAMP_S = 40.0
RAMP_FROM = 0.1
TRUTHS = (1.6, 1.75, 1.85, 1.95)
KINDS = ("iid", "autocorrelated", "ramp", "exponential")


def run_times(kind: str, chance: random.Random) -> Iterator[float]:
    """Run times with mean 1, or 1 after a ramp has ended."""
    z = chance.gauss(0, 1)
    while True:
        if kind == "exponential":
            yield chance.expovariate(1.0)
            continue
        if kind == "autocorrelated":
            z = CORRELATION * z + math.sqrt(1 - CORRELATION**2) * chance.gauss(0, 1)
        else:
            z = chance.gauss(0, 1)
        yield max(0.05, 1.0 + CV * z)


def ramped(start_s: float, work: float) -> float:
    """When `work` is done that began at start_s, while the speed rises from RAMP_FROM to 1 in RAMP_S."""
    grow = (1.0 - RAMP_FROM) / RAMP_S

    def done(t: float) -> float:
        return RAMP_FROM * t + grow * t * t / 2 if t < RAMP_S else done_at_end + (t - RAMP_S)

    done_at_end = RAMP_FROM * RAMP_S + grow * RAMP_S**2 / 2
    target = done(start_s) + work
    if target >= done_at_end:
        return RAMP_S + target - done_at_end
    return (-RAMP_FROM + math.sqrt(RAMP_FROM**2 + 2 * grow * target)) / grow


def worker(kind: str, slow: float, name: str, chance: random.Random) -> list[tuple[float, str]]:
    """The completions of one worker whose requests take `slow` seconds on average."""
    now, rows = 0.0, []
    times = run_times(kind, chance)
    for _ in range(MOST):
        now = ramped(now, slow * next(times)) if kind == "ramp" else now + slow * next(times)
        rows.append((now, name))
    return rows


@dataclass
class Outcome:
    """What 1 run found: per step the throughput at the stop, and the verdict of every doubling."""

    rates: list[Throughput] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Study:
    """Shares over many runs. coverage, sound: by step; verdicts: by doubling; seconds: mean of a run."""

    coverage: list[float]
    sound: list[float]
    verdicts: list[dict[str, float]]
    stops: dict[str, float]
    seconds: float


def simulate(kind: str, truth: float, plan: Plan, chance: random.Random) -> Outcome:
    """One run of the plan's steps."""
    outcome = Outcome()
    before: tuple[int, Throughput] | None = None
    for index, workers in enumerate(plan.steps):
        slow = workers / truth**index
        rows = list(merge(*(worker(kind, slow, str(number), chance) for number in range(workers))))
        rate, stop, seconds = _step(plan, workers, before, rows)
        outcome.rates.append(rate)
        outcome.stops.append(stop)
        outcome.seconds += seconds
        if before:
            found = ratio(before, (workers, rate), plan.scale) if rate.enough and before[1].enough else None
            outcome.kinds.append(str(found.kind) if found else "INVALID")
        before = (workers, rate)
    return outcome


def _step(
    plan: Plan, workers: int, before: tuple[int, Throughput] | None, rows: list[tuple[float, str]]
) -> tuple[Throughput, str, float]:
    rule = Stopping(plan, workers, before, workers == plan.steps[-1])
    ends: dict[str, list[float]] = {}
    stop, count = None, 0
    for count, (now, name) in enumerate(rows, start=1):
        ends.setdefault(name, []).append(now)
        stop = rule.look(count, now, lambda: (ends, 0.0))
        if stop:
            break
    running = set(ends)
    for now, name in rows[count:]:  # what is in flight when the load is taken away still finishes
        if name in running or name not in ends:
            running.discard(name)
            ends.setdefault(name, []).append(now)
    warm = trimmed(ends, plan.warmup_s, 0.0, rule.warm_at_s)
    rate = throughput(warm.ends, workers)
    if rate.enough and (not warm.settled or drift(warm.ends).unsteady):
        rate = replace(rate, enough=False)
    return rate, str(stop or "longest"), rows[count - 1][0]


def study(kind: str, truth: float, runs: int, plan: Plan | None = None) -> Study:
    """Shares over `runs` runs with fixed seeds: coverage at the stop, verdicts per doubling, and how steps ended."""
    plan = plan or Plan(limit=4, scale=1.8, max_step_s=1e6)
    covered, counted = Counter[int](), Counter[int]()
    verdicts = [Counter[str]() for _ in plan.steps[1:]]
    stops: Counter[str] = Counter()
    seconds = 0.0
    for seed in range(runs):
        outcome = simulate(kind, truth, plan, random.Random(f"{kind} {truth} {seed}"))
        for index, rate in enumerate(outcome.rates):
            if rate.enough:
                counted[index] += 1
                covered[index] += abs(rate.per_s - truth**index) <= rate.half_width
        for found, name in zip(verdicts, outcome.kinds, strict=True):
            found[name] += 1
        stops.update(outcome.stops)
        seconds += outcome.seconds
    return Study(
        coverage=[covered[index] / max(1, counted[index]) for index in range(len(plan.steps))],
        sound=[counted[index] / runs for index in range(len(plan.steps))],
        verdicts=[{name: found[name] / runs for name in ("PASS", "FAIL", "INVALID")} for found in verdicts],
        stops={name: count / runs / len(plan.steps) for name, count in sorted(stops.items())},
        seconds=seconds / runs,
    )


def main(show: Callable[[str], None] = print) -> None:
    """Print one line for every kind and truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--kinds", default=",".join(KINDS[:3]))
    given = parser.parse_args()
    for kind in given.kinds.split(","):
        for truth in TRUTHS:
            show(json.dumps({"kind": kind, "truth": truth, **asdict(study(kind, truth, given.runs))}))


if __name__ == "__main__":
    main()
