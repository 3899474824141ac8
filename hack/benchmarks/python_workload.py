"""Measures what a workload in Python costs beside its own time, at a steady rate of requests.

The workload says how long it worked; the reply says how long the worker's run took, on the same
monotonic clock. The difference is the cost of the process that stays alive: its two pipes, JSON,
typed arguments, and the sampling of causes. Prints one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.model import Outcome, Request

MOST_MS = 1.0
WORKLOAD = """
import time

class Busy:
    def run(self, seconds: float, *, turns: int = 1) -> dict[str, float]:
        began = time.monotonic()
        time.sleep(seconds)
        return {"own_s": time.monotonic() - began}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=50.0, help="requests a second")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long")
    parser.add_argument("--work", type=float, default=0.005, help="seconds that a request works")
    options = parser.parse_args()
    with (
        EmbeddedServer(tcp=True) as server,
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryFile() as log,
    ):
        file = Path(folder, "busy.py")
        file.write_text(WORKLOAD)
        queues = Queues(connect(server.url))
        queues.add("bench")
        line = [sys.executable, "-m", "scaletest", "worker", "--queue", "bench"]
        line += ["--redis-url", server.url, "--workload", f"{file}:Busy"]
        worker = subprocess.Popen(line, stdout=log, stderr=log)
        while not queues.worker_names("bench"):
            time.sleep(0.05)
        costs = measure(server.url, options.rate, options.seconds, str(options.work))
        worker.terminate()
        worker.wait(20)
    cuts = statistics.quantiles(costs, n=100, method="inclusive")
    figures = {
        "mean_ms": round(statistics.fmean(costs) * 1e3, 3),
        "p50_ms": round(cuts[49] * 1e3, 3),
        "p95_ms": round(cuts[94] * 1e3, 3),
        "requests": len(costs),
        "rate": options.rate,
    }
    print(json.dumps({"bar": "python-workload", **figures, "met": figures["mean_ms"] < MOST_MS}))


def measure(url: str, rate: float, seconds: float, work: str) -> list[float]:
    """Seconds of each request beside its own, in the order of the replies."""
    costs: list[float] = []
    count = int(rate * seconds)
    with Client(connect(url)) as client:
        began, submitted = time.monotonic(), 0
        while len(costs) < count:
            due = min(count, int((time.monotonic() - began) * rate) + 1)
            client.submit(
                [Request(client.new_id(), "bench", (work,)) for _ in range(submitted, due)]
            )
            submitted = due
            for ended in client.replies(0.5 / rate):
                reply = ended.reply
                assert reply.outcome is Outcome.SUCCEEDED, reply.error
                costs.append(reply.run_s - float(reply.figures["own_s"]))
    return costs


if __name__ == "__main__":
    main()
