"""Bar: a shell completes commands, options and runs in 300 ms, by the median of ten calls."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from hack.benchmarks.lines import report
from scaletest.runs.places import default_root

ROUNDS, RUNS = 10, 200
MOST_S = 0.3
PLAN = '{"schema_version": 1, "kind": "validation", "queue": "q"}'
# name of the bar, what is typed, and an item among those that are completed
BARS = [
    ("commands", "val", "validate"),
    *(
        (f"options-{name}", f"{name.replace('-', ' ')} --f", "--format")
        for name in ("validate", "bench-run", "lifecycle-run", "queue-list")
    ),
    ("runs", "report run-1", "run-199"),
]


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        for number in range(RUNS):
            path = default_root(environment) / f"run-{number:03}"
            path.mkdir(parents=True)
            (path / "plan.json").write_text(PLAN)
        return max([measure_line(*bar, environment) for bar in BARS])


def measure_line(name: str, line: str, expected: str, environment: dict[str, str]) -> int:
    """Measure one line and print its bar."""
    variables = {
        "_SCALETEST_COMPLETE": "bash_complete",
        "COMP_WORDS": f"scaletest {line}",
        "COMP_CWORD": str(len(line.split())),
    }
    program = shutil.which("scaletest", path=Path(sys.executable).parent) or "scaletest"
    times, wrong = [], ""
    for _ in range(ROUNDS):
        began_s = time.monotonic()
        done = subprocess.run(
            [program],
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
        )
        times.append(time.monotonic() - began_s)
        items = [item.partition(",")[2] for item in done.stdout.split()]
        if done.stderr or expected not in items:
            wrong = done.stderr or f"completed {items}"
    typical_s = median(times)
    met = typical_s <= MOST_S and not wrong
    figures = {"median_s": typical_s, "longest_s": max(times), "most_s": MOST_S, "wrong": wrong}
    return report(f"completion-{name}", met=met, **figures)


if __name__ == "__main__":
    sys.exit(main())
