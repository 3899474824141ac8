"""Checks that devices which slow down or speed up steadily do not change a verdict, in real runs.

Simulated devices (fakedev) drift by 0.1 % a second, half of the runs downwards and half upwards.
Every other run has devices that share nothing, which must not FAIL; the others have one device
whose contention limits a doubling to 1.6, which must not PASS. Prints one line of JSON a run, and
one for all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

DRIFT = 0.001
# 2 / (1 + a) = 1.6
CONTENTION = 0.25
WANTED = 1.8
LIMIT = 4


def run(number: int, order: str) -> dict[str, object]:
    """Run one validation in a folder of its own."""
    drift = DRIFT if number % 4 >= 2 else -DRIFT
    shared = number % 2 == 1
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        for index in range(1 if shared else LIMIT):
            (folder / f"device{index}").touch()
        work = ["fakedev", "--seconds", "0.3", "--jitter", "0.1", "--drift", repr(drift)]
        if shared:
            work += ["--law", f"amdahl:{CONTENTION}"]
        line = [
            sys.executable,
            "-m",
            "scaletest",
            "validate",
            "--local",
            "--limit",
            str(LIMIT),
            "--scale",
            str(WANTED),
        ]
        line += [
            "--seconds",
            "0.3",
            "--order",
            order,
            "--device-glob",
            f"{folder}/device*",
            "--run-dir",
            f"{folder}/run",
        ]
        environment = {**os.environ, "SCALETEST_FAKEDEV": f"{folder}/fakedev"}
        done = subprocess.run(
            [*line, "--format", "json", "--", *work],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
    report = json.loads(done.stdout)
    verdict = report["verdict"]["kind"]
    return {
        "drift_per_s": drift,
        "shared": shared,
        "verdict": verdict,
        "reason": report["verdict"]["reason"],
        "ratios": [step["ratio"]["value"] for step in report["steps"] if step["ratio"]],
        "trend_per_s": report["trend_per_s"],
        "seconds": round(report["elapsed_s"]),
        "met": verdict != ("PASS" if shared else "FAIL"),
    }


def main() -> None:
    """Print every run, and the number of wrong verdicts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--order", default="mirrored")
    options = parser.parse_args()
    runs = []
    for number in range(options.runs):
        runs.append(run(number, options.order))
        print(json.dumps(runs[-1]), flush=True)
    wrong = sum(not outcome["met"] for outcome in runs)
    verdicts = Counter(str(outcome["verdict"]) for outcome in runs)
    print(json.dumps({"runs": len(runs), "wrong": wrong, **verdicts, "met": wrong == 0}))


if __name__ == "__main__":
    main()
