"""Fixtures of the unit tests: the broker's are those of all tests, on a Redis in this process."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest

from scaletest.broker import Client
from tests.unit.virtual_redis import Clock, VirtualRedis, virtual_redis

if TYPE_CHECKING:
    from scaletest.validation.run_type import ValidationRun
    from tests.unit.web_site import Site


# Of the programs that every machine with Python and git has, those that unit tests use. What may be
# missing somewhere, such as a tool of benchmarks, a shell or a Redis, belongs to another tier.
PROGRAMS = (
    *("bash", "cat", "cut", "dirname", "env", "false", "git", "grep", "head", "id", "mktemp"),
    *("nproc", "rm", "sed", "sh", "sha256sum", "sleep", "true"),
)


@pytest.fixture(scope="session")
def bare_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """PATH of a machine that has nothing but these programs and Python."""
    folder = tmp_path_factory.mktemp("programs")
    for name in PROGRAMS:
        if path := shutil.which(name):
            (folder / name).symlink_to(path)
    for name in ("python3", Path(sys.executable).name):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(Path(sys.executable).resolve())
    return str(folder)


@pytest.fixture(autouse=True)
def _bare_machine(bare_path: str) -> Iterator[None]:
    """A test that needs another program fails everywhere, also where that is installed."""
    with mock.patch.dict(os.environ, {"PATH": bare_path}):
        yield


@pytest.fixture
def clock() -> Clock:
    """The clock of the Redis."""
    return Clock()


@pytest.fixture
def redis(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualRedis]:
    """A client of an empty Redis, where nobody waits for what does not come and no client beats by
    itself.
    """
    monkeypatch.setattr("scaletest.broker.reply_reader.BLOCK_S", 0.001)
    monkeypatch.setattr(Client, "_beat_again", lambda _: None)
    client = virtual_redis(clock, monkeypatch)
    yield client
    client.close()


@pytest.fixture
def client(redis: VirtualRedis, queues: object) -> Iterator[Client]:
    """A client of queue `q` that beats when a test lets it."""
    with Client(redis, patience_s=0.0) as queue_client:
        yield queue_client


@pytest.fixture(scope="session")
def example_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ValidationRun]:
    """Every example of a validation, read from its folder, by name."""
    from tests.unit import made_runs as runs

    path = tmp_path_factory.mktemp("runs")
    return {case: runs.make(case, path) for case in runs.CASES}


@pytest.fixture
def site() -> Iterator[Site]:
    """The client's pages over a load that does nothing by itself."""
    from tests.unit.web_site import Site

    client_site = Site()
    yield client_site
    client_site.loop.close()
