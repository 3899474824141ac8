"""The connection breaks before and after each script that changes something: it is as if it had not
broken.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis.connection

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.accounting import Accounting, TakenJob
from scaletest.broker.connection import Retrying
from scaletest.broker.fast_lane import FastLane
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.scripts import script
from scaletest.broker.snapshot import snapshot
from scaletest.model import Request
from tests.conftest import check_books, wait_for
from tests.integration.lanes import done

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
    return Accounting(connect(url), Retrying("test", patience_s=10))


@pytest.fixture
def taken_job(client: Client, redis: Any) -> TakenJob:
    """A request that worker w holds outside the fast lane."""
    name = client.new_id()
    client.submit_one(Request(name, "q"), reply=False)
    redis.lpop("rq:queue:q")
    redis.zadd(keys.leases("q"), {f"{name}:1:w": 9e15})
    return TakenJob(name, "q", "w", 1, client.name, 1)


def test_a_submission_whose_connection_is_cut_is_counted_once(
    client: Client, queues: Queues, redis: Any, cut: Callable[[str], None]
) -> None:
    cut("submit")
    assert client.submit([Request(client.new_id(), "q") for _ in range(3)]) == 3
    check_books(queues, waiting=3, submitted=3)
    assert sum(slot.submitted for slot in snapshot(redis).queues[0].slots) == 3


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
    taken_job: TakenJob,
    cut: Callable[[str], None],
) -> None:
    cut("settle")
    reply = json.dumps({"id": taken_job.id, "outcome": "succeeded"})
    assert accounting.settle(taken_job, "succeeded", 0.1, 0.1, reply) > 1e9
    assert list(wait_for(client, 1)) == [taken_job.id]
    assert client.replies(0.05) == []
    check_books(queues, succeeded=1, stale=0)
    assert sum(slot.ended for slot in snapshot(redis).queues[0].slots) == 1


def test_a_release_whose_connection_is_cut_puts_the_request_back_once(
    queues: Queues,
    redis: Any,
    accounting: Accounting,
    taken_job: TakenJob,
    cut: Callable[[str], None],
) -> None:
    cut("release")
    accounting.release(taken_job)
    assert redis.lrange("rq:queue:q", 0, -1) == [taken_job.id.encode()]
    assert queues.state("q").balance == 0


def test_a_poisoned_request_whose_connection_is_cut_fails_once(
    queues: Queues,
    redis: Any,
    accounting: Accounting,
    taken_job: TakenJob,
    cut: Callable[[str], None],
) -> None:
    cut("poison")
    accounting.poison(taken_job, "it must not run")
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
    url: str, redis: Any, queues: Queues, taken_job: TakenJob, cut: Callable[[str], None]
) -> None:
    retrying = Retrying("test", patience_s=10)
    dead = Heartbeat(connect(url), "w", "q", interval_s=60.0)
    alive = Heartbeat(connect(url), "other", "q", interval_s=60.0)
    dead._beat()
    redis.zadd(keys.leases("q"), {f"{taken_job.id}:1:w": 1})
    cut("beat")
    retrying.run(alive._beat)
    cut("reap")
    retrying.run(alive._reap)
    assert redis.lrange("rq:queue:q", 0, -1) == [taken_job.id.encode()]
    check_books(queues, requeued=1, running=0)


def test_two_reapers_at_once_put_back_once(
    url: str, redis: Any, queues: Queues, taken_job: TakenJob
) -> None:
    reapers = [Heartbeat(connect(url), f"r{number}", "q", interval_s=60) for number in range(8)]
    for reaper in reapers:
        reaper._beat()
    redis.zadd(keys.leases("q"), {f"{taken_job.id}:1:w": 1})
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda reaper: reaper._reap(), reapers))
    assert redis.llen("rq:queue:q") == 1
    assert queues.state("q").counters["requeued"] == 1
