"""Measures a scrape of twenty queues, with ten requests waiting and with a million.

The exporter is a process of its own, scraped over HTTP in alternation. Waiting requests are written
into the lists directly: only the first of a queue is a complete request, since a scrape reads no
other. Each histogram has 400 buckets filled, durations from a millisecond to three seconds, as in
real use.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from typing import Any

from hack.benchmarks.ended_rows import fill_ended
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.model import Request

QUEUES = 20
LOOKS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scrapes", type=int, default=50)
    options = parser.parse_args()
    times: dict[int, list[float]] = {10: [], 1_000_000: []}
    commands = {}
    with EmbeddedServer(tcp=True) as server:
        redis: Any = connect(server.url)
        prepare(redis, server.url)
        exporter = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "scaletest",
                "exporter",
                "--redis-url",
                server.url,
                "--listen",
                "127.0.0.1:0",
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert exporter.stderr is not None
        url = exporter.stderr.readline().split()[-1] + "/metrics"
        for number in range(options.rounds):
            for waiting in sorted(times, reverse=bool(number % 2)):
                fill(redis, waiting)
                times[waiting].append(scrape(url, options.scrapes))
                commands[waiting] = commands_of(redis, url)
                print(
                    f"round {number + 1}  {waiting:>9,} waiting  {times[waiting][-1]:6.2f} ms",
                    flush=True,
                )
        exporter.terminate()
        exporter.wait(30)
    print(json.dumps(report(times, commands)))


def prepare(redis: Any, url: str) -> None:
    """Create twenty queues with full histograms, and a request at the front of each."""
    names = [f"q{number}" for number in range(QUEUES)]
    fill_ended(redis, names, {350 + number: 7 * number + 1 for number in range(400)})
    with Client(connect(url)) as client:
        for name in names:
            Queues(redis).add(name)
            client.submit_one(Request(client.new_id(), name), reply=False)


def fill(redis: Any, waiting: int) -> None:
    """Let this number of requests wait in all queues together."""
    for number in range(QUEUES):
        key, share = f"rq:queue:q{number}", waiting // QUEUES
        redis.ltrim(key, 0, max(0, share - 1) if waiting >= QUEUES else 0)
        missing = share - redis.llen(key)
        for start in range(0, missing, 10_000):
            redis.rpush(
                key, *(f"r{number}-{i}" for i in range(start, min(missing, start + 10_000)))
            )


def scrape(url: str, count: int) -> float:
    """Measure the median time of a scrape in milliseconds."""
    times = []
    for _ in range(count):
        began = time.perf_counter()
        with urllib.request.urlopen(url) as answer:
            text = answer.read()
        times.append((time.perf_counter() - began) * 1e3)
        assert b"scaletest_up 1.0" in text
    return statistics.median(times)


def commands_of(redis: Any, url: str) -> int:
    """Count the Redis commands of one scrape, those inside scripts included.

    The least of several counts, since the exporter's other work may add to some.
    """

    def calls() -> int:
        return sum(command["calls"] for command in redis.info("commandstats").values())

    def look() -> int:
        before = calls()
        urllib.request.urlopen(url).read()
        return calls() - before - 1

    return min(look() for _ in range(LOOKS))


def report(times: dict[int, list[float]], commands: dict[int, int]) -> dict[str, Any]:
    """Compute medians and their ratio."""
    few, many = (statistics.median(times[waiting]) for waiting in sorted(times))
    return {
        "schema_version": 1,
        "kind": "bench.scrape",
        "queues": QUEUES,
        "ms_at_10": few,
        "ms_at_1000000": many,
        "ratio": many / few,
        "redis_commands": {str(waiting): commands[waiting] for waiting in sorted(commands)},
    }


if __name__ == "__main__":
    main()
