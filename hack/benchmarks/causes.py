"""Do runs name the cause that was injected? Real validations of commands whose bottleneck is known.

hack/bars causes [--only NAME ...] [--runs 20] [--loaded] [--at-most RUNS]

makes the runs that are missing and appends a line for each to docs/results/causes.jsonl; with
--at-most it makes only the next few of them, with --summary it only prints what stands there. Half
of the runs, those with even seeds, have other load on the machine.

hack/bars causes --cost [sleep|script|empty|ffmpeg ...] [--pairs 20] [--seconds 10]

measures what sampling costs, with and without it in alternation; wants a quiet machine.
"""

import argparse
import datetime
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from hack.benchmarks.causes_cost import CASES, pairs
from hack.benchmarks.causes_injectors import INJECTORS, Unsuitable
from hack.benchmarks.causes_runs import InjectedRun, Row, Spoilt, machine, run

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "causes.jsonl"
RUNS, LINEAR_RUNS = 20, 100
# Rows of other programs than forking ones that have fewer runs.
FEWER_RUNS = 8
WITH_FEWER_RUNS = (
    "cpu",
    "quota",
    "flock",
    "fcntl",
    "semaphore",
    "disk",
    "network",
    "tcp",
    "unix",
    "memory",
    "device",
    "slow-worker",
    "slow-client",
)
# The part of the runs that must be right, by what is judged of a run: over all rows, and in each.
LEAST_RIGHT = {"cause": 0.95, "object": 0.95, "interval": 0.9}
LEAST_RIGHT_IN_ROW = {"cause": 0.85, "object": 0.85, "interval": 0.75}
# The part of the added time that is observed: in the median run of each row, and in 95 % of runs.
OBSERVED, OBSERVED_IN_MOST = 0.9, 0.75


def missing(
    names: Sequence[str], runs: int, stored_runs: Sequence[Row], loaded: bool | None
) -> Iterator[InjectedRun]:
    """Return the cases that no line tells of, one of every injector after the other.

    runs: of each injector; 0 for the numbers of the bar. loaded: only those with other load, or
    only those without; None for all.
    """
    done = {(row["injector"], row["seed"]) for row in stored_runs}
    runs_of = {name: runs or _usual_runs(name) for name in names}
    for seed in range(1, max(runs_of.values()) + 1):
        for name in names:
            case = InjectedRun(name, seed)
            if seed > runs_of[name] or (name, seed) in done:
                continue
            if loaded in (None, case.loaded):
                yield case


def _usual_runs(injector: str) -> int:
    if injector == "linear":
        return LINEAR_RUNS
    return FEWER_RUNS if injector in WITH_FEWER_RUNS else RUNS


def summary(stored_runs: Sequence[Row]) -> list[Row]:
    """Return a line for every injector, and one for all: how many of the runs are right.

    Of those that can be. `observed`: of the added time, in the median run and in the run below
    which 5 % of them are.
    """
    lines = []
    for name in INJECTORS:
        own_runs = [row for row in stored_runs if row["injector"] == name]
        if own_runs:
            least_right = LEAST_RIGHT if name == "linear" else LEAST_RIGHT_IN_ROW
            line = {"injector": name, **_summarise_runs(own_runs, least_right)}
            line["met"] &= line["observed"][0] >= OBSERVED
            lines.append(line)
    if lines:
        line = {"injector": "all", **_summarise_runs(stored_runs, LEAST_RIGHT)}
        line["met"] &= line["observed"][1] >= OBSERVED_IN_MOST
        lines.append(line)
    return lines


def _summarise_runs(runs: Sequence[Row], least_right: Mapping[str, float]) -> Row:
    counts = {}
    for aspect in least_right:
        judged = [run["right"][aspect] for run in runs if run["right"][aspect] is not None]
        counts[aspect] = [sum(judged), len(judged)]
    observed = sorted(run["observed"] for run in runs if "observed" in run) or [1.0]
    return {
        "runs": len(runs),
        **counts,
        "observed": [statistics.median(observed), observed[len(observed) // 20]],
        "met": all(right >= least_right[aspect] * of for aspect, (right, of) in counts.items()),
    }


def stored(path: Path = RESULTS) -> list[Row]:
    """Return the lines that were written by earlier runs."""
    if not path.exists():
        return []
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if "injector" in line]


def append(row: Row, path: Path = RESULTS) -> None:
    """Add a line, with the time and the code that it is of."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    described = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=path.parent
    )
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    stamp = {"at": now, "code": described.stdout.strip()}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, **stamp}) + "\n")


def make(cases: Iterable[InjectedRun], at_most: int | None) -> None:
    """Make runs, of the cases in this order.

    An injector that this machine cannot have is left out, and said so.
    """
    unsuitable: set[str] = set()
    runs = 0
    for case in cases:
        if case.injector in unsuitable:
            continue
        if runs == at_most:
            return
        try:
            judged = run(case)
        except Unsuitable as error:
            unsuitable.add(case.injector)
            print(f"{case.injector}: {error}", file=sys.stderr, flush=True)
            continue
        except Spoilt as error:  # the run stays missing
            print(f"{case.injector} {case.seed}: {error}", file=sys.stderr, flush=True)
            continue
        append(judged)
        print(json.dumps(judged), file=sys.stderr, flush=True)
        runs += 1


def cost(names: Sequence[str], count: int, seconds: float) -> int:
    """Measure, keep and print a line for each case; 0 when all are cheap enough."""
    holds = True
    for name in names:
        measured = {**pairs(name, count, seconds), "machine": machine()}
        append(measured)
        print(json.dumps(measured), flush=True)
        holds = holds and measured["met"]
    return int(not holds)


def main() -> int:
    """Print a line for every injector; 0 when all are right often enough."""
    parser = argparse.ArgumentParser(
        prog="hack/bars causes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only", nargs="+", choices=INJECTORS, metavar="NAME", help=", ".join(INJECTORS)
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=0,
        help=f"of each [default: {RUNS}, of linear {LINEAR_RUNS}, of some {FEWER_RUNS}]",
    )
    parser.add_argument(
        "--loaded",
        action=argparse.BooleanOptionalAction,
        help="only runs with other load on the machine, or only those without",
    )
    parser.add_argument(
        "--at-most", type=int, metavar="RUNS", help="make so many of them [default: all]"
    )
    parser.add_argument("--summary", action="store_true", help="make no runs")
    parser.add_argument(
        "--cost", nargs="*", choices=CASES, metavar="CASE", help="instead, what sampling costs"
    )
    parser.add_argument("--pairs", type=int, default=20, help="of --cost")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each half of a pair")
    options = parser.parse_args()
    if options.cost is not None:
        return cost(options.cost or list(CASES), options.pairs, options.seconds)
    names = options.only or list(INJECTORS)
    if not options.summary:
        make(missing(names, options.runs, stored(), options.loaded), options.at_most)
    lines = summary([row for row in stored() if row["injector"] in names])
    for line in lines:
        print(json.dumps(line), flush=True)
    all_met = bool(lines) and all(line["met"] for line in lines)
    return int(not all_met)


if __name__ == "__main__":
    sys.exit(main())
