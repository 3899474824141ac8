"""Bar: a shell completes commands and options in 150 ms, runs in 300 ms, what Redis must tell in
500 ms, and shows nothing within a second when Redis is away. Medians of ten calls; one line of JSON
a bar.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from hack.benchmarks.lines import report
from scaletest.broker import EmbeddedServer, Queues, connect
from scaletest.runs.places import default_root

ROUNDS, RUNS = 10, 200
PLAN = '{"schema_version": 1, "kind": "validation", "queue": "q"}'


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(tcp=True) as server:
        environment = {**os.environ, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder}
        for number in range(RUNS):
            path = default_root(environment) / f"run-{number:03}"
            path.mkdir(parents=True)
            (path / "plan.json").write_text(PLAN)
        redis = connect(server.url)
        Queues(redis).add("queue-of-the-bar")
        redis.close()
        with silent() as address:
            bars = [
                ("commands", "val", "validate", "", 0.15),
                *(
                    (f"options-{name}", f"{name.replace('-', ' ')} --f", "--format", "", 0.15)
                    for name in ("validate", "bench-run", "lifecycle-run", "queue-list")
                ),
                ("runs", "report run-1", "run-199", "", 0.3),
                ("queues", "queue show queue-of", "queue-of-the-bar", server.url, 0.5),
                ("queues-away", "queue show q", "", "redis://127.0.0.1:1", 1.0),
                ("queues-silent", "queue show q", "", f"redis://{address}", 1.0),
            ]
            return max([measured(*bar, environment) for bar in bars])


def measured(
    name: str, line: str, expected: str, url: str, most_s: float, environment: dict[str, str]
) -> int:
    """Measure one line and print its bar. expected: an item among those completed; "" for none."""
    variables = {
        "_SCALETEST_COMPLETE": "bash_complete",
        "COMP_WORDS": f"scaletest {line}",
        "COMP_CWORD": str(len(line.split())),
        "SCALETEST_REDIS_URL": url,
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
        if done.stderr or expected not in (items or [""]):
            wrong = done.stderr or f"completed {items}"
    typical_s = median(times)
    met = typical_s <= most_s and not wrong
    figures = {"median_s": typical_s, "longest_s": max(times), "most_s": most_s, "wrong": wrong}
    return report(f"completion-{name}", met=met, **figures)


@contextmanager
def silent() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        yield f"{host}:{port}"


if __name__ == "__main__":
    sys.exit(main())
