"""Measures the wait and the round trip of a request with an idle worker, one request at a time.

The wait is Redis time from the end of the submission until the worker takes it; the round trip is
measured by the client's own monotonic clock.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.model import Request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1000)
    options = parser.parse_args()
    with EmbeddedServer(tcp=True) as server, tempfile.TemporaryFile() as log:
        queues = Queues(connect(server.url))
        queues.add("bench")
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
        while not queues.worker_names("bench"):
            time.sleep(0.05)
        waits, rounds = measure(server.url, options.requests)
        worker.terminate()
        worker.wait(20)
    spreads = {"dispatch": spread(waits), "round_trip": spread(rounds)}
    for name, values in spreads.items():
        print(f"{name:10}  p50 {values['p50_ms']:.3f} ms  p99 {values['p99_ms']:.3f} ms")
    print(
        json.dumps(
            {"schema_version": 1, "kind": "bench.dispatch", "requests": options.requests, **spreads}
        )
    )


def measure(url: str, count: int) -> tuple[list[float], list[float]]:
    """Measure waits and round trips in seconds, after a warm-up of a tenth."""
    waits, rounds = [], []
    with Client(connect(url)) as client:
        for number in range(count + count // 10):
            request = Request(client.new_id(), "bench", ("0",))
            began = time.perf_counter()
            client.submit_one(request)
            while not (replies := client.replies(5.0)):
                pass
            ended = time.perf_counter()
            if number >= count // 10:
                waits.append(replies[0].reply.wait_s)
                rounds.append(ended - began)
    return waits, rounds


def spread(values: list[float]) -> dict[str, float]:
    """Compute median and 99th percentile in milliseconds."""
    cuts = statistics.quantiles(values, n=100, method="inclusive")
    return {"p50_ms": statistics.median(values) * 1e3, "p99_ms": cuts[98] * 1e3}


if __name__ == "__main__":
    main()
