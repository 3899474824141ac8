"""A real Redis whose wall clock is set while it runs: dead workers' requests come back, others
stay, replies come.
"""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.compiler import NoCompiler
from hack.wall_clock import WallClock
from scaletest.broker import Client, EmbeddedServer, Queues, connect, embedded
from scaletest.load import ClosedLoop
from scaletest.model import Record, Request
from tests.conftest import Gate, check_books, eventually, missing, wait_for
from tests.integration.conftest import workers


@pytest.fixture
def clock(tmp_path: Path) -> WallClock:
    """The clock of the server that `own` starts."""
    try:
        return WallClock(embedded.find_server(), tmp_path)
    except NoCompiler as error:
        missing(str(error))


@pytest.fixture
def own(clock: WallClock) -> Iterator[EmbeddedServer]:
    """A server with that clock, which keeps nothing."""
    with EmbeddedServer(tcp=True, program=clock.program) as server:
        Queues(connect(server.url)).add("q")
        clock.set(10**6)
        if abs(connect(server.url).time()[0] - time.time() - 10**6) > 10**5:
            missing("a Redis server into which a library can be preloaded")
        clock.set(0)
        yield server


@pytest.mark.parametrize("seconds", [-3600, 30, 10**8])
def test_a_dead_workers_request_comes_back_and_a_living_ones_does_not(
    own: EmbeddedServer, clock: WallClock, tmp_path: Path, gate: Gate, seconds: int
) -> None:
    redis = connect(own.url)
    queues = Queues(redis)
    with Client(redis) as client, workers(own.url, tmp_path) as launch:
        # given two workers that run a request each
        doomed = launch("doomed", "--heartbeat", "2", "--", *gate.command)
        launch("living", "--heartbeat", "2", "--", *gate.command)
        client.submit([Request(client.new_id(), "q") for _ in range(2)])
        eventually(lambda: queues.state("q").running == 2)
        # when one of them dies and the clock is set
        doomed.kill()
        doomed.wait()
        clock.set(seconds)
        # expect its request back, and the other one where it is
        eventually(lambda: queues.state("q").waiting == 1)
        gate.open()
        replies = wait_for(client, 2)
    assert sorted(reply.attempts for reply in replies.values()) == [1, 2]
    assert {reply.worker for reply in replies.values()} == {"living"}
    assert all(reply.ok and reply.wait_s >= 0 for reply in replies.values())
    check_books(queues, requeued=1, stale=0)


def test_load_goes_on_where_redis_comes_back_without_data_and_with_a_clock_that_is_behind(
    own: EmbeddedServer, clock: WallClock, tmp_path: Path
) -> None:
    # given a server that starts with a declared queue, since the client may be back before a test
    # can declare it
    connect(own.url).save()
    records: list[Record] = []
    with workers(own.url, tmp_path) as launch:
        launch("w", "--heartbeat", "2")
        client = Client(connect(own.url), patience_s=120)
        loop = ClosedLoop(client, "q", records.append, arguments=("0.01",), total=300)
        loop.set_parallel(4)
        eventually(lambda: len(records) > 100)
        own.process.kill()
        own.process.wait()
        clock.set(-(10**6))
        own.start()
        assert loop.wait_idle(120)
        loop.close()
        client.close()
    assert len({record.reply.id for record in records}) == len(records) == 300
    assert all(record.ok and record.reply.wait_s >= 0 for record in records)
