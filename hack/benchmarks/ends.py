"""Bar: the end that a run promises is the one that comes.

python -m hack.benchmarks.ends [--runs 20] [--others 10] [KIND ...]

Makes real runs, and reads what they tell of their progress. A run holds when its end lay within
every range that was said of it, give or take a second. After the first third of a run the later end
of a range may be 2.5 times the earlier one at most, both from the beginning of the run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hack.benchmarks.lines import report

HELD_SHARE, WIDEST = 0.9, 2.5
# Progress is told in whole seconds.
ROUNDING_S = 1.0
SCATTERED = "import random, time; time.sleep(random.uniform(0.1, 0.3))"
COMPUTING = "sum(range(3_000_000))"
LOCKED = ("flock", "lock", "sleep", "0.05")
# What a run measures, in turns: programs of a validation, and the slots and the seconds of a
# request of a service.
PROGRAMS: Sequence[Sequence[str]] = (
    ("sleep", "0.1"),
    LOCKED,
    (sys.executable, "-c", SCATTERED),
    (sys.executable, "-c", COMPUTING),
    ("sleep", "0.5"),
)
SERVICES = ((8, 0.01), (2, 0.02), (1, 0.005), (4, 0.05))


@dataclass(frozen=True)
class Promise:
    """A range of the end, in seconds from the beginning of the run, and when it was said."""

    said_s: float
    earliest_s: float
    latest_s: float


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="of a validation and of a saturation")
    parser.add_argument("--others", type=int, default=10, help="runs of each other kind")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}")
    options = parser.parse_args()
    worst = 0
    for kind in options.kinds or KINDS:
        count = options.runs if kind in ("validation", "saturation") else options.others
        worst = max(worst, measure_kind(kind, count))
    return worst


def measure_kind(kind: str, count: int) -> int:
    """Make runs of one kind, and print its bar with a row for each run."""
    rows = []
    for number in range(count):
        with tempfile.TemporaryDirectory() as folder:
            real_s, promises = KINDS[kind](number, folder)
        held = all(
            promise.earliest_s - ROUNDING_S <= real_s <= promise.latest_s + ROUNDING_S
            for promise in promises
        )
        widths = [
            promise.latest_s / promise.earliest_s
            for promise in promises
            if promise.said_s >= max(1.0, real_s / 3)
        ]
        rows.append(
            {
                "run": number,
                "seconds": real_s,
                "held": held,
                "widest": max(widths, default=None),
                "promises": [(each.said_s, each.earliest_s, each.latest_s) for each in promises],
            }
        )
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    held_share = sum(row["held"] for row in rows) / max(1, len(rows))
    widest = max((row["widest"] for row in rows if row["widest"]), default=0.0)
    met = held_share >= HELD_SHARE and widest <= WIDEST
    return report(f"ends-{kind}", met=met, held_share=held_share, widest=widest, runs=rows)


def run_scaletest(arguments: Sequence[str], folder: str) -> tuple[float, list[Promise]]:
    """Run a command; return how long its run took, and what was promised meanwhile."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "scaletest", *arguments],
        env={**os.environ, "XDG_DATA_HOME": folder},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    events = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    if not events or events[-1]["event"] != "end":
        raise SystemExit(
            f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr[-500:]}"
        )
    promises = []
    for event in events:
        said_s, least_s, most_s = (
            event[name] for name in ("elapsed_s", "left_least_s", "left_most_s")
        )
        if least_s is not None and event["event"] != "end":
            promises.append(Promise(said_s, said_s + least_s, said_s + most_s))
    return events[-1]["elapsed_s"], promises


def validate(number: int, folder: str) -> tuple[float, list[Promise]]:
    """Validate one of the programs."""
    program = PROGRAMS[number % len(PROGRAMS)]
    return run_scaletest(["validate", "--progress", "json", "--limit", "8", "--", *program], folder)


@contextmanager
def served(slots: int, seconds: float) -> Iterator[str]:
    """Serve with so many slots of these seconds; yields the address."""
    command = [sys.executable, "-m", "hack.service", "--slots", str(slots)]
    with subprocess.Popen(
        [*command, "--seconds", str(seconds)], stdout=subprocess.PIPE, text=True
    ) as service:
        assert service.stdout is not None
        try:
            yield f"http://127.0.0.1:{service.stdout.readline().strip()}/"
        finally:
            service.kill()


def saturate(number: int, folder: str) -> tuple[float, list[Promise]]:
    """Saturate one of the services, with steps that are as long as several of its seconds."""
    with served(*SERVICES[number % len(SERVICES)]) as address:
        arguments = ["saturate", address, "--progress", "json", "--step-time", "2s"]
        return run_scaletest(arguments, folder)


def benchmark(number: int, folder: str) -> tuple[float, list[Promise]]:
    """Measure the disk eight times, for longer in each run."""
    settings = ("--set", f"runtime={1 + number % 3}", "--set", "size=16M")
    arguments = ["bench", "run", "Fio", *settings, "--repetitions", "8", "--progress", "json"]
    return run_scaletest(arguments, folder)


KINDS: dict[str, Callable[[int, str], tuple[float, list[Promise]]]] = {
    "validation": validate,
    "saturation": saturate,
    "benchmark": benchmark,
}


if __name__ == "__main__":
    sys.exit(main())
