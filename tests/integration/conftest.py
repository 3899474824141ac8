"""Fixtures of tests with real processes."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from scaletest.broker import EmbeddedServer, Queues, connect
from tests.conftest import program

Export = Callable[..., str]


@pytest.fixture
def own() -> Iterator[EmbeddedServer]:
    """A server on a port with queue `q`, which a test may stop, freeze, or put a proxy before."""
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        yield server


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
