"""Do runs name the cause that was injected? Real validations of commands whose bottleneck is known.

hack/bars causes [--only NAME ...] [--runs 20] [--loaded] [--at-most RUNS]

makes the runs that are missing and appends a line for each to docs/results/causes.jsonl; with
--at-most it makes only the next few of them, with --summary it only prints what stands there. Half
of the runs, those with even seeds, have other load on the machine.

hack/bars causes --cost [sleep|empty|ffmpeg ...] [--pairs 20] [--seconds 10]

measures what sampling costs, with and without it in alternation; wants a quiet machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hack.benchmarks.causes_cost import CASES, pairs
from hack.benchmarks.causes_injectors import INJECTORS, Unsuitable
from hack.benchmarks.causes_runs import InjectedRun, Row, machine, run

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "causes.jsonl"
RUNS, LINEAR_RUNS = 20, 100
# Parts of the runs that must be right.
CAUSES_RIGHT, SHARES_RIGHT = 0.95, 0.9


def missing(
    names: Sequence[str], runs: int, rows: Sequence[Row], loaded: bool
) -> Iterator[InjectedRun]:
    """The cases that no line tells of, one of every injector after the other. loaded: only those
    with other load.
    """
    made = {(row["injector"], row["seed"]) for row in rows}
    wanted = {name: runs or (LINEAR_RUNS if name == "linear" else RUNS) for name in names}
    for seed in range(1, max(wanted.values()) + 1):
        for name in names:
            case = InjectedRun(name, seed)
            if seed <= wanted[name] and (name, seed) not in made and (case.loaded or not loaded):
                yield case


def summary(rows: Sequence[Row]) -> list[Row]:
    """A line for every injector: how many runs, and how many of those with a truth are right."""
    lines = []
    for name in INJECTORS:
        own = [row for row in rows if row["injector"] == name]
        if own:
            counts = {what: _counted(own, what) for what in ("cause", "object", "share")}
            lines.append({"injector": name, "runs": len(own), **counts, "met": _is_met(counts)})
    return lines


def _counted(rows: Sequence[Row], what: str) -> list[int]:
    """How many are right, of how many that can be."""
    judged = [row["right"][what] for row in rows if row["right"][what] is not None]
    return [sum(judged), len(judged)]


def _is_met(counts: dict[str, list[int]]) -> bool:
    least = {"cause": CAUSES_RIGHT, "object": CAUSES_RIGHT, "share": SHARES_RIGHT}
    return all(right >= least[what] * judged for what, (right, judged) in counts.items())


def stored(path: Path = RESULTS) -> list[Row]:
    """The lines that were written by earlier runs."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [row for row in map(json.loads, lines) if "injector" in row]


def append(row: Row, path: Path = RESULTS) -> None:
    """Keep a line, with when and on what code."""
    words = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    code = subprocess.run(
        words, capture_output=True, text=True, check=False, cwd=path.parent
    ).stdout.strip()
    stamp = {"at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "code": code}
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({**row, **stamp}) + "\n")


def make(cases: Iterable[InjectedRun], at_most: int | None) -> None:
    """Make runs, of the cases in this order. An injector that this machine cannot have is left out,
    and said so.
    """
    unsuitable: set[str] = set()
    runs = 0
    for case in cases:
        if case.injector in unsuitable:
            continue
        if runs == at_most:
            return
        try:
            row = run(case)
        except Unsuitable as error:
            unsuitable.add(case.injector)
            print(f"{case.injector}: {error}", file=sys.stderr, flush=True)
            continue
        append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        runs += 1


def cost(names: Sequence[str], count: int, seconds: float) -> int:
    """Measure, keep and print a line for each case; 0 when all are cheap enough."""
    holds = True
    for name in names:
        row = {**pairs(name, count, seconds), "machine": machine()}
        append(row)
        print(json.dumps(row), flush=True)
        holds = holds and row["met"]
    return 0 if holds else 1


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
        "--runs", type=int, default=0, help=f"of each [default: {RUNS}, of linear {LINEAR_RUNS}]"
    )
    parser.add_argument(
        "--loaded", action="store_true", help="only runs with other load on the machine"
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
    return 0 if lines and all(line["met"] for line in lines) else 1


if __name__ == "__main__":
    sys.exit(main())
