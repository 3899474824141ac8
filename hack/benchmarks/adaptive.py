"""Compares adaptive stopping with a fixed measuring time of 20 request lengths a step.

Both methods measure the same workload with 1, 2, 4, 8 and 16 workers, 20 times, on a virtual clock;
the truth is known. fixed: wait one request length, then count completions for 20 request lengths,
as the predecessor of this tool does. adaptive: the production stopping rule and estimate. The table
has for each method the seconds of a run, drains included, and the root mean square of the relative
error of all steps. The last column is how many times longer the fixed method takes to reach the
error of the adaptive one: its window is doubled until it does.

With --real SECONDS both methods run on this machine with real workers (scaletest validate), in
alternation.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from pathlib import Path

from hack.benchmarks.verdicts import SimulatedRun
from scaletest.analysis.steps import measured_step
from scaletest.model import Plan
from scaletest.validation.folder import ValidationFolder

LIMIT = 16
WINDOW = 20
REPETITIONS = 20
# By how many seconds a sleep ends late, mean and standard deviation: measured with ./hack/demo.
LATE, JITTER = 0.0012, 0.0005

RunTimes = Callable[[random.Random], float]


@dataclass(frozen=True, slots=True)
class Method:
    """Cost and error of one method.

    seconds: of a run. error: root mean square of the relative errors.
    """

    seconds: float
    error: float


def sleeps(seconds: float) -> RunTimes:
    """Return run times of a sleep that ends a little late."""
    return lambda chance: seconds + max(0.0, chance.gauss(LATE, JITTER))


def exponential(seconds: float) -> RunTimes:
    """Return run times with an exponential distribution."""
    return lambda chance: chance.expovariate(1 / seconds)


def stream(times: RunTimes, chance: random.Random) -> Iterator[float]:
    """Yield the times at which one worker finishes its requests, without end."""
    now = chance.uniform(0, 0.002)
    while True:
        now += times(chance)
        yield now


def until(streams: list[Iterator[float]], end_s: float) -> tuple[list[list[float]], float]:
    """List the ends of requests that began before `end_s`, by worker, and the last of them."""
    completions = []
    for worker in streams:
        ended: list[float] = []
        for now in worker:
            ended.append(now)
            if now >= end_s:
                break
        completions.append(ended)
    return completions, max(ended[-1] for ended in completions)


def fixed(
    times: RunTimes, seconds: float, workers: int, chance: random.Random, window: float
) -> tuple[float, float]:
    """Measure by the fixed method; returns requests/s and the seconds used."""
    begin, end = seconds, seconds * (1 + window)
    completions, last = until([stream(times, chance) for _ in range(workers)], end)
    count = 0
    for ended in completions:
        count += sum(begin < now <= end for now in ended)
    return count / (end - begin), last


class _Streams:
    """Workers whose completions are those of `stream`."""

    def __init__(self, count: int, times: RunTimes, chance: random.Random) -> None:
        self._streams = [stream(times, chance) for _ in range(count)]
        self._heap = [
            (next(completions), number) for number, completions in enumerate(self._streams)
        ]
        heapify(self._heap)

    def next_s(self) -> float:
        """Return when the next request ends."""
        return self._heap[0][0]

    def take(self) -> tuple[str, float]:
        """Take the next completion: worker and time."""
        at, number = self._heap[0]
        heapreplace(self._heap, (next(self._streams[number]), number))
        return str(number), at

    def in_flight(self) -> list[tuple[str, float]]:
        """List every worker with the end of its running request."""
        return [(str(number), at) for at, number in self._heap]


def adaptive(plan: Plan, times: RunTimes, chance: random.Random) -> tuple[list[float], float]:
    """Measure by the production rules; returns requests/s of every step and the seconds used.

    Starting workers takes no time.
    """
    outcome = SimulatedRun(
        plan, lambda count, began_s: _Streams(count, times, chance), between_s=0.0
    ).simulate()
    return [rate.per_s for rate in outcome.rates], outcome.seconds


def compare(name: str, times: RunTimes, seconds: float, truth: float) -> dict[str, object]:
    """Compare both methods for one workload. truth: requests/s of one worker."""
    plan = Plan(limit=LIMIT, seconds=seconds, order="mirrored")
    ours = _repeat(lambda chance: adaptive(plan, times, chance), truth, plan, f"{name} adaptive")
    window = float(WINDOW)
    theirs = _fixed(times, seconds, truth, plan, window)
    equal = theirs
    while equal.error > ours.error and window < 1e5:
        window *= 2
        equal = _fixed(times, seconds, truth, plan, window)
    return {
        "workload": name,
        "fixed_s": round(theirs.seconds, 1),
        "fixed_error": theirs.error,
        "adaptive_s": round(ours.seconds, 1),
        "adaptive_error": ours.error,
        "time_ratio": theirs.seconds / ours.seconds,
        "time_ratio_at_equal_error": equal.seconds / ours.seconds,
    }


def _fixed(times: RunTimes, seconds: float, truth: float, plan: Plan, window: float) -> Method:
    def once(chance: random.Random) -> tuple[list[float], float]:
        pairs = [fixed(times, seconds, workers, chance, window) for workers in plan.steps]
        return [rate for rate, _ in pairs], sum(used for _, used in pairs)

    return _repeat(once, truth, plan, f"fixed {window}")


def _repeat(
    once: Callable[[random.Random], tuple[list[float], float]], truth: float, plan: Plan, seed: str
) -> Method:
    errors, used = [], []
    for repetition in range(REPETITIONS):
        rates, seconds = once(random.Random(f"{seed} {repetition}"))
        errors += [
            rate / (workers * truth) - 1 for rate, workers in zip(rates, plan.steps, strict=True)
        ]
        used.append(seconds)
    return Method(statistics.fmean(used), _root_mean_square(errors))


def real(seconds: float, rounds: int) -> dict[str, object]:
    """Compare both methods on this machine, in alternation.

    The throughput of the fixed method is counted in the records of a run of its length.
    """
    errors: dict[str, list[float]] = {"fixed": [], "adaptive": []}
    used: dict[str, list[float]] = {"fixed": [], "adaptive": []}
    fixed_window = ("--order", "ascending", "--step-time", repr(WINDOW * seconds))
    for _ in range(rounds):
        for method, extra in (("adaptive", ()), ("fixed", fixed_window)):
            with tempfile.TemporaryDirectory() as folder:
                line = [
                    sys.executable,
                    "-m",
                    "scaletest",
                    "validate",
                    "--local",
                    "--limit",
                    str(LIMIT),
                ]
                line += ["--seconds", repr(seconds), "--run-dir", f"{folder}/run", *extra]
                subprocess.run(
                    line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
                )
                stored = ValidationFolder(Path(folder) / "run").load()
            used[method].append(float(stored.result["elapsed_s"]))
            for measurement in stored.measurements:
                records = stored.records[measurement.key]
                measured = measured_step(stored.plan, measurement, records)
                rate = measured.throughput.per_s
                if method == "fixed":
                    begin = measured.began_s + seconds
                    end = begin + WINDOW * seconds
                    count = sum(
                        begin < record.reply.ended_s <= end for record in records if record.ok
                    )
                    rate = count / (end - begin)
                errors[method].append(rate * seconds / measurement.workers - 1)
    return {
        "workload": f"sleep {seconds:g} s, real",
        **{
            f"{method}_s": [round(min(times), 1), round(max(times), 1)]
            for method, times in used.items()
        },
        **{f"{method}_error": _root_mean_square(relative) for method, relative in errors.items()},
        "time_ratio": statistics.fmean(used["fixed"]) / statistics.fmean(used["adaptive"]),
    }


def _root_mean_square(errors: list[float]) -> float:
    return math.sqrt(statistics.fmean(error**2 for error in errors))


def main() -> None:
    """Print one line of JSON for every workload."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--real", type=float, metavar="SECONDS")
    parser.add_argument("--rounds", type=int, default=REPETITIONS)
    options = parser.parse_args()
    if options.real:
        print(json.dumps(real(options.real, options.rounds)))
        return
    for seconds in (0.5, 2.0, 10.0):
        print(
            json.dumps(
                compare(f"sleep {seconds:g} s", sleeps(seconds), seconds, 1 / (seconds + LATE))
            ),
            flush=True,
        )
    print(json.dumps(compare("exponential, mean 2 s", exponential(2.0), 2.0, 0.5)), flush=True)


if __name__ == "__main__":
    main()
