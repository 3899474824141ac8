"""Processes that run beside a measurement: functions of this module, and an exporter."""

import contextlib
import multiprocessing
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Event
from typing import Any

from scaletest.broker import connect


class Aside:
    """Run a function of this module in a process of its own, and give its answer, a list.

    This process is busy with the workers.
    """

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        context = multiprocessing.get_context("spawn")
        self._ended = context.Event()
        self._answer, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=target, args=(theirs, self._ended, *arguments))
        self._process.start()
        theirs.close()
        assert self._answer.recv() == "begun"

    @property
    def alive(self) -> bool:
        return not self._answer.poll()

    def stop(self) -> list[float]:
        """Let it end; what it measured."""
        self._ended.set()
        rows: list[float] = self._answer.recv()
        self._process.join()
        return rows


def ping(answer: Connection, ended: Event, url: str) -> None:
    """Ask Redis all the time how long it takes to answer: milliseconds."""
    redis = connect(url)
    times_ms = []
    answer.send("begun")
    while not ended.wait(0.005):
        began = time.perf_counter()
        redis.ping()
        times_ms.append(1e3 * (time.perf_counter() - began))
    answer.send(times_ms)


def scrape(answer: Connection, ended: Event, url: str, times: int) -> None:
    """Scrape an exporter so many times: milliseconds, and last of all the number of samples."""
    times_ms = []
    samples = 0
    answer.send("begun")
    for _ in range(times):
        began = time.perf_counter()
        with urllib.request.urlopen(url) as opened:
            text = opened.read()
        times_ms.append(1e3 * (time.perf_counter() - began))
        assert b"scaletest_up 1.0" in text
        samples = sum(not line.startswith(b"#") for line in text.splitlines())
    answer.send([*times_ms, float(samples)])


@contextlib.contextmanager
def exporter_of(url: str) -> Iterator[str]:
    """Run an exporter, and give the URL of its metrics."""
    line = [
        sys.executable,
        "-m",
        "scaletest",
        "exporter",
        "--redis-url",
        url,
        "--listen",
        "127.0.0.1:0",
    ]
    exporter = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    try:
        assert exporter.stderr is not None
        yield exporter.stderr.readline().split()[-1] + "/metrics"
    finally:
        exporter.terminate()
        exporter.wait(30)
