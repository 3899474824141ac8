"""Redis with too little memory: who connects is warned, what does not fit is refused, what was
accepted is done.
"""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from scaletest import broker
from scaletest.broker import Client, EmbeddedServer, Queues, connect
from scaletest.broker.connection import own_connection
from scaletest.model import Request
from scaletest.model.errors import Unreachable
from tests.conftest import call, call_here, program, wait_for


@pytest.fixture
def evicting() -> Iterator[EmbeddedServer]:
    """A server that throws keys away when it is full."""
    with EmbeddedServer(extra=("--maxmemory-policy", "allkeys-lru")) as server:
        Queues(connect(server.url)).add("q")
        yield server


def test_a_command_warns_once_of_a_redis_that_evicts_keys(evicting: EmbeddedServer) -> None:
    # given a command that connects twice
    options = [
        "--redis-url",
        evicting.url,
        "--duration",
        "0.1",
        "--grace",
        "0.1",
        "--listen",
        "none",
    ]
    # when it runs
    done = call("client", "--queue", "q", *options)
    # expect one line that says what to do
    assert (
        done.stderr.count("evicts keys when its memory is full (maxmemory-policy allkeys-lru)") == 1
    )
    assert "set maxmemory-policy noeviction" in done.stderr


def test_a_command_warns_once_of_a_redis_with_few_connections_left() -> None:
    with EmbeddedServer(extra=("--maxclients", "50")) as server, ExitStack() as stack:
        redis = connect(server.url)
        Queues(redis).add("q")
        options = ["--redis-url", server.url, "--duration", "0.1", "--listen", "none"]
        options += ["--grace", "0.1"]
        few = call("client", "--queue", "q", *options)
        for _ in range(40):
            own = own_connection(redis, 5.0)
            own.connect()
            stack.callback(own.disconnect)
        many = call("client", "--queue", "q", *options)
    assert "maxclients" not in few.stderr
    assert many.stderr.count("of at most 50 connections: soon it will refuse workers") == 1


def test_a_user_without_the_right_to_read_the_memory_gets_no_warning(
    evicting: EmbeddedServer,
) -> None:
    connect(evicting.url).execute_command(
        *("ACL", "SETUSER", "narrow", "reset", "on", ">pw", "~*", "&*"),
        *("+@all", "-info", "+info|server"),
    )
    done = call_here(
        "queue", "--redis-url", evicting.url.replace("unix://", "unix://narrow:pw@"), "list"
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_full_redis_refuses_submissions_and_loses_no_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a Redis with room for some hundreds of requests
    with EmbeddedServer() as server:
        redis = connect(server.url)
        Queues(redis).add("q")
        with Client(connect(server.url), patience_s=0.2) as client:
            redis.config_set("maxmemory", redis.info("memory")["used_memory"] + 8_000_000)
            accepted = _fill(client)
            assert accepted > 100
            # of which more is in use than submissions may have, also when buffers are given back
            redis.config_set("maxmemory", int(redis.info("memory")["used_memory"] / 0.94))
            # when somebody else submits, and gives up sooner than the command does
            with monkeypatch.context() as patch:
                patch.setattr(
                    broker, "Client", lambda redis, patience_s: Client(redis, patience_s=0.2)
                )
                refused = call_here(
                    "queue", "--redis-url", server.url, "submit", "q", "--no-wait", "--", "0"
                )
            # expect an error that says why, and what to do
            assert refused.returncode == 7
            assert "error: Redis refuses writes: its memory is full" in refused.stderr
            assert "queue purge" in refused.stderr and "start it again" not in refused.stderr
            # and room enough for a worker that starts only now
            line = program("worker", "--queue", "q", "--burst", "--redis-url", server.url)
            worker = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            replies = wait_for(client, accepted)
            assert worker.wait(120) == 0
            # and every request that was accepted answered, and room for more
            assert all(reply.ok for reply in replies.values())
            assert Queues(redis).check("q") == []
            assert client.submit([_request(client)]) == 1


def test_a_full_redis_is_reported_and_its_queues_can_be_purged() -> None:
    # given a Redis that others filled to the last byte
    with EmbeddedServer() as server:
        redis = connect(server.url)
        Queues(redis).add("q")
        with Client(connect(server.url)) as client:
            assert client.submit([_request(client) for _ in range(20)]) == 20
            redis.config_set("maxmemory", 1)
            # when something is to be written
            refused = call_here("queue", "--redis-url", server.url, "add", "other")
            # expect the same error, and a purge that works
            assert refused.returncode == 7
            assert refused.stderr.startswith("error: Redis refuses writes: its memory is full\n")
            assert "queue purge" in refused.stderr and "start it again" not in refused.stderr
            done = call_here("queue", "--redis-url", server.url, "purge", "q", "--yes")
            assert done.stdout == "q: 20 requests dropped\n"
            redis.config_set("maxmemory", 0)


def _request(client: Client) -> Request:
    return Request(client.new_id(), "q", ("0", "x" * 4000))


def _fill(client: Client) -> int:
    """Submit until the server refuses; how many requests it accepted."""
    accepted = 0
    with pytest.raises(Unreachable, match="its memory is full") as caught:
        while True:
            accepted += client.submit([_request(client)])
    assert "queue purge" in caught.value.hint
    return accepted
