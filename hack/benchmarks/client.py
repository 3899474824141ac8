"""Measures the client's CPU and memory, and the wait and overhead of short requests.

--cost CPU of a client process a request, at the highest rate that workers on this machine reach
--flight 10,000 requests in flight: memory, the loop's turns, response times of its pages meanwhile
--day growth of memory over a virtual day with 1,000 records a second --overhead wait and overhead
of requests that sleep 10 ms, one at a time
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from hack.benchmarks.memory import resident_kib
from scaletest.broker import EmbeddedServer, Queues, connect

TICK = os.sysconf("SC_CLK_TCK")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--requests", type=int, default=3000)
    measures: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
        "cost": cost,
        "flight": flight,
        "day": day,
        "overhead": overhead,
    }
    for name in measures:
        parser.add_argument(f"--{name}", action="store_true")
    options = parser.parse_args()
    chosen = [name for name in measures if getattr(options, name)] or list(measures)
    reports = {}
    for name in chosen:
        reports[name] = measures[name](options)
        print(
            name,
            *(f"{key} {figure:.6g}" for key, figure in reports[name].items()),
            sep="  ",
            flush=True,
        )
    print(json.dumps({"schema_version": 1, "kind": "bench.client", **reports}))
    return 0


def cost(options: argparse.Namespace) -> dict[str, Any]:
    """Measure CPU microseconds of the client process a request."""
    with running(options.workers, "--parallel", "256", "--", "0") as (address, pid):
        time.sleep(2)
        before, busy, began = stats(address)["succeeded"], cpu_s(pid), time.monotonic()
        time.sleep(options.seconds)
        after, spent, ended = stats(address)["succeeded"], cpu_s(pid), time.monotonic()
    count = after - before
    return {
        "cpu_us": 1e6 * (spent - busy) / count,
        "per_s": count / (ended - began),
        "client_cores": (spent - busy) / (ended - began),
    }


def flight(options: argparse.Namespace) -> dict[str, Any]:
    """Measure memory in MB, and turns of the loop and response times of pages in milliseconds."""
    pages: dict[str, list[float]] = {
        "/": [],
        "/api/v1/stats": [],
        "/api/v1/series": [],
        "/metrics": [],
    }
    line = ("--parallel", "10000", "--max-parallel", "10000", "--", "0")
    with running(options.workers, *line) as (address, pid):
        while stats(address)["in_flight"] < 9000:
            time.sleep(0.1)
        ends = time.monotonic() + options.seconds
        while time.monotonic() < ends:
            for path, times in pages.items():
                began = time.monotonic()
                fetch(address, path)
                times.append(time.monotonic() - began)
            time.sleep(0.05)
        counters, memory = stats(address), resident_kib(pid)
    turn = counters["times"]["turn"]
    slowest = {
        f"page_ms {path}": 1e3 * statistics.quantiles(times, n=100)[98]
        for path, times in pages.items()
    }
    report = {
        "memory_mb": memory / 1024,
        "in_flight": counters["in_flight"],
        "per_s": counters["recent_throughput_per_s"],
    }
    return {
        **report,
        "turn_p99_ms": 1e3 * (turn["p99_s"] or 0),
        "turn_max_ms": 1e3 * turn["max_s"],
        **slowest,
    }


def day(options: argparse.Namespace) -> dict[str, Any]:
    """Measure memory in KiB after the first hour and at the end, and microseconds a record."""
    from scaletest.load import Statistics
    from scaletest.model import Outcome, Record, Reply

    chance, now = random.Random(1), [0.0]
    feed = Statistics("q", clock=lambda: now[0], wall=lambda: 1.7e9)
    records = []
    for number in range(5000):
        failed = number % 100 == 0
        place = {
            "node": f"node-{number % 8}",
            "pod": f"pod-{number % 64}",
            "device": f"/dev/dri/renderD{number % 4}",
        }
        outcome, error = Outcome.SUCCEEDED, ""
        if failed:
            outcome, error = Outcome.FAILED, f"error {number % 300}"
        run_s = chance.lognormvariate(0, 1)
        wait_s = chance.expovariate(1)
        reply = Reply(
            f"c-{number}", outcome, error=error, run_s=run_s, wait_s=wait_s, ended_s=1.7e9, **place
        )
        records.append(Record("q", 0, reply, run_s + wait_s + 0.001))
    memories: list[int] = []
    began = time.process_time()
    hours = max(2, round(options.hours))
    for hour in range(hours):
        for second in range(3600):
            now[0] = hour * 3600.0 + second
            for record in records[second % 5 * 1000 : second % 5 * 1000 + 1000]:
                feed.add(record)
        feed.snapshot()
        memories.append(resident_kib(os.getpid()))
        print(f"hour {hour + 1:3}  {memories[-1]} KiB", file=sys.stderr, flush=True)
    spent = time.process_time() - began
    return {
        "first_hour_kib": memories[0],
        "last_hour_kib": memories[-1],
        "most_kib": max(memories),
        "hours": hours,
        "add_us": 1e6 * spent / (hours * 3.6e6),
    }


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    """Measure medians in milliseconds of requests that sleep 10 ms, one at a time."""
    with running(1, "--keep-records", str(options.requests), "--", "0.01") as (address, _):
        while stats(address)["succeeded"] < options.requests:
            time.sleep(0.5)
        records = [json.loads(line) for line in fetch(address, "/api/v1/records").splitlines()]
    waits = [1e3 * record["wait_s"] for record in records]
    overheads = [1e3 * record["overhead_s"] for record in records]
    both = [wait + more for wait, more in zip(waits, overheads, strict=True)]
    medians = {
        name: statistics.median(values)
        for name, values in (("wait", waits), ("overhead", overheads))
    }
    return {
        "requests": len(records),
        **{f"{name}_ms": median for name, median in medians.items()},
        "both_ms": statistics.median(both),
    }


@contextmanager
def running(workers: int, *arguments: str) -> Iterator[tuple[str, int]]:
    """Start a server, workers and a client; yields the client's address and process id."""
    with ExitStack() as stack:
        server = stack.enter_context(EmbeddedServer(tcp=True))
        log = stack.enter_context(tempfile.NamedTemporaryFile("w+"))
        queues = Queues(connect(server.url))
        queues.add("bench")
        base = [sys.executable, "-m", "scaletest"]
        redis = ["--queue", "bench", "--redis-url", server.url]
        for _ in range(workers):
            start(stack, [*base, "worker", *redis], log)
        while len(queues.worker_names("bench")) < workers:
            time.sleep(0.05)
        client = start(stack, [*base, "client", *redis, "--listen", "127.0.0.1:0", *arguments], log)
        while not (match := re.search(r"http://(\S+)/", Path(log.name).read_text())):
            time.sleep(0.05)
        yield match.group(1), client.pid


def start(stack: ExitStack, line: list[str], log: Any) -> subprocess.Popen[str]:
    """Start a process that ends with the stack."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log, text=True)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def fetch(address: str, path: str) -> bytes:
    """Return the body of an answer."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        body: bytes = answer.read()
    return body


def stats(address: str) -> dict[str, Any]:
    """Read the client's statistics."""
    return dict(json.loads(fetch(address, "/api/v1/stats")))


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    sys.exit(main())
