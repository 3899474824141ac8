"""Measures the page Overview with 1,000 workers and 100 queues. Prints a line of JSON.

The bar: under 200 ms and under 1 MB a page, Redis blocked for under 10 ms at a time, and 100 slow
peers that keep nobody waiting.

The UI is a process of its own. Each page is asked for when the copy of the page before is too old,
so that every page reads Redis. Workers are entries in Redis as heartbeats leave them; every queue
has full histograms and a full ring of slots, and every node has a sample of its devices. How long
Redis is blocked is its own slow log; a command there may have waited for the processor, too. The
figure processor_s is what a page costs, which does not depend on what else the machine does.
together: eight browsers that ask at the same time, each of its pages counted.
"""

import argparse
import os
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hack.benchmarks.ended_rows import fill_ended
from hack.benchmarks.lines import report
from scaletest.broker import EmbeddedServer, Queues, connect, keys
from scaletest.broker.samples import encode
from scaletest.model import NodeSample
from scaletest.ui.reading import COPY_S

WORKERS, QUEUES, NODES, DEVICES = 1000, 100, 125, 8
PAGES, SLOW, BROWSERS = 30, 100, 8
MOST_S, MOST_BYTES, MOST_BLOCKED_MS = 0.2, 1_000_000, 10.0
FAR_FUTURE_US = 4e15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=PAGES)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    code = 0
    with EmbeddedServer(tcp=True) as server:
        redis: Any = connect(server.url)
        names = [f"queue-{number:03}" for number in range(QUEUES)]
        fill_queues(redis, names)
        for _ in range(options.rounds):
            with running_ui(server.url) as (process, (host, port)):
                began_s = processor_s(process.pid)
                figures = measure_pages(redis, host, port, names, options.pages)
                used_s = processor_s(process.pid) - began_s
            figures["processor_s"] = round(used_s / (3 * options.pages + options.pages // 3), 3)
            code = max(code, report("ui-queues", is_met(figures), **figures))
    return code


@contextmanager
def running_ui(url: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Start the UI; yields the process and its address."""
    line = [sys.executable, "-m", "scaletest", "ui", "--redis-url", url, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        host, port = (
            process.stderr.readline().split()[-1].removeprefix("http://").rstrip("/").split(":")
        )
        yield process, (host, int(port))
    finally:
        process.terminate()
        process.communicate(timeout=60)


def fill_queues(redis: Any, names: Sequence[str]) -> None:
    """Declare the queues, and write their workers and samples."""
    for name in names:
        Queues(redis).add(name, 0, "a queue of the bar")
    fill_ended(redis, names, {350 + number: 7 * number + 1 for number in range(400)})
    pipe = redis.pipeline(transaction=False)
    for number in range(WORKERS):
        queue, worker = names[number % QUEUES], f"worker-of-a-queue-{number:04}"
        node, device = f"node-{number % NODES:03}", f"/dev/dri/renderD{128 + number // NODES}"
        started_us = (time.time() - number) * 1e6
        pipe.zadd(keys.workers(queue), {worker: FAR_FUTURE_US})
        pipe.zadd(keys.leases(queue), {f"request-{number}:1:{worker}": FAR_FUTURE_US})
        pipe.hset(
            keys.rq_worker(worker),
            mapping={
                "state": "busy" if number % 3 else "idle",
                "answer": f"0123456789abcdef-{number}:1:{started_us:.0f}" if number % 3 else "",
                "pod": f"queue-worker-{number}-abcde",
                "node": node,
                "device": device,
                "last_heartbeat": "2030-01-01T00:00:00.000000Z",
            },
        )
    pipe.execute()


def add_samples(redis: Any, names: Sequence[str]) -> None:
    """Add a fresh sample of every node to the queues whose workers it has."""
    pipe = redis.pipeline(transaction=False)
    for number in range(NODES):
        figures = {"busy": 0.5, "memory_used": 1e9, "memory_total": 8e9, "power": 50.0}
        devices = {f"device:/dev/dri/renderD{128 + place}": figures for place in range(DEVICES)}
        cpu = {"cpu": {"cores": 64.0, "user": 20.0, "system": 2.0}}
        node = NodeSample(f"node-{number:03}", "w", 0.0, 1.0, {**cpu, **devices})
        pipe.xadd(keys.samples(names[number % QUEUES]), {"s": encode(node)}, maxlen=2000)
    pipe.execute()


def measure_pages(
    redis: Any, host: str, port: int, names: Sequence[str], pages: int
) -> dict[str, Any]:
    """Measure times and sizes of pages, and how long Redis was blocked; then with slow peers."""
    url = f"http://{host}:{port}"
    redis.config_set("slowlog-log-slower-than", 500)
    redis.config_set("slowlog-max-len", 10_000)
    redis.slowlog_reset()
    times: dict[str, list[float]] = {"overview": [], "queue": [], "crowded": [], "together": []}
    size = 0
    for _ in range(pages):
        seconds, size = fetch_anew(redis, url + "/", names)
        times["overview"].append(seconds)
        times["queue"].append(fetch_anew(redis, f"{url}/queues/{names[0]}", names)[0])
    blocked_ms = [entry["duration"] / 1e3 for entry in redis.slowlog_get(10_000)]
    with slow_peers(host, port):
        for _ in range(pages):
            times["crowded"].append(fetch_anew(redis, url + "/", names)[0])
    for _ in range(pages // 3):
        times["together"] += fetch_at_once(redis, url + "/", names)
    figures = {"workers": WORKERS, "queues": QUEUES, "pages": pages, "bytes": size}
    return {
        **figures,
        **{f"{name}_median_s": round(statistics.median(rows), 3) for name, rows in times.items()},
        **{f"{name}_longest_s": round(max(rows), 3) for name, rows in times.items()},
        "blocked_median_ms": round(statistics.median(blocked_ms or [0.0]), 2),
        "blocked_longest_ms": round(max(blocked_ms, default=0.0), 2),
    }


@contextmanager
def slow_peers(host: str, port: int) -> Iterator[None]:
    """Have SLOW connections that send a byte a second, and as many that send nothing."""
    stop = threading.Event()
    peers = [
        threading.Thread(target=send_slowly, args=((host, port), stop), daemon=True)
        for _ in range(SLOW)
    ]
    silent = [socket.create_connection((host, port)) for _ in range(SLOW)]
    for peer in peers:
        peer.start()
    yield
    stop.set()
    for peer in peers:
        peer.join()
    for connection in silent:
        connection.close()


def send_slowly(address: tuple[str, int], stop: threading.Event) -> None:
    """Send a request byte by byte, again and again."""
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(address, timeout=10) as peer:
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
            while not stop.wait(1.0):
                peer.sendall(b"y")


def processor_s(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def is_met(figures: dict[str, Any]) -> bool:
    """Whether the figures keep to the bar, the slowest page included."""
    return (
        max(figures[f"{name}_longest_s"] for name in ("overview", "crowded", "together")) < MOST_S
        and figures["bytes"] < MOST_BYTES
        and figures["blocked_longest_ms"] < MOST_BLOCKED_MS
    )


def fetch_at_once(redis: Any, url: str, names: Sequence[str]) -> list[float]:
    """Seconds of the page of each of BROWSERS browsers that ask at the same time."""
    outdate_copy(redis, names)
    with ThreadPoolExecutor(BROWSERS) as browsers:
        return [seconds for seconds, _ in browsers.map(fetch_page, [url] * BROWSERS)]


def fetch_anew(redis: Any, url: str, names: Sequence[str]) -> tuple[float, int]:
    """Seconds and bytes of a page that reads Redis anew."""
    outdate_copy(redis, names)
    return fetch_page(url)


def outdate_copy(redis: Any, names: Sequence[str]) -> None:
    """Wait until the copy is too old, and give the next one new samples."""
    time.sleep(COPY_S)
    add_samples(redis, names)


def fetch_page(url: str) -> tuple[float, int]:
    """Seconds and bytes of a page."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=30) as answer:
        text = answer.read()
    return time.perf_counter() - began, len(text)


if __name__ == "__main__":
    sys.exit(main())
