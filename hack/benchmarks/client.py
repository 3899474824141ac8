"""What the client costs: CPU a request, 10,000 in flight, a day of statistics, wait and overhead of short requests.

--cost      CPU of a client process a request, at the highest rate that workers on this machine carry
--flight    10,000 requests in flight: memory, the loop's turns, how fast pages come meanwhile
--day       records fed at 1,000 a second of virtual time: does memory stay flat?
--overhead  wait + overhead of requests that sleep 10 ms, one at a time
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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
    rows = {}
    for name in chosen:
        rows[name] = measures[name](options)
        print(name, *(f"{key} {value:.6g}" for key, value in rows[name].items()), sep="  ", flush=True)
    print(json.dumps({"schema_version": 1, "kind": "bench.client", **rows}))
    return 0


def cost(options: argparse.Namespace) -> dict[str, Any]:
    """CPU microseconds of the client process a request."""
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
    """Memory in MB, the loop's longest turns and page times in milliseconds, with 10,000 in flight."""
    pages: dict[str, list[float]] = {"/": [], "/api/v1/stats": [], "/api/v1/series": [], "/metrics": []}
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
        found, memory = stats(address), resident_kib(pid)
    turn = found["times"]["turn"]
    slowest = {f"page_ms {path}": 1e3 * statistics.quantiles(times, n=100)[98] for path, times in pages.items()}
    row = {"memory_mb": memory / 1024, "in_flight": found["in_flight"], "per_s": found["recent_throughput_per_s"]}
    return {**row, "turn_p99_ms": 1e3 * (turn["p99_s"] or 0), "turn_max_ms": 1e3 * turn["max_s"], **slowest}


def day(options: argparse.Namespace) -> dict[str, Any]:
    """Resident memory in KiB after the first hour and at the end, and the cost of one record in microseconds."""
    from scaletest.load import Statistics
    from scaletest.model import Outcome, Record, Reply

    chance, now = random.Random(1), [0.0]
    feed = Statistics("q", clock=lambda: now[0], wall=lambda: 1.7e9)
    records = []
    for number in range(5000):
        failed = number % 100 == 0
        place = {"node": f"node-{number % 8}", "pod": f"pod-{number % 64}", "device": f"/dev/dri/renderD{number % 4}"}
        outcome, error = (Outcome.FAILED, f"error {number % 300}") if failed else (Outcome.SUCCEEDED, "")
        run_s = chance.lognormvariate(0, 1)
        wait_s = chance.expovariate(1)
        reply = Reply(f"c-{number}", outcome, error=error, run_s=run_s, wait_s=wait_s, ended_s=1.7e9, **place)
        records.append(Record("q", 0, reply, run_s + wait_s + 0.001))
    rows: list[int] = []
    began = time.process_time()
    hours = max(2, round(options.hours))
    for hour in range(hours):
        for second in range(3600):
            now[0] = hour * 3600.0 + second
            for record in records[second % 5 * 1000 : second % 5 * 1000 + 1000]:
                feed.add(record)
        feed.snapshot()
        rows.append(resident_kib(os.getpid()))
        print(f"hour {hour + 1:3}  {rows[-1]} KiB", file=sys.stderr, flush=True)
    spent = time.process_time() - began
    return {
        "first_hour_kib": rows[0],
        "last_hour_kib": rows[-1],
        "most_kib": max(rows),
        "hours": hours,
        "add_us": 1e6 * spent / (hours * 3.6e6),
    }


def overhead(options: argparse.Namespace) -> dict[str, Any]:
    """Medians in milliseconds of requests that sleep 10 ms, one at a time."""
    with running(1, "--keep-records", str(options.requests), "--", "0.01") as (address, _):
        while stats(address)["succeeded"] < options.requests:
            time.sleep(0.5)
        records = [json.loads(line) for line in fetch(address, "/api/v1/records").splitlines()]
    waits = [1e3 * row["wait_s"] for row in records]
    overheads = [1e3 * row["overhead_s"] for row in records]
    both = [wait + more for wait, more in zip(waits, overheads, strict=True)]
    medians = {name: statistics.median(values) for name, values in (("wait", waits), ("overhead", overheads))}
    return {
        "requests": len(records),
        **{f"{name}_ms": value for name, value in medians.items()},
        "both_ms": statistics.median(both),
    }


@contextmanager
def running(workers: int, *arguments: str) -> Iterator[tuple[str, int]]:
    """A server, so many workers and a client; the client's address and process id."""
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
        while not (found := re.search(r"http://(\S+)/", Path(log.name).read_text())):
            time.sleep(0.05)
        yield found.group(1), client.pid


def start(stack: ExitStack, line: list[str], log: Any) -> subprocess.Popen[str]:
    """A process that ends with the stack."""
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=log, text=True)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process


def fetch(address: str, path: str) -> bytes:
    """The body of an answer."""
    with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
        body: bytes = answer.read()
    return body


def stats(address: str) -> dict[str, Any]:
    """The statistics."""
    found: dict[str, Any] = json.loads(fetch(address, "/api/v1/stats"))
    return found


def cpu_s(pid: int) -> float:
    """CPU seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


if __name__ == "__main__":
    sys.exit(main())
