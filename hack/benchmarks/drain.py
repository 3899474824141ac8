"""Drains empty requests with scaletest's worker and with a stock RQ SimpleWorker, in alternation.

Both workers are processes of their own in burst mode on the same embedded server over TCP loopback.
The drain is timed from Redis: from the first to the last percent of the queue, so that neither
start-up nor shut-down counts.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.model import Request

OURS, STOCK = "scaletest", "stock RQ SimpleWorker (JSON)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument(
        "--stock-requests", type=int, default=3_000, help="fewer: it is slow, and its rate is flat"
    )
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    drains: dict[str, list[dict[str, float]]] = {OURS: [], STOCK: []}
    with EmbeddedServer(tcp=True) as server:
        for number in range(options.rounds):
            order = [(OURS, options.requests), (STOCK, options.stock_requests)]
            if number % 2:
                order.reverse()
            for name, count in order:
                figures = drain(server.url, name, count)
                drains[name].append(figures)
                print(
                    f"round {number + 1}  {name:30} {figures['per_s']:8.0f} requests/s  Redis"
                    f" {figures['redis_us']:5.0f} us  worker {figures['worker_us']:5.0f} us a"
                    " request",
                    flush=True,
                )
    print(json.dumps(report(drains, options)))


def drain(url: str, name: str, count: int) -> dict[str, float]:
    """Fill a queue, drain it with one worker, and measure the middle 98 %."""
    redis: Any = connect(url)
    redis.flushall()
    Queues(redis).add("bench")
    with Client(connect(url)) as client:
        if name == OURS:
            assert (
                client.submit([Request(client.new_id(), "bench", ("0",)) for _ in range(count)])
                == count
            )
        else:
            fill_stock(redis, count)
        with tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                command(url, name), stdout=log, stderr=log, cwd=tempfile.gettempdir()
            )
            figures = watch(redis, process.pid, count)
            if process.wait(60) != 0:
                log.seek(0)
                raise SystemExit(f"{name} failed: {log.read()[-2000:].decode()}")
    return figures


def fill_stock(redis: Any, count: int) -> None:
    """Enqueue jobs as a stock client does: a cheap function, results stored as by default."""
    from rq import Queue
    from rq.serializers import JSONSerializer

    queue = Queue("bench", connection=redis, serializer=JSONSerializer)
    for start in range(0, count, 500):
        batch = min(500, count - start)
        queue.enqueue_many([Queue.prepare_data("time.monotonic") for _ in range(batch)])


def command(url: str, name: str) -> list[str]:
    """Return the command line of one worker in burst mode."""
    if name == OURS:
        return [
            sys.executable,
            "-m",
            "scaletest",
            "worker",
            "--burst",
            "--queue",
            "bench",
            "--redis-url",
            url,
        ]
    rq = str(Path(sys.executable).parent / "rq")
    options = [
        "-S",
        "json",
        "-w",
        "rq.SimpleWorker",
        "--burst",
        "-q",
        "bench",
        "--disable-job-desc-logging",
    ]
    return [rq, "worker", "-u", url, *options]


def watch(redis: Any, pid: int, count: int) -> dict[str, float]:
    """Sample the queue's length every few milliseconds, and compute rates over the middle 98 %."""
    first: tuple[float, int, float, float] | None = None
    while True:
        length = redis.llen("rq:queue:bench")
        done = count - length
        if done >= count * 0.01:
            now = (time.monotonic(), done, server_cpu(redis), process_cpu(pid))
            if first is None:
                first = now
            if done >= count * 0.99:
                break
        time.sleep(0.01)
    requests = now[1] - first[1]
    return {
        "per_s": requests / (now[0] - first[0]),
        "redis_us": (now[2] - first[2]) / requests * 1e6,
        "worker_us": (now[3] - first[3]) / requests * 1e6,
    }


def server_cpu(redis: Any) -> float:
    """Return the CPU seconds of the server so far."""
    info = redis.info("cpu")
    return float(info["used_cpu_user"]) + float(info["used_cpu_sys"])


def process_cpu(pid: int) -> float:
    """Return the CPU seconds of a process so far; 0 when it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100.0


def report(
    drains: dict[str, list[dict[str, float]]], options: argparse.Namespace
) -> dict[str, Any]:
    """Compute medians, and the ratio of each round with its spread."""
    ratios = [
        ours["per_s"] / stock["per_s"]
        for ours, stock in zip(drains[OURS], drains[STOCK], strict=True)
    ]
    redis = [
        ours["redis_us"] / stock["redis_us"]
        for ours, stock in zip(drains[OURS], drains[STOCK], strict=True)
    ]
    print(
        f"\nthroughput: {statistics.median(ratios):.1f} times stock ({min(ratios):.1f} to"
        f" {max(ratios):.1f})"
    )
    print(
        f"Redis CPU a request: {statistics.median(redis):.3f} of stock ({min(redis):.3f} to"
        f" {max(redis):.3f})"
    )
    return {
        "schema_version": 1,
        "kind": "bench.drain",
        "rounds": options.rounds,
        "requests": options.requests,
        "ratio": {"median": statistics.median(ratios), "min": min(ratios), "max": max(ratios)},
        "redis_cpu_ratio": {
            "median": statistics.median(redis),
            "min": min(redis),
            "max": max(redis),
        },
        OURS: medians(drains[OURS]),
        STOCK: medians(drains[STOCK]),
    }


def medians(drains: list[dict[str, float]]) -> dict[str, float]:
    """Compute the median of each figure."""
    by_figure: dict[str, list[float]] = {}
    for figures in drains:
        for name, figure in figures.items():
            by_figure.setdefault(name, []).append(figure)
    return {name: statistics.median(values) for name, values in by_figure.items()}


if __name__ == "__main__":
    main()
