"""Answers and calls that are lost on their way, moves without their second half, and connections
that break before and after each script that changes something: it is as if nothing had broken.
"""

import json
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
import redis.connection

from hack.proxy import Link, Proxy, port_of
from scaletest.broker import Client, EmbeddedServer, Queues, connect, fast_lane, keys
from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import FastLane, TakenRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script
from scaletest.broker.snapshot import read_snapshot
from scaletest.model import Request
from tests.conftest import check_books, eventually, submit, wait_for
from tests.integration.lanes import done, lane_of

CYCLE = script("cycle").digest.encode()


@dataclass
class Loser:
    """Makes a link silent where `cue` says so, once."""

    cue: Callable[[bytes, bool], bool]
    armed: bool = False
    silenced: int = 0

    def __call__(self, link: Link, data: bytes, from_server: bool) -> None:
        if self.armed and not self.silenced and self.cue(data, from_server):
            link.silent = True
            self.silenced += 1


def is_answer_with(name: str) -> Callable[[bytes, bool], bool]:
    return lambda data, from_server: from_server and name.encode() in data


def is_call(data: bytes, from_server: bool) -> bool:
    return not from_server and CYCLE in data


@pytest.mark.parametrize("lost", ["the answer to an idle worker", "the call that brings a result"])
def test_a_lost_call_or_answer_is_repeated_on_a_new_connection(
    own: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    monkeypatch.setattr(fast_lane, "LONGEST_BLOCK_S", 0.5)
    monkeypatch.setattr(fast_lane, "SOCKET_SLACK_S", 0.5)
    redis = connect(own.url)
    loser = Loser(is_answer_with("scaletest_workers.entry.run") if "answer" in lost else is_call)
    with Proxy(port_of(own.url), loser) as proxy, Client(redis) as client:
        lane = lane_of(connect(proxy.url))
        name = submit(client)
        # when a connection stops carrying anything, without a word to either end
        loser.armed = "answer" in lost
        taken = lane.cycle(None)
        loser.armed = True
        lane.cycle(done(taken))
        reply = wait_for(client, 1, 120)[name]
    # expect the same call again, and the request to count once
    assert (loser.silenced, taken.attempt, reply.ok) == (1, 1, True)
    counters = Queues(redis).state("q").counters
    assert {name: counters.get(name, 0) for name in ("succeeded", "requeued", "stale")} == {
        "succeeded": 1,
        "requeued": 0,
        "stale": 0,
    }


def blocked(redis: Any) -> bool:
    return bool(redis.info("clients")["blocked_clients"])


def test_connections_have_keepalive_and_a_user_timeout(own: EmbeddedServer) -> None:
    connection = connect(own.url).connection_pool.get_connection()
    options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE)
    assert [connection._sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [
        10_000,
        5,
    ]
    connection.disconnect()


def test_an_idle_lane_sends_one_packet(
    client: Client, redis: Any, monkeypatch: pytest.MonkeyPatch, lane: FastLane
) -> None:
    assert lane.cycle(None) is None
    parts: list[bytes] = []
    real = lane._connection.send_packed_command

    def send(command: Any, check_health: bool = True) -> None:
        parts.extend([command] if isinstance(command, bytes) else command)
        real(command, check_health=check_health)

    monkeypatch.setattr(lane._connection, "send_packed_command", send)
    assert lane._blocking_take(0.01) is None
    (packet,) = parts
    assert b"BLMOVE" in packet
    assert CYCLE in packet


def test_a_request_that_was_moved_but_not_taken_is_put_back(own: EmbeddedServer) -> None:
    # given the connection of a worker that nobody knows any more: of its packet only the move
    # arrived
    redis = connect(own.url)
    with (
        Client(redis) as client,
        socket.create_connection(("127.0.0.1", port_of(own.url))) as ghost,
    ):
        parts = (b"BLMOVE", b"rq:queue:q", keys.taking("q").encode(), b"LEFT", b"RIGHT", b"0")
        ghost.sendall(b"*6\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        eventually(lambda: blocked(redis))
        client.submit([Request(name, "q") for name in ("a", "b")])
        assert redis.lrange(keys.taking("q"), 0, -1) == [b"a"]
        # when anybody reaps the queue, expect the request at the queue's front
        Heartbeat(redis, "reaper", "q")._reap()
        assert redis.lrange("rq:queue:q", 0, -1) == [b"a", b"b"]
        assert Queues(redis).state("q").balance == 0


def test_a_reaper_leaves_a_request_that_was_moved_just_now(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    # given a request that a lane's move has brought to the taking list
    client.submit([Request(name, "q") for name in ("a", "b")])
    redis.lmove("rq:queue:q", keys.taking("q"), "LEFT", "RIGHT")
    # when a reaper comes before the second half
    Heartbeat(redis, "reaper", "q")._reap()
    assert lane._call_script(None, "2").id == "a"


SCRIPTS = ("submit", "settle", "release", "poison", "cancel", "purge", "beat", "reap", "cycle")


@pytest.fixture(params=["before", "after"])
def cut(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, url: str
) -> Callable[[str], None]:
    """`cut(name)` breaks the connection once, before or after the next call of that script."""
    for name in SCRIPTS:
        # so that no call needs a second try for a reason of its own
        connect(url).script_load(script(name).text)
    real = redis.connection.AbstractConnection.send_packed_command

    def arm(name: str) -> None:
        digest = script(name).digest.encode()
        armed = [True]

        def send(self: Any, command: Any, check_health: bool = True) -> None:
            packet = command if isinstance(command, bytes) else b"".join(command)
            if not armed or digest not in packet:
                return real(self, command, check_health=check_health)
            armed.clear()
            if request.param == "after":
                real(self, command, check_health=check_health)
                self.read_response()
            self.disconnect()
            raise redis.ConnectionError("cut")

        monkeypatch.setattr(redis.connection.AbstractConnection, "send_packed_command", send)

    return arm


@pytest.fixture
def accounting(url: str) -> Accounting:
    return Accounting(connect(url), Retrying("test", patience_s=10), "q", "w")


@pytest.fixture
def taken_request(client: Client, redis: Any) -> TakenRequest:
    """A request that worker w holds outside the fast lane."""
    name = client.new_id()
    client.submit_one(Request(name, "q"), reply=False)
    redis.lpop("rq:queue:q")
    redis.zadd(keys.leases("q"), {f"{name}:1:w": 9e15})
    return TakenRequest(name, 1, 0, 1, client.name)


def test_a_submission_whose_connection_is_cut_is_counted_once(
    client: Client, queues: Queues, redis: Any, cut: Callable[[str], None]
) -> None:
    cut("submit")
    assert client.submit([Request(client.new_id(), "q") for _ in range(3)]) == 3
    check_books(queues, waiting=3, submitted=3)
    assert sum(slot.submitted for slot in read_snapshot(redis).queues[0].slots) == 3


def test_a_cycle_whose_connection_is_cut_settles_one_request_and_takes_another(
    client: Client, queues: Queues, lane: FastLane, cut: Callable[[str], None]
) -> None:
    client.submit([Request(client.new_id(), "q") for _ in range(3)])
    taken = lane.cycle(None)
    cut("cycle")
    assert lane.cycle(done(taken)).id != taken.id
    check_books(queues, waiting=1, running=1, succeeded=1)
    assert len(wait_for(client, 1)) == 1


def test_a_result_whose_connection_is_cut_is_settled_once(
    client: Client,
    queues: Queues,
    redis: Any,
    accounting: Accounting,
    taken_request: TakenRequest,
    cut: Callable[[str], None],
) -> None:
    cut("settle")
    reply = json.dumps({"id": taken_request.id, "outcome": "succeeded"})
    assert accounting.settle(taken_request, "succeeded", 0.1, 0.1, reply) > 1e9
    assert list(wait_for(client, 1)) == [taken_request.id]
    assert client.replies(0.05) == []
    check_books(queues, succeeded=1, stale=0)
    assert sum(slot.ended for slot in read_snapshot(redis).queues[0].slots) == 1


def test_a_release_whose_connection_is_cut_puts_the_request_back_once(
    queues: Queues,
    redis: Any,
    accounting: Accounting,
    taken_request: TakenRequest,
    cut: Callable[[str], None],
) -> None:
    cut("release")
    accounting.release(taken_request)
    assert redis.lrange("rq:queue:q", 0, -1) == [taken_request.id.encode()]
    assert queues.state("q").balance == 0


def test_a_poisoned_request_whose_connection_is_cut_fails_once(
    queues: Queues,
    redis: Any,
    accounting: Accounting,
    taken_request: TakenRequest,
    cut: Callable[[str], None],
) -> None:
    cut("poison")
    accounting.poison(taken_request, "it must not run")
    check_books(queues, poison=1, failed=1)


def test_a_cancellation_whose_connection_is_cut_is_counted_once(
    client: Client, queues: Queues, redis: Any, cut: Callable[[str], None]
) -> None:
    ids = [client.new_id() for _ in range(3)]
    client.submit([Request(name, "q") for name in ids])
    cut("cancel")
    client.cancel("q", ids[:2])
    check_books(queues, waiting=1, client_gone=2)


def test_a_reap_whose_connection_is_cut_puts_a_request_back_once(
    url: str, redis: Any, queues: Queues, taken_request: TakenRequest, cut: Callable[[str], None]
) -> None:
    retrying = Retrying("test", patience_s=10)
    dead = Heartbeat(connect(url), "w", "q", interval_s=60.0)
    alive = Heartbeat(connect(url), "other", "q", interval_s=60.0)
    dead._beat()
    redis.zadd(keys.leases("q"), {f"{taken_request.id}:1:w": 1})
    cut("beat")
    retrying.run(alive._beat)
    cut("reap")
    retrying.run(alive._reap)
    assert redis.lrange("rq:queue:q", 0, -1) == [taken_request.id.encode()]
    check_books(queues, requeued=1, running=0)


def test_two_reapers_at_once_put_back_once(
    url: str, redis: Any, queues: Queues, taken_request: TakenRequest
) -> None:
    reapers = [Heartbeat(connect(url), f"r{number}", "q", interval_s=60) for number in range(8)]
    for reaper in reapers:
        reaper._beat()
    redis.zadd(keys.leases("q"), {f"{taken_request.id}:1:w": 1})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda reaper: reaper._reap(), reapers))
    assert redis.llen("rq:queue:q") == 1
    assert queues.state("q").counters["requeued"] == 1
