"""Measures the growth of a worker's resident memory over a million requests.

The growth counts after the first ten thousand requests, when everything is imported and caches are
warm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.load import ClosedLoop
from scaletest.model import Record

WARM = 10_000
LIMIT_KIB = 1024


class MemoryRecorder:
    """Records the worker's resident memory at fixed numbers of replies."""

    def __init__(self, every: int) -> None:
        self._every = every
        self.pid = 0
        self.count = 0
        self.rows: list[tuple[int, int]] = []

    def add(self, record: Record) -> None:
        self.count += 1
        if self.count == WARM or self.count % self._every == 0:
            self.rows.append((self.count, resident_kib(self.pid)))
            print(f"{self.rows[-1][0]:9} requests  {self.rows[-1][1]:7} KiB", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    options = parser.parse_args()
    watcher = MemoryRecorder(max(WARM, options.requests // 10))
    with EmbeddedServer(tcp=True) as server, tempfile.TemporaryFile() as log:
        Queues(connect(server.url)).add("bench")
        line = [
            sys.executable,
            "-m",
            "scaletest",
            "worker",
            "--queue",
            "bench",
            "--redis-url",
            server.url,
        ]
        worker = subprocess.Popen(line, stdout=log, stderr=log)
        watcher.pid = worker.pid
        feed(server.url, watcher, options.requests)
        worker.terminate()
        worker.wait(20)
    first = next(kib for count, kib in watcher.rows if count == WARM)
    growth = watcher.rows[-1][1] - first
    verdict = "PASS" if growth < LIMIT_KIB else "FAIL"
    print(
        f"{verdict}: memory grew by {growth} KiB after the first {WARM} requests; the limit is"
        f" {LIMIT_KIB} KiB"
    )
    print(
        json.dumps(
            {
                "schema_version": 1,
                "kind": "bench.memory",
                "growth_kib": growth,
                "rows": watcher.rows,
            }
        )
    )
    return 0 if verdict == "PASS" else 3


def feed(url: str, watcher: MemoryRecorder, total: int) -> None:
    """Apply a closed load, so that the queue stays short."""
    with Client(connect(url)) as client:
        loop = ClosedLoop(client, "bench", watcher.add, arguments=("0",), total=total)
        loop.set_parallel(64)
        while not loop.wait_idle(5.0):
            loop.check()
        loop.close()


def resident_kib(pid: int) -> int:
    """Return VmRSS of a process in KiB."""
    text: Any = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0])


if __name__ == "__main__":
    sys.exit(main())
