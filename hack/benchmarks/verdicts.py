"""Measures coverage and error rates of verdicts, in simulated runs with known truth.

Each run measures steps of 1, 2 and 4 workers on a virtual clock, in the order and as often as a
validation would. Between steps the true throughput grows by the ratio under test. Prints one line
of JSON a cell; tests call `study`.

hack/bars verdicts

measures coverage and verdicts with steps of 100 requests a part;

hack/bars verdicts --workloads [--max-step 100000]

wrong verdicts by workload and disturbance, with default options or as much time as it takes.
"""

import argparse
import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from heapq import heapify, heapreplace
from itertools import pairwise
from typing import Protocol

from hack.benchmarks.machine_time import (
    DISTURBANCES,
    KINDS,
    WORKLOADS,
    Disturbance,
    Machine,
    end_of_ramp,
    run_times,
)
from scaletest.stats.completions import Completions
from scaletest.validation.judging.doubling import doubling_ratio
from scaletest.validation.judging.drift import drift_of, has_settled
from scaletest.validation.judging.machine_trend import MachineTrend, trend_of_run
from scaletest.validation.judging.schedule import Turn, further_pair, planned_pairs
from scaletest.validation.judging.slow_requests import find_slow
from scaletest.validation.judging.step_parts import StepPart, throughput_of_parts
from scaletest.validation.judging.stopping import Stopping
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.judging.warm_up import cut_warm_up
from scaletest.validation.plan import Plan

# Two parts of 100 requests a worker, or of as many after a ramp.
STEP_S = {"ramp": 240.0}
USUAL_STEP_S = 200.0
# Between two measurements: workers start or end.
BETWEEN_S = 0.5
# Seconds between two checks of the stopping rule, as in the runner.
LOOK_S = 0.1
TRUTHS = (1.6, 1.75, 1.85, 1.95)
VERDICTS = ("PASS", "FAIL", "INVALID")


@dataclass
class SimulatedOutcome:
    """Outcome of one simulated run.

    rates: the throughput of every step. doublings: the verdict of every doubling. stops: how
    measurements ended. seconds: of the whole run. pairs: passes through the steps, up and down.
    """

    rates: list[Throughput] = field(default_factory=list)
    doublings: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    seconds: float = 0.0
    pairs: int = 1

    @property
    def verdict(self) -> str:
        """The run's verdict: FAIL before INVALID before PASS, as in the judge."""
        return next((kind for kind in ("FAIL", "INVALID") if kind in self.doublings), "PASS")


@dataclass(frozen=True, slots=True)
class Study:
    """Shares over many runs.

    coverage, sound: by step; doublings: verdicts of each; seconds: mean of a run.
    """

    coverage: list[float]
    sound: list[float]
    doublings: list[dict[str, float]]
    verdicts: dict[str, float]
    stops: dict[str, float]
    seconds: float
    pairs: float


class SimulatedWorkers(Protocol):
    """Workers that finish one request after the other; times in s since the measurement began."""

    def next_s(self) -> float:
        """Return when the next request ends."""

    def take(self) -> tuple[str, float]:
        """Take the next completion: worker and time."""

    def in_flight(self) -> list[tuple[str, float]]:
        """List every worker with the end of its running request."""


class SimulatedRun:
    """One simulated run of a plan.

    workers: creates workers from their number and the time at which the measurement begins.
    between_s: from one measurement to the next, for workers to start or end.
    """

    def __init__(
        self,
        plan: Plan,
        workers: Callable[[int, float], SimulatedWorkers],
        between_s: float = BETWEEN_S,
    ) -> None:
        self._plan, self._workers, self._between_s = plan, workers, between_s
        self._now = 0.0
        self._parts: dict[int, list[StepPart]] = {workers: [] for workers in plan.steps}
        self._outcome = SimulatedOutcome()

    def simulate(self) -> SimulatedOutcome:
        """Measure until the stopping rules are satisfied, then judge every doubling."""
        turns = planned_pairs(self._plan)
        while turns:
            for turn in turns:
                self._measure(turn)
            steps = list(self._parts.values())
            turns = further_pair(self._plan, steps)
            self._outcome.pairs += bool(turns)
        steps = list(self._parts.values())
        self._outcome.rates = [throughput_of_parts(parts) for parts in steps]
        trend = trend_of_run(steps)
        self._outcome.doublings = [
            self._judged(first, second, trend) for first, second in pairwise(steps)
        ]
        self._outcome.seconds = self._now
        return self._outcome

    def _judged(self, first: list[StepPart], second: list[StepPart], trend: MachineTrend) -> str:
        doubled = doubling_ratio(first, second, self._plan, trend=trend)
        return str(doubled.kind) if doubled else "INVALID"

    def _measure(self, turn: Turn) -> None:
        plan, steps = self._plan, self._plan.steps
        index = steps.index(turn.workers)
        base = self._parts[steps[index - 1]] if index and not turn.repeat else []
        length_s = turn.length_s
        if turn.repeat == 1:
            length_s = self._parts[turn.workers][0].seconds
        rule = Stopping(plan, turn.workers, base[-1] if base else None, length_s)
        began = self._now
        ends: dict[str, list[float]] = {}
        workers = self._workers(turn.workers, began)
        stop, looks, completions = None, 0, 0
        while stop is None:
            looks = max(looks + 1, math.ceil(workers.next_s() / LOOK_S))
            while workers.next_s() <= looks * LOOK_S:
                name, ended_s = workers.take()
                ends.setdefault(name, []).append(began + ended_s)
                completions += 1
            stop = rule.decide(completions, looks * LOOK_S, lambda: (Completions(ends), began))
        for name, last in workers.in_flight():  # they still finish when the load is taken away
            ends.setdefault(name, []).append(began + last)
        self._outcome.stops.append(str(stop))
        self._now = max(times[-1] for times in ends.values()) + self._between_s
        warm = cut_warm_up(Completions(ends), plan.warmup_s, began, rule.warm_at_s)
        rate = throughput(warm.rest, turn.workers)
        steady = has_settled(warm) and not drift_of(warm.rest, rate, 0.0).unsteady
        first, last = warm.rest.span
        middle = (first + last) / 2
        part = StepPart(
            turn.workers,
            turn.repeat,
            looks * LOOK_S,
            middle,
            rate,
            find_slow(warm.rest),
            steady and rate.enough,
        )
        self._parts[turn.workers].append(part)


class _Workers:
    """Workers of one kind of workload on a machine. slow: factor of their run times."""

    def __init__(
        self,
        count: int,
        slow: float,
        kind: str,
        chance: random.Random,
        *,
        machine: Machine,
        began_s: float,
    ) -> None:
        self._slow, self._ramp = slow, kind == "ramp"
        self._machine, self._began_s = machine, began_s
        self._times = [run_times(kind, chance) for _ in range(count)]
        self._heap = [(self._end(0.0, times), number) for number, times in enumerate(self._times)]
        heapify(self._heap)

    def next_s(self) -> float:
        """Return when the next request ends."""
        return self._heap[0][0]

    def take(self) -> tuple[str, float]:
        """Take the next completion: worker and time."""
        at, number = self._heap[0]
        heapreplace(self._heap, (self._end(at, self._times[number]), number))
        return str(number), at

    def in_flight(self) -> list[tuple[str, float]]:
        """List every worker with the end of its running request."""
        return [(str(number), at) for at, number in self._heap]

    def _end(self, start_s: float, times: Iterator[float]) -> float:
        work = self._slow * next(times)
        if self._ramp:
            return end_of_ramp(start_s, work)
        return self._machine.done_at(self._began_s + start_s, work) - self._began_s


def simulate(
    kind: str, truth: float, plan: Plan, seed: str, disturbance: Disturbance = DISTURBANCES[0]
) -> SimulatedOutcome:
    """Simulate one run.

    A jump comes at a random time within the length of the run without a jump.
    """
    chance, jump = random.Random(seed), (float("inf"), 1.0)
    if disturbance.jump:
        whole = simulate(kind, truth, plan, seed).seconds
        other = random.Random(f"{seed} jump")
        jump = (other.uniform(0.0, whole), other.choice((0.9, 1.1)))
    machine = Machine(kind, random.Random(f"{seed} machine"), per_s=disturbance.per_s, jump=jump)

    def workers(count: int, began_s: float) -> SimulatedWorkers:
        slow = count / truth ** plan.steps.index(count)
        return _Workers(count, slow, kind, chance, machine=machine, began_s=began_s)

    return SimulatedRun(plan, workers).simulate()


def study(
    kind: str,
    truth: float,
    runs: int,
    plan: Plan | None = None,
    disturbance: Disturbance = DISTURBANCES[0],
) -> Study:
    """Compute shares of coverage, verdicts and stops over `runs` runs with fixed seeds."""
    plan = plan or Plan(limit=4, scale=1.8, max_step_s=STEP_S.get(kind, USUAL_STEP_S))
    steps = len(plan.steps)
    covered, sound = [0] * steps, [0] * steps
    doublings = [Counter[str]() for _ in plan.steps[1:]]
    verdicts, stops = Counter[str](), Counter[str]()
    seconds, pairs = 0.0, 0
    for seed in range(runs):
        outcome = simulate(kind, truth, plan, f"{kind} {truth} {seed}", disturbance)
        for index, rate in enumerate(outcome.rates):
            if rate.enough:
                sound[index] += 1
                covered[index] += abs(rate.per_s - truth**index) <= rate.half_width
        for counter, verdict in zip(doublings, outcome.doublings, strict=True):
            counter[verdict] += 1
        verdicts[outcome.verdict] += 1
        stops.update(outcome.stops)
        seconds += outcome.seconds
        pairs += outcome.pairs
    return Study(
        coverage=[hits / max(1, count) for hits, count in zip(covered, sound, strict=True)],
        sound=[count / runs for count in sound],
        doublings=[_verdict_shares(counter, runs) for counter in doublings],
        verdicts=_verdict_shares(verdicts, runs),
        stops={name: count / sum(stops.values()) for name, count in sorted(stops.items())},
        seconds=seconds / runs,
        pairs=pairs / runs,
    )


def _verdict_shares(counts: Counter[str], runs: int) -> dict[str, float]:
    return {name: counts[name] / runs for name in VERDICTS}


def workloads(
    runs: int, plan: Plan, kinds: list[str], disturbances: list[Disturbance]
) -> Iterator[dict[str, object]]:
    """Yield the shares of wrong and of missing verdicts for every workload and disturbance."""
    for disturbance in disturbances:
        for kind in kinds:
            shares = {truth: study(kind, truth, runs, plan, disturbance) for truth in TRUTHS}
            yield {
                "workload": kind,
                "disturbance": disturbance.name,
                "wrong_fail": {truth: shares[truth].verdicts["FAIL"] for truth in (1.85, 1.95)},
                "wrong_pass": {truth: shares[truth].verdicts["PASS"] for truth in (1.6, 1.75)},
                "invalid": {truth: shares[truth].verdicts["INVALID"] for truth in TRUTHS},
                "seconds": {truth: round(shares[truth].seconds) for truth in TRUTHS},
                "pairs": {truth: round(shares[truth].pairs, 1) for truth in TRUTHS},
            }


def main(show: Callable[[str], None] = print) -> None:
    """Print one line for every cell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=0, help="1000, or 200 with --workloads")
    parser.add_argument("--kinds", default="", help="some of them, with commas")
    parser.add_argument("--workloads", action="store_true")
    parser.add_argument("--disturbances", default="0,1,2,3", help="by number, with commas")
    parser.add_argument("--max-step", type=float, default=0.0)
    options = parser.parse_args()
    every = WORKLOADS if options.workloads else KINDS
    kinds = options.kinds.split(",") if options.kinds else list(every)
    if options.workloads:
        plan = Plan(limit=4, scale=1.8, max_step_s=options.max_step)
        disturbances = [DISTURBANCES[int(number)] for number in options.disturbances.split(",")]
        for shares in workloads(options.runs or 200, plan, kinds, disturbances):
            show(json.dumps(shares))
        return
    for kind in kinds:
        for truth in TRUTHS:
            show(
                json.dumps(
                    {
                        "kind": kind,
                        "truth": truth,
                        **asdict(study(kind, truth, options.runs or 1000)),
                    }
                )
            )


if __name__ == "__main__":
    main()
