"""Do known laws come back from real runs? Devices and locks whose law is known, through the command line.

ceiling: two devices that serve two runs each at full speed. usl: one device with contention and coherency. lock: a
lock around every request. contention, peak: requests that get slower with every worker, by a shell. Prints one line of
JSON a law, with what was known and what came out; wants a quiet machine. tests/unit/test_runner.py has the same laws on
a virtual clock.
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

Result = dict[str, Any]
# A request that takes T (1 + a (n - 1) + b n (n - 1)) s with n workers: each leaves a file by which those that live are
# counted. In whole milliseconds and thousandths, so that the shell needs no other program: what starts one uses the
# processor, of which there may be little, and that is shared as well.
SHARED = (
    ': >"$1/$PPID"; t=$2 a=$3 b=$4 n=0; for worker in "$1"/*; do [ -d "/proc/${worker##*/}" ] && n=$((n + 1)); done; '
    "exec sleep $((t * (1000 + a * (n - 1) + b * n * (n - 1))))e-6"
)


@dataclass(frozen=True, slots=True)
class Case:
    """One law. words: of the command line, FOLDER stands for a folder of the run. verdict: the one to expect.

    names: of the laws that are true of it. truth: known values by name. relative: how far from them is right.
    """

    devices: int
    words: tuple[str, ...]
    verdict: str
    names: tuple[str, ...]
    truth: dict[str, float]
    relative: float


def shell(limit: int, milliseconds: int, contention: int, coherency: int) -> tuple[str, ...]:
    """Options and command of requests that get slower with every worker, by so many thousandths."""
    numbers = (str(number) for number in (milliseconds, contention, coherency))
    options = ("--limit", str(limit), "--seconds", str(milliseconds / 1000))
    return (*options, "--", "sh", "-c", SHARED, "sh", "FOLDER", *numbers)


def device(per_device: str, law: str) -> tuple[str, ...]:
    """Options and command of a comparison of simulated devices."""
    options = ("--per-device", per_device, "--seconds", "0.4", "--precision", "0.01")
    return (*options, "--", "fakedev", "--seconds", "0.4", "--law", law)


LOCK = ("--limit", "8", "--seconds", "0.4", "--", "flock", "FOLDER/lock", "sleep", "0.4")
CASES = {
    "ceiling": Case(2, device("1,2,4,8", "capped:2"), "PASS", ("capped",), {"ceiling_per_s": 10.0}, 0.1),
    "usl": Case(
        1,
        device("1,2,4,8,16", "usl:0.1:0.03"),
        "PASS",
        ("usl",),
        {"contention": 0.1, "coherency": 0.03, "peak": math.sqrt(0.9 / 0.03)},
        0.25,
    ),
    # starting the processes of a request takes time of its own, so a little less than all of it is shared
    "contention": Case(0, shell(16, 400, 150, 0), "FAIL", ("amdahl", "usl"), {"contention": 0.15}, 0.15),
    "lock": Case(0, LOCK, "FAIL", ("amdahl", "usl", "capped"), {"contention": 1.0, "ceiling_per_s": 2.5}, 0.1),
    "peak": Case(0, shell(16, 300, 30, 20), "FAIL", ("usl",), {"peak": math.sqrt(0.97 / 0.02)}, 0.2),
}


def measure(name: str) -> Result:
    """One validation in a folder of its own, and what came out."""
    case = CASES[name]
    with tempfile.TemporaryDirectory(prefix="scaletest-laws-") as text:
        folder = Path(text)
        (folder / "shared").mkdir()
        for number in range(case.devices):
            (folder / f"device{number}").touch()
        line = [sys.executable, "-m", "scaletest", "validate", "--local", "--run-dir", f"{folder}/run", "-o", "json"]
        line += ["--device-glob", f"{folder}/device*"] if case.devices else []
        line += [word.replace("FOLDER", f"{folder}/shared") for word in case.words]
        environment = {**os.environ, "SCALETEST_FAKEDEV": f"{folder}/fakedev"}
        done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    if not done.stdout:
        return {"law": name, "error": done.stderr[-400:], "met": False}
    return {"law": name, **judge(case, json.loads(done.stdout))}


def judge(case: Case, result: Result) -> Result:
    """What came out beside what is known. A law has only some of the values: those count."""
    law = result["law"] or {}
    values = {**law, "peak": (result["peak"] or {}).get("workers")}
    seen = {name: values.get(name) for name in case.truth}
    right = [math.isclose(value, case.truth[name], rel_tol=case.relative) for name, value in seen.items() if value]
    verdict = result["verdict"]["kind"]
    return {
        "verdict": verdict,
        "reason": result["verdict"]["reason"],
        "chosen": law.get("name"),
        "truth": case.truth,
        "seen": seen,
        "seconds": round(result["elapsed_s"]),
        "met": verdict == case.verdict and law.get("name") in case.names and bool(right) and all(right),
    }


def main() -> int:
    """Print one line for every law; 0 when all came back."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("laws", nargs="*", metavar="LAW", help=f"{', '.join(CASES)} [default: all]")
    names = parser.parse_args().laws or list(CASES)
    unknown = set(names) - set(CASES)
    if unknown:
        parser.error(f"there is no law {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    holds = True
    for name in names:
        row = measure(name)
        holds = holds and row["met"]
        print(json.dumps(row), flush=True)
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
