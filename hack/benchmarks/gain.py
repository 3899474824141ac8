"""Bar: the speed-up that a run promises without its cause, against the program without it.

hack/bars gain [--only NAME ...] [--step-time 12]

Five programs, each measured with its bottleneck and with that taken out: a lock file, a database
and a pipe of one token become one for each worker or request, a service gets more threads, and two
workers a CPU each. What is measured without it must lie in the promised interval of at least four.
A line for each is appended to docs/results/gain.jsonl. 10 minutes, a quiet machine.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from hack.benchmarks import causes_injectors as injectors
from hack.benchmarks import causes_programs as programs
from hack.benchmarks.causes import append
from hack.benchmarks.causes_injectors import Injected
from hack.benchmarks.causes_programs import measured
from hack.benchmarks.causes_runs import machine
from hack.benchmarks.lines import report

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "gain.jsonl"
LEAST_RIGHT = 4
WORKERS, CPUS = 4, 2
MANY = 64
# Each worker has a copy of the file.
OWN_FILE = """
shared, sys.argv[1] = sys.argv[1], "%s-%d" % (sys.argv[1], os.getppid())
if not os.path.exists(sys.argv[1]):
    with open(shared, "rb") as source, open(sys.argv[1], "wb") as copy:
        copy.write(source.read())
"""
# The command, in a folder; whether it has its bottleneck.
Program = Callable[[Path, bool], AbstractContextManager[Sequence[str]]]


@contextmanager
def lock_script(folder: Path, is_limited: bool) -> Iterator[Sequence[str]]:
    """Half of its time this shell script holds a file lock."""
    begin = programs.SCRIPT_BEGIN
    if not is_limited:
        begin = begin.replace('"$1"', '"$1-$PPID"')
    yield programs.script(f"{begin}{programs.SCRIPT_END}", folder / "shared.lock", 0.1)


@contextmanager
def sqlite(folder: Path, is_limited: bool) -> Iterator[Sequence[str]]:
    """Half of its time it writes to a database."""
    with injectors.sqlite(folder) as injected:
        code = programs.SQLITE if is_limited else OWN_FILE + programs.SQLITE
        yield measured(code, injected.object, 0.15)


def fifo(folder: Path, is_limited: bool) -> AbstractContextManager[Sequence[str]]:
    """Take a token out of a pipe for half of its time."""
    return _command_of(injectors.fifo(folder, tokens=1 if is_limited else MANY))


def tcp(folder: Path, is_limited: bool) -> AbstractContextManager[Sequence[str]]:
    """Ask a service that serves one at a time."""
    return _command_of(injectors.tcp(folder, slots=1 if is_limited else MANY))


@contextmanager
def cpu(folder: Path, is_limited: bool) -> Iterator[Sequence[str]]:
    """Compute, on one CPU or on all."""
    with injectors.pinned(folder) as injected:
        yield injected.command if is_limited else injected.command[3:]  # without taskset -c 0


PROGRAMS: Mapping[str, Program] = {
    "lock-script": lock_script,
    "sqlite": sqlite,
    "fifo": fifo,
    "tcp": tcp,
    "cpu": cpu,
}


@contextmanager
def _command_of(injector: AbstractContextManager[Injected]) -> Iterator[Sequence[str]]:
    with injector as injected:
        yield injected.command


def compare(name: str, step_s: float) -> dict[str, Any]:
    """Measure a program with and without its bottleneck; right: whether the promise was kept."""
    limited = validate(name, step_s, is_limited=True)
    gain, found = limited["gain"], {"finding": limited["finding"]}
    if gain is None:
        return {"program": name, **found, "right": False}
    free = validate(name, step_s, is_limited=False)
    speedups = {row["workers"]: row["speedup"] for row in free["scaling"]}
    reached, promised = speedups[gain["workers"]], gain["without"]
    return {
        "program": name,
        **found,
        "workers": gain["workers"],
        "speedup": gain["speedup"],
        "without": promised,
        "measured_without": reached,
        "right": promised["low"] <= reached["value"] <= promised["high"],
    }


def validate(name: str, step_s: float, *, is_limited: bool) -> dict[str, Any]:
    """Return the result of a validation of a program."""
    workers = CPUS if name == "cpu" else WORKERS
    line = [sys.executable, "-m", "scaletest", "validate", "--local", "--limit", str(workers)]
    with tempfile.TemporaryDirectory(prefix="scaletest-gain-") as name_of_folder:
        folder = Path(name_of_folder)
        line += ["--step-time", f"{step_s:g}s", "--run-dir", str(folder / "run")]
        with PROGRAMS[name](folder, is_limited) as command:
            done = subprocess.run(
                [*line, "--format", "json", "--", *command],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                check=False,
            )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> int:
    """Print a line for every program; 0 when enough promises were kept."""
    parser = argparse.ArgumentParser(
        prog="hack/bars gain",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, metavar="NAME")
    parser.add_argument("--step-time", type=float, default=12.0, metavar="SECONDS")
    options = parser.parse_args()
    rows = []
    for name in options.only or PROGRAMS:
        row = {**compare(name, options.step_time), "machine": machine()}
        append(row, RESULTS)
        print(json.dumps(row), flush=True)
        rows.append(row)
    right = sum(row["right"] for row in rows)
    return report("gain", right >= min(LEAST_RIGHT, len(rows)), right=right, programs=len(rows))


if __name__ == "__main__":
    sys.exit(main())
