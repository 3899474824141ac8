"""Fixtures of tests with real processes."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import EmbeddedServer, Queues, connect
from scaletest.broker.fast_lane import FastLane
from scaletest.model.checks import escape_unprintable
from tests.conftest import program
from tests.integration.lanes import lane_of

Export = Callable[..., str]
Launch = Callable[..., subprocess.Popen[bytes]]


@contextmanager
def workers(url: str, folder: Path) -> Iterator[Launch]:
    """Starts workers of queue `q` that reach Redis by this URL; they are gone afterwards, and what
    they said is in the folder's workers.log.
    """
    started: list[subprocess.Popen[bytes]] = []

    def launch(name: str, *arguments: str) -> subprocess.Popen[bytes]:
        where = ("--queue", "q", "--name", name, "--redis-url", url)
        with (folder / "workers.log").open("ab") as log:
            line = program("worker", *where, *arguments)
            started.append(subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        return started[-1]

    try:
        yield launch
    finally:
        for process in started:
            process.kill()
            process.wait()


@pytest.fixture
def own() -> Iterator[EmbeddedServer]:
    """A server on a port with queue `q`, which a test may stop, freeze, or put a proxy before."""
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        yield server


@pytest.fixture
def lane(redis: Any, queues: Queues) -> Iterator[FastLane]:
    """A lane of queue `q` whose worker has beaten once."""
    lane = lane_of(redis)
    yield lane
    lane.close()


@pytest.fixture
def export() -> Iterator[Export]:
    """`export(url, ...)` starts an exporter; its URL."""
    started: list[subprocess.Popen[str]] = []

    def run(url: str, *arguments: str) -> str:
        command = program("exporter", "--redis-url", url, "--listen", "127.0.0.1:0", *arguments)
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        started.append(process)
        # a warning that Redis is away may come first
        line = next(line for line in process.stderr if " on http://" in line)
        return line.split()[-1]

    yield run
    for process in started:
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        assert escape_unprintable(errors, keep="\n") == errors
