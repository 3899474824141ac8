"""How much time does measuring until it is decided save against a fixed 20 request lengths a step?

Both methods measure the same workload with 1, 2, 4, 8 and 16 workers, 20 times, on a virtual clock; the truth is known.
fixed: wait one request length, then count completions for 20 request lengths, as the tool before this one does.
adaptive: the production stopping rule and estimate. For each the seconds a run takes, drains included, and the root
mean square of the relative error of all steps. The last column is how much longer the fixed method would take for the
error of the adaptive one: its window is doubled until it gets there.

With --real SECONDS both methods run on this machine with real workers (scaletest validate), in turn.
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

from hack.benchmarks.verdicts import Run
from scaletest.analysis.steps import sample
from scaletest.archive import RunFolder
from scaletest.model import Plan

LIMIT = 16
WINDOW = 20
REPETITIONS = 20
# What a sleep takes longer than it should, seconds: measured with ./hack/demo, mean and standard deviation.
LATE, JITTER = 0.0012, 0.0005

RunTimes = Callable[[random.Random], float]


@dataclass(frozen=True, slots=True)
class Method:
    """What one method needed and how wrong it was."""

    seconds: float
    error: float


def sleeps(seconds: float) -> RunTimes:
    """A sleep that wakes up a little late."""
    return lambda chance: seconds + max(0.0, chance.gauss(LATE, JITTER))


def exponential(seconds: float) -> RunTimes:
    """Run times that scatter as widely as they last."""
    return lambda chance: chance.expovariate(1 / seconds)


def stream(times: RunTimes, chance: random.Random) -> Iterator[float]:
    """When one worker finishes its requests, for ever."""
    now = chance.uniform(0, 0.002)
    while True:
        now += times(chance)
        yield now


def until(streams: list[Iterator[float]], end_s: float) -> tuple[list[list[float]], float]:
    """Completions of requests that began before `end_s`, and when the last of them ended."""
    rows = []
    for one in streams:
        row: list[float] = []
        for now in one:
            row.append(now)
            if now >= end_s:
                break
        rows.append(row)
    return rows, max(row[-1] for row in rows)


def fixed(times: RunTimes, seconds: float, workers: int, chance: random.Random, window: float) -> tuple[float, float]:
    """(requests/s, seconds used) of the fixed method."""
    begin, end = seconds, seconds * (1 + window)
    rows, last = until([stream(times, chance) for _ in range(workers)], end)
    return sum(begin < now <= end for row in rows for now in row) / (end - begin), last


class _Streams:
    """Workers whose completions are those of `stream`."""

    def __init__(self, count: int, times: RunTimes, chance: random.Random) -> None:
        self._streams = [stream(times, chance) for _ in range(count)]
        self._heap = [(next(completions), number) for number, completions in enumerate(self._streams)]
        heapify(self._heap)

    def next_s(self) -> float:
        """When the next request ends."""
        return self._heap[0][0]

    def take(self) -> tuple[str, float]:
        """The next completion: worker and when."""
        at, number = self._heap[0]
        heapreplace(self._heap, (next(self._streams[number]), number))
        return str(number), at

    def in_flight(self) -> list[tuple[str, float]]:
        """Of every worker when the request ends that runs now."""
        return [(str(number), at) for at, number in self._heap]


def adaptive(plan: Plan, times: RunTimes, chance: random.Random) -> tuple[list[float], float]:
    """(requests/s of every step, seconds used) of the production rules; starting workers takes no time."""
    outcome = Run(plan, lambda count, began_s: _Streams(count, times, chance), between_s=0.0).simulate()
    return [rate.per_s for rate in outcome.rates], outcome.seconds


def compare(name: str, times: RunTimes, seconds: float, truth: float) -> dict[str, object]:
    """One row of the table. truth: requests/s of one worker."""
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


def _repeat(once: Callable[[random.Random], tuple[list[float], float]], truth: float, plan: Plan, seed: str) -> Method:
    errors, used = [], []
    for repetition in range(REPETITIONS):
        rates, seconds = once(random.Random(f"{seed} {repetition}"))
        errors += [rate / (workers * truth) - 1 for rate, workers in zip(rates, plan.steps, strict=True)]
        used.append(seconds)
    return Method(statistics.fmean(used), math.sqrt(statistics.fmean(error**2 for error in errors)))


def real(seconds: float, rounds: int) -> dict[str, object]:
    """Both methods on this machine, in turn; the fixed one's count is made from the records of a run of its length."""
    errors: dict[str, list[float]] = {"fixed": [], "adaptive": []}
    used: dict[str, list[float]] = {"fixed": [], "adaptive": []}
    fixed_window = ("--order", "ascending", "--step-time", repr(WINDOW * seconds))
    for _ in range(rounds):
        for method, extra in (("adaptive", ()), ("fixed", fixed_window)):
            with tempfile.TemporaryDirectory() as folder:
                line = [sys.executable, "-m", "scaletest", "validate", "--local", "--limit", str(LIMIT)]
                line += ["--seconds", repr(seconds), "--run-dir", f"{folder}/run", *extra]
                subprocess.run(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                stored = RunFolder(Path(folder) / "run").load()
            used[method].append(float(stored.result["elapsed_s"]))
            for one in stored.measurements:
                rows = stored.records[one.key]
                found = sample(stored.plan, one, rows)
                rate = found.throughput.per_s
                if method == "fixed":
                    begin = found.began_s + seconds
                    end = begin + WINDOW * seconds
                    rate = sum(begin < row.reply.ended_s <= end for row in rows if row.ok) / (end - begin)
                errors[method].append(rate * seconds / one.workers - 1)
    return {
        "workload": f"sleep {seconds:g} s, real",
        **{f"{method}_s": [round(min(row), 1), round(max(row), 1)] for method, row in used.items()},
        **{f"{method}_error": math.sqrt(statistics.fmean(e * e for e in row)) for method, row in errors.items()},
        "time_ratio": statistics.fmean(used["fixed"]) / statistics.fmean(used["adaptive"]),
    }


def main() -> None:
    """Print one line of JSON for every workload."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", type=float, metavar="SECONDS")
    parser.add_argument("--rounds", type=int, default=REPETITIONS)
    given = parser.parse_args()
    if given.real:
        print(json.dumps(real(given.real, given.rounds)))
        return
    for seconds in (0.5, 2.0, 10.0):
        print(json.dumps(compare(f"sleep {seconds:g} s", sleeps(seconds), seconds, 1 / (seconds + LATE))), flush=True)
    print(json.dumps(compare("exponential, mean 2 s", exponential(2.0), 2.0, 0.5)), flush=True)


if __name__ == "__main__":
    main()
