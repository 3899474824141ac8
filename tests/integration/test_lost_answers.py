"""Answers and calls that are lost on their way, and moves without their second half: the next
heartbeats notice.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hack.proxy import Link, Proxy, port_of
from scaletest.broker import Client, EmbeddedServer, Queues, connect, keys
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.scripts import script
from scaletest.model import Request
from tests.conftest import Gate, eventually, submit, wait_for
from tests.integration.lanes import lane_of
from tests.integration.test_stopping import Launch

BEAT, CYCLE = script("beat").digest.encode(), script("cycle").digest.encode()
# A lease of 18 s: a worker that gets no processor for seconds keeps it.
INTERVAL_S = 10.0


@dataclass
class Loser:
    """Makes the lane's link silent where `cue` says so, and counts the worker's heartbeats from
    then on.
    """

    cue: Callable[[bytes, bool], bool]
    armed: bool = False
    silenced: int = 0
    beats: int = 0
    again: list[int] = field(default_factory=list)

    def __call__(self, link: Link, data: bytes, from_server: bool) -> None:
        if self.silenced and not from_server:
            self.beats += BEAT in data
            if CYCLE in data and not link.silent and not self.again:
                self.again.append(self.beats)
        if self.armed and not self.silenced and self.cue(data, from_server):
            link.silent = True
            self.silenced += 1


def is_answer_with(name: str) -> Callable[[bytes, bool], bool]:
    return lambda data, from_server: from_server and name.encode() in data


def is_call(data: bytes, from_server: bool) -> bool:
    return not from_server and CYCLE in data


@pytest.mark.parametrize("lost", ["the answer to an idle worker", "the call that brings a result"])
def test_a_lost_call_or_answer_is_repeated_within_an_interval(
    own: EmbeddedServer, tmp_path: Path, gate: Gate, lost: str
) -> None:
    redis = connect(own.url)
    loser = Loser(is_answer_with("workers.entry.run") if "answer" in lost else is_call)
    with (
        Proxy(port_of(own.url), loser) as proxy,
        Client(redis) as client,
        workers(proxy.url, tmp_path) as launch,
    ):
        launch("w", "--heartbeat", str(INTERVAL_S), "--", *gate.command)
        eventually(lambda: blocked(redis))
        # when a connection stops carrying anything, without a word to either end
        if "answer" in lost:
            loser.armed = True
            name = submit(client)
        else:
            name = submit(client)
            eventually(lambda: Queues(redis).state("q").running == 1)
            loser.armed = True
        gate.open()
        reply = wait_for(client, 1, 120)[name]
    # expect the same call again after two heartbeats, or a third one where this machine is slow
    assert loser.silenced == 1
    assert loser.again[0] <= 3
    # and the request run once, under its first lease
    assert (reply.ok, reply.attempts, reply.worker) == (True, 1, "w")
    counters = Queues(redis).state("q").counters
    assert {name: counters.get(name, 0) for name in ("succeeded", "requeued", "stale")} == {
        "succeeded": 1,
        "requeued": 0,
        "stale": 0,
    }


def blocked(redis: Any) -> bool:
    return bool(redis.info("clients")["blocked_clients"])


class workers:  # noqa: N801 - a context
    """Starts worker processes that reach Redis by this URL; they are gone afterwards."""

    def __init__(self, url: str, folder: Path) -> None:
        self._url = url
        self._log = folder / "workers.log"
        self._processes: list[Any] = []

    def __enter__(self) -> Launch:
        return self._launch

    def _launch(self, name: str, *arguments: str) -> Any:
        import subprocess

        from tests.conftest import program

        line = program(
            "worker", "--queue", "q", "--name", name, "--redis-url", self._url, *arguments
        )
        with self._log.open("ab") as log:
            process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._processes.append(process)
        return process

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def test_connections_have_keepalive_and_a_user_timeout(own: EmbeddedServer) -> None:
    connection = connect(own.url).connection_pool.get_connection()
    options = (socket.TCP_USER_TIMEOUT, socket.TCP_KEEPIDLE)
    assert [connection._sock.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [
        10_000,
        5,
    ]
    connection.disconnect()


# -- what a lane tells its heartbeat
# --------------------------------------------------------------------------------------------------


# -- repeated calls
# --------------------------------------------------------------------------------------------------


# -- the move
# --------------------------------------------------------------------------------------------------


def test_an_idle_lane_sends_one_packet(
    client: Client, redis: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = lane_of(redis)
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
    lane.close()


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
    client: Client, redis: Any, queues: Queues
) -> None:
    # given a request that a lane's move has brought to the taking list
    lane = lane_of(redis)
    client.submit([Request(name, "q") for name in ("a", "b")])
    redis.lmove("rq:queue:q", keys.taking("q"), "LEFT", "RIGHT")
    # when a reaper comes before the second half
    Heartbeat(redis, "reaper", "q")._reap()
    taken = lane._call_script(None, "2")
    assert taken.id == "a"
    lane.close()
