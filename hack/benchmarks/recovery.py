"""Measures how long the request of a killed worker waits until it starts again.

One worker runs the request, another one is idle. The first is killed with -9 at a random moment of
its heartbeat interval, the other takes over the request, and a new idle worker is started.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.heartbeat import DEFAULT_INTERVAL_S
from scaletest.model import Request

LOOK_S = 0.005
PATIENCE_S = 120.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as folder, EmbeddedServer(tcp=True) as server:
        waits = measure(server, Path(folder), options.rounds, chance)
    report = {
        "schema_version": 1,
        "kind": "bench.recovery",
        "interval_s": DEFAULT_INTERVAL_S,
        "rounds": len(waits),
        "median_s": statistics.median(waits),
        "longest_s": max(waits),
        "shortest_s": min(waits),
    }
    print(json.dumps(report))
    return 0 if max(waits) <= 2 * DEFAULT_INTERVAL_S else 3


def measure(
    server: EmbeddedServer, folder: Path, rounds: int, chance: random.Random
) -> list[float]:
    """Measure the seconds from each kill to the request's next start."""
    queues = Queues(connect(server.url))
    queues.add("q")
    starts = folder / "starts"
    starts.touch()
    processes: dict[str, subprocess.Popen[bytes]] = {}
    names = (f"worker-{number}" for number in itertools.count())
    waits = []

    def add_worker() -> None:
        name = next(names)
        line = [
            sys.executable,
            "-m",
            "scaletest",
            "worker",
            "--queue",
            "q",
            "--name",
            name,
            "--redis-url",
            server.url,
        ]
        line += [
            "--max-attempts",
            "1000",
            "--",
            "sh",
            "-c",
            f'echo {name} >>"{starts}"; exec sleep 3600',
        ]
        with (folder / "log").open("ab") as log:
            processes[name] = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(lambda: name in queues.worker_names("q"))

    with Client(connect(server.url)) as client:
        add_worker()
        client.submit_one(Request(client.new_id(), "q"))
        wait_until(lambda: len(lines(starts)) == 1)
        try:
            for number in range(rounds):
                add_worker()
                time.sleep(chance.uniform(0.0, DEFAULT_INTERVAL_S))
                victim = processes.pop(lines(starts)[-1])
                victim.kill()
                began = time.monotonic()
                wait_until(lambda: len(lines(starts)) > len(waits) + 1)
                waits.append(time.monotonic() - began)
                victim.wait()
                print(f"round {number + 1}: {waits[-1]:.2f} s", flush=True)
        finally:
            for process in processes.values():
                process.kill()
                process.wait()
    return waits


def lines(path: Path) -> list[str]:
    """Read the names of the workers that started the request, in order."""
    return path.read_text().split()


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    ends = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > ends:
            raise SystemExit(
                f"error: the workers did not reach the expected state within {PATIENCE_S:.0f} s"
            )
        time.sleep(LOOK_S)


if __name__ == "__main__":
    sys.exit(main())
