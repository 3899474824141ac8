"""Where the requests of an injected bottleneck spend their time, and what sampling costs, without
queue and validation.

python -m hack.benchmarks.causes_workers NAME ... [--workers 4] [--seconds 5]

runs each command with one worker and with several, and prints the mean seconds of a request by
state: what grew must be the injected state.

python -m hack.benchmarks.causes_workers --cost [--command '/bin/sleep 0.5'] [--workers 8]
[--seconds 10] [--pairs 5]

measures CPU seconds of the workers themselves, with and without sampling in alternation.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from hack.benchmarks.causes_injectors import INJECTORS, NONE, Injected, Unsuitable
from scaletest.model.activity import Activity, State
from scaletest.system.wake import Wake


def measure(
    injected: Injected, workers: int, seconds: float, *, sampled: bool = True
) -> list[Activity | None]:
    """The results of workers that run the command repeatedly; each worker is a process."""
    context = multiprocessing.get_context("spawn")
    arguments = [(injected, seconds, sampled)] * workers
    with context.Pool(workers) as pool:
        of_workers = pool.starmap(_work, arguments, chunksize=1)
    return list(itertools.chain.from_iterable(of_workers))


def _work(injected: Injected, seconds: float, sampled: bool) -> list[Activity | None]:
    from workers.runtime import Runtime, Settings

    if injected.join:
        Path(injected.join).write_text(str(os.getpid()), encoding="ascii")
    runtime = Runtime(Settings(command=injected.command, no_causes=not sampled), Wake())
    activities, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        ended, _ = runtime.run((), 0.0)
        activities.append(ended.activity)
    runtime.close()
    return activities


def own_cpu_s(command: tuple[str, ...], workers: int, seconds: float, *, sampled: bool) -> float:
    """CPU seconds a second of the workers together, without the programs that they run."""
    arguments = [(command, seconds, sampled)] * workers
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        used_s = pool.starmap(_own_cpu_s, arguments, chunksize=1)
    return math.fsum(used_s) / seconds


def _own_cpu_s(command: tuple[str, ...], seconds: float, sampled: bool) -> float:
    _work(Injected(("/bin/true",), NONE), 0.5, sampled)
    began = time.process_time()
    _work(Injected(command, NONE), seconds, sampled)
    return time.process_time() - began


def means(activities: Sequence[Activity | None]) -> dict[State, float]:
    """Mean seconds of a request by state."""
    known = [activity for activity in activities if activity is not None]
    sums: dict[State, float] = defaultdict(float)
    for activity in known:
        for state, seconds in activity.seconds.items():
            sums[state] += seconds
    return {state: sums[state] / len(known) for state in State if sums[state]}


def objects(activities: Sequence[Activity | None], state: str) -> dict[str, float]:
    """Seconds by object of one state, the longest first."""
    sums: dict[str, float] = defaultdict(float)
    for activity in activities:
        if activity is None:
            continue
        for wait in activity.waits:
            if wait.state == state:
                sums[wait.object] += wait.seconds
    return {name: sums[name] for name in sorted(sums, key=lambda name: -sums[name])}


def _show(name: str, workers: int, seconds: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="scaletest-causes-"))
    try:
        with INJECTORS[name](folder, 1.0) as injected:
            few, many = (measure(injected, count, seconds) for count in (1, workers))
    except Unsuitable as error:
        print(json.dumps({"cause": name, "unsuitable": str(error)}), flush=True)
        return
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    before, after = means(few), means(many)
    grown = {state: round(after.get(state, 0.0) - before.get(state, 0.0), 4) for state in State}
    line = {
        "cause": name,
        "workers": workers,
        "runs": [len(few), len(many)],
        "seconds": [round(sum(before.values()), 4), round(sum(after.values()), 4)],
        "grown": {
            state.value: added_s for state, added_s in grown.items() if abs(added_s) >= 0.001
        },
        "first": max(grown, key=lambda state: grown[state]).value,
        "injected": injected.state,
        "object": next(iter(objects(many, injected.state)), ""),
        "injected_object": injected.object,
    }
    print(json.dumps(line), flush=True)


def _show_cost(command: tuple[str, ...], workers: int, seconds: float, pairs: int) -> None:
    differences = []
    for _ in range(pairs):
        sampled, plain = (
            own_cpu_s(command, workers, seconds, sampled=is_sampled) for is_sampled in (True, False)
        )
        differences.append(sampled - plain)
        print(json.dumps({"with": round(sampled, 5), "without": round(plain, 5)}), flush=True)
    line = {"workers": workers, "cores": round(statistics.mean(differences), 5)}
    if len(differences) > 1:
        line["deviation"] = round(statistics.stdev(differences), 5)
    print(json.dumps(line), flush=True)


def main() -> int:
    """Run the named injectors, or all that need no device."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [name for name in INJECTORS if name not in ("device", "slow-worker", "slow-client")]
    parser.add_argument(
        "names", nargs="*", choices=[*names, []], metavar="NAME", help=", ".join(names)
    )
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--command", default="/bin/sleep 0.5", help="of --cost")
    arguments = parser.parse_args()
    if arguments.cost:
        _show_cost(
            tuple(arguments.command.split()), arguments.workers, arguments.seconds, arguments.pairs
        )
        return 0
    for name in arguments.names or names:
        _show(name, arguments.workers, arguments.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
