"""Bar: exporter and client answer within a second while other connections misuse them.

250 connections begin a request and send a byte of it every second; 100 announce a body of 1 GB and
send as much of it as the program accepts. Meanwhile /healthz and /metrics are requested ten times.
The bar: every answer within a second, no temporary file, no growth of memory. One line of JSON a
program.
"""

from __future__ import annotations

import argparse
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hack.benchmarks.saturation import report
from scaletest.broker import EmbeddedServer, Queues, connect

SLOW, BODIES, BODY_BYTES = 250, 100, 1_000_000_000
ROUNDS = 10
LONGEST_S, MOST_GROWTH_MIB = 1.0, 64
BLOCK = b"z" * 1_000_000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slow", type=int, default=SLOW)
    parser.add_argument("--bodies", type=int, default=BODIES)
    options = parser.parse_args()
    code = 0
    with EmbeddedServer(tcp=True) as server:
        redis: Any = connect(server.url)
        Queues(redis).add("q")
        client = ["client", "--queue", "q", "--parallel", "0"]
        for name, command in (("exporter", ["exporter"]), ("client", client)):
            with running(server.url, *command) as (process, address):
                code = max(
                    code,
                    report(
                        f"http-peers-{name}",
                        **measured(process, address, options.slow, options.bodies),
                    ),
                )
    return code


@contextmanager
def running(url: str, *command: str) -> Iterator[tuple[subprocess.Popen[str], tuple[str, int]]]:
    """Start a program that serves HTTP; yields the process and its address."""
    line = [
        sys.executable,
        "-m",
        "scaletest",
        *command,
        "--redis-url",
        url,
        "--listen",
        "127.0.0.1:0",
    ]
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


def measured(
    process: subprocess.Popen[str], address: tuple[str, int], slow: int, bodies: int
) -> dict[str, Any]:
    """Measure the longest time of an answer, and the program's memory and files meanwhile."""
    base = f"http://{address[0]}:{address[1]}"
    for path in ("/healthz", "/metrics"):
        answered_s(base + path)
    before = resident_mib(process.pid)
    stop, sent = threading.Event(), [0] * bodies
    threads = [
        threading.Thread(target=crawl, args=(address, stop), daemon=True) for _ in range(slow)
    ]
    threads += [
        threading.Thread(target=push, args=(address, stop, sent, at), daemon=True)
        for at in range(bodies)
    ]
    for thread in threads:
        thread.start()
    longest: dict[str, float] = {"/healthz": 0.0, "/metrics": 0.0}
    files = most = 0
    for _ in range(ROUNDS):
        for path in longest:
            longest[path] = max(longest[path], answered_s(base + path))
        files, most = max(files, file_mib(process.pid)), max(most, resident_mib(process.pid))
        time.sleep(1.0)
    stop.set()
    for thread in threads:
        thread.join()
    met = max(longest.values()) < LONGEST_S and files == 0 and most - before < MOST_GROWTH_MIB
    return {
        "met": met,
        "slow": slow,
        "bodies": bodies,
        "longest_s": {path: round(seconds, 3) for path, seconds in longest.items()},
        "taken_mb": round(sum(sent) / 1e6),
        "files_mib": files,
        "grown_mib": most - before,
    }


def crawl(address: tuple[str, int], stop: threading.Event) -> None:
    """Send a request byte by byte, again and again."""
    while not stop.is_set():
        with suppress(OSError), socket.create_connection(address, timeout=10) as peer:
            peer.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
            while not stop.wait(1.0):
                peer.sendall(b"y")


def push(address: tuple[str, int], stop: threading.Event, sent: list[int], place: int) -> None:
    """Send a body that is too large, once a second; counts the accepted bytes in `sent[place]`."""
    lines = ["POST /metrics HTTP/1.1", "Host: localhost", f"Content-Length: {BODY_BYTES}"]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode()
    while not stop.wait(1.0):
        with suppress(OSError), socket.create_connection(address, timeout=10) as peer:
            peer.sendall(head)
            for _ in range(BODY_BYTES // len(BLOCK)):
                sent[place] += peer.send(BLOCK)
                if stop.is_set():
                    return


def answered_s(url: str) -> float:
    """Measure the seconds until the whole answer has arrived; 30 without an answer."""
    began = time.monotonic()
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            answer.read()
    except OSError:
        return 30.0
    return time.monotonic() - began


def resident_mib(pid: int) -> int:
    """Return the resident memory of a process."""
    fields = dict(
        line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines()
    )
    return int(fields["VmRSS"].split()[0]) // 1024


def file_mib(pid: int) -> int:
    """Sum the sizes of a process's open files, deleted ones included."""
    total = 0
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            if link.is_file():
                total += link.stat().st_size
    return total // 2**20


if __name__ == "__main__":
    sys.exit(main())
