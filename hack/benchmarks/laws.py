"""Checks that real runs find the known laws of devices and locks.

ceiling: two devices that serve two runs each at full speed. usl: one device with contention and
coherency. lock: a lock around every request. contention, peak: requests that get slower with every
worker, by a shell script. Prints one line of JSON a law, with known and measured values; needs a
quiet machine. tests/unit/test_runner.py has the same laws on a virtual clock.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Report = dict[str, Any]
# A request that takes T (1 + a (n - 1) + b n (n - 1)) s with n workers. Each worker creates a file,
# by which living workers are counted. The shell computes in whole milliseconds and thousandths, so
# that it starts no other program: that would use the processor, which the workers share as well.
SHARED = (
    ': >"$1/$PPID"; t=$2 a=$3 b=$4 n=0; for worker in "$1"/*; do [ -d "/proc/${worker##*/}" ] &&'
    " n=$((n + 1)); done; exec sleep $((t * (1000 + a * (n - 1) + b * n * (n - 1))))e-6"
)


@dataclass(frozen=True, slots=True)
class LawCase:
    """One law.

    arguments: of the command line; FOLDER stands for a folder of the run. verdict: the expected
    one. names: of the laws that describe it. truth: known values by name. relative: accepted
    relative deviation.
    """

    devices: int
    arguments: tuple[str, ...]
    verdict: str
    names: tuple[str, ...]
    truth: dict[str, float]
    relative: float


def shell(limit: int, milliseconds: int, contention: int, coherency: int) -> tuple[str, ...]:
    """Build options and command of requests that get slower with every worker.

    contention, coherency: in 1/1000.
    """
    numbers = (str(number) for number in (milliseconds, contention, coherency))
    options = ("--limit", str(limit), "--seconds", str(milliseconds / 1000))
    return (*options, "--", "sh", "-c", SHARED, "sh", "FOLDER", *numbers)


def device(per_device: str, law: str) -> tuple[str, ...]:
    """Build options and command of a comparison of simulated devices."""
    options = ("--per-device", per_device, "--seconds", "0.4", "--precision", "0.01")
    return (*options, "--", "fakedev", "--seconds", "0.4", "--law", law)


LOCK = ("--limit", "8", "--seconds", "0.4", "--", "flock", "FOLDER/lock", "sleep", "0.4")
CASES = {
    "ceiling": LawCase(
        2, device("1,2,4,8", "capped:2"), "PASS", ("capped",), {"ceiling_per_s": 10.0}, 0.1
    ),
    "usl": LawCase(
        1,
        device("1,2,4,8,16", "usl:0.1:0.03"),
        "PASS",
        ("usl",),
        {"contention": 0.1, "coherency": 0.03, "peak": math.sqrt(0.9 / 0.03)},
        0.25,
    ),
    # starting processes takes time too, so the shared part is a little less than all
    "contention": LawCase(
        0, shell(16, 400, 150, 0), "FAIL", ("amdahl", "usl"), {"contention": 0.15}, 0.15
    ),
    "lock": LawCase(
        0, LOCK, "FAIL", ("amdahl", "usl", "capped"), {"contention": 1.0, "ceiling_per_s": 2.5}, 0.1
    ),
    "peak": LawCase(
        0, shell(16, 300, 30, 20), "FAIL", ("usl",), {"peak": math.sqrt(0.97 / 0.02)}, 0.2
    ),
}


def measure(name: str) -> Report:
    """Run one validation in a folder of its own, and judge it."""
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="scaletest-laws-") as text:
        folder = Path(text)
        (folder / "shared").mkdir()
        for number in range(case.devices):
            (folder / f"device{number}").touch()
        line = [
            sys.executable,
            "-m",
            "scaletest",
            "validate",
            "--local",
            "--run-dir",
            f"{folder}/run",
            "--format",
            "json",
        ]
        if case.devices:
            line += ["--device-glob", f"{folder}/device*"]
        line += [argument.replace("FOLDER", f"{folder}/shared") for argument in case.arguments]
        environment = {**os.environ, "SCALETEST_FAKEDEV": f"{folder}/fakedev"}
        done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    if not done.stdout:
        return {"law": name, "error": done.stderr[-400:], "met": False}
    return {"law": name, **judge(case, json.loads(done.stdout))}


def judge(case: LawCase, report: Report) -> Report:
    """Compare measured with known values. Only values that the chosen law has count."""
    law = report["law"] or {}
    values = {**law, "peak": (report["peak"] or {}).get("workers")}
    observed = {name: values.get(name) for name in case.truth}
    right = [
        math.isclose(number, case.truth[name], rel_tol=case.relative)
        for name, number in observed.items()
        if number
    ]
    verdict = report["verdict"]["kind"]
    return {
        "verdict": verdict,
        "reason": report["verdict"]["reason"],
        "chosen": law.get("name"),
        "truth": case.truth,
        "seen": observed,
        "seconds": round(report["elapsed_s"]),
        "met": (
            verdict == case.verdict and law.get("name") in case.names and bool(right) and all(right)
        ),
    }


def main() -> int:
    """Print one line for every law; 0 when all were found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("laws", nargs="*", metavar="LAW", help=f"{', '.join(CASES)} [default: all]")
    names = parser.parse_args().laws or list(CASES)
    unknown = set(names) - set(CASES)
    if unknown:
        parser.error(f"unknown law {', '.join(sorted(unknown))}; the laws are {', '.join(CASES)}")
    holds = True
    for name in names:
        report = measure(name)
        holds = holds and report["met"]
        print(json.dumps(report), flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
