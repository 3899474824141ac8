"""What a client submits, cancels and reads, on a Redis in this process, and what becomes of the
requests of one that is dead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, jobs, keys
from scaletest.broker.cancellation import SET_TTL_S, Cancellation
from scaletest.broker.client import CLIENT_TTL_S
from scaletest.broker.fast_lane import Taken
from scaletest.broker.reaping import PIECE, Watcher
from scaletest.broker.server_limits import connections_warning, memory_warning
from scaletest.model import Outcome, Reason, Record, Request
from scaletest.model.errors import InvalidValue, QueueFull, UndeclaredQueue
from tests.conftest import wait_for
from tests.integration.lanes import abandon, done, lane_of, waiting
from tests.unit.virtual_redis import Clock, VirtualRedis, beats_for


def test_submitting_to_an_undeclared_queue_lists_the_declared_ones(
    client: Client, redis: VirtualRedis
) -> None:
    with pytest.raises(UndeclaredQueue, match="declared: q"):
        client.submit_one(Request("r", "typo"))
    assert not redis.exists("rq:queue:typo")


def test_a_full_queue_rejects_and_counts(client: Client, queues: Queues) -> None:
    queues.add("q", maximum=3)
    requests = [Request(client.new_id(), "q") for _ in range(5)]
    assert client.submit(requests) == 3
    with pytest.raises(QueueFull, match="3 requests wait"):
        client.submit_one(Request(client.new_id(), "q"))
    state = queues.state("q")
    assert (state.waiting, state.counters["rejected"], state.balance) == (3, 3, 0)


def test_requests_refused_by_a_full_queue_are_submitted_again(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    queues.add("q", maximum=2)
    requests = [Request(client.new_id(), "q") for _ in range(2)]
    pending = {request.id: request for request in requests}
    client.submit(requests)
    redis.delete("rq:queue:q", *[f"rq:job:{name}" for name in pending])
    with Client(redis) as other:
        other.submit_one(Request(other.new_id(), "q"))
        assert client.recover(pending, force=True) == 1
        queues.purge("q")
        assert client.recover(pending) == 1
    assert client.recover(pending) == 0


def test_what_redis_forgot_of_several_queues_is_submitted_again_once(
    client: Client, redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.submitter.DECLARED_AGAIN_S", 0.0)
    for name in ("a", "b", "gone"):
        queues.add(name)
    requests = [Request(client.new_id(), name) for name in ("a", "gone", "b", "a", "q")]
    for request in requests:
        client.submit([request])
    pending = {request.id: request for request in requests}
    names = ("a", "b", "gone", "q")
    redis.delete(*[f"rq:queue:{name}" for name in names], *[f"rq:job:{name}" for name in pending])
    redis.hdel(keys.QUEUES, "gone")
    # a queue that is not declared any more keeps those after it waiting, and loses none
    with pytest.raises(UndeclaredQueue) as raised:
        client.recover(pending, force=True)
    assert raised.value.queue == "gone"
    del pending[requests[1].id]
    assert client.recover(pending) == 2
    assert not client.shaken
    waiting = {name: redis.lrange(f"rq:queue:{name}", 0, -1) for name in names}
    assert [len(waiting[name]) for name in names] == [2, 1, 0, 1]


def test_a_queue_that_is_declared_again_gets_what_redis_forgot(
    client: Client, redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a Redis that forgot two queues and their requests, of which one is declared again
    queues.add("late")
    requests = [Request(client.new_id(), name) for name in ("late", "q")]
    for request in requests:
        client.submit_one(request)
    pending = {request.id: request for request in requests}
    redis.delete(keys.QUEUES, "rq:queue:late", "rq:queue:q", *map(keys.rq_job, pending))
    queues.add("q")
    # expect the request of the other to be kept, and a new one to be refused for now
    assert client.recover(pending, force=True) == 1
    assert client.shaken
    assert client.submit([Request(client.new_id(), "late")]) == 0
    with pytest.raises(UndeclaredQueue):
        client.submit_one(Request(client.new_id(), "late"))
    queues.add("late")
    assert client.recover(pending) == 1
    assert not client.shaken
    assert redis.lrange("rq:queue:late", 0, -1) == [requests[0].id.encode()]
    # and an error when it is not declared for too long
    queues.remove("late")
    assert client.submit([Request(client.new_id(), "late")]) == 0
    monkeypatch.setattr("scaletest.broker.submitter.DECLARED_AGAIN_S", 0.0)
    with pytest.raises(UndeclaredQueue):
        client.submit([Request(client.new_id(), "late")])


@pytest.mark.parametrize(
    ("reply", "end", "why"),
    [
        ('{"id":"ID","outcome":"postponed","worker":"w"}', "1000000", "postponed"),
        ('{"id":"ID","outcome":"succeeded","run_s":NaN}', "1000000", "NaN is not a number"),
        ('{"id":"ID","outcome":"succeeded","figures":{"fps":1e999}}', "1000000", "'fps' is inf"),
        ('{"id":"ID","outcome":"succeeded"', "1000000", "not valid JSON"),
        ('{"id":"ID","outcome":"succeeded"}', "soon", "soon"),
    ],
)
def test_a_reply_that_cannot_be_read_is_a_failed_one(
    client: Client, redis: VirtualRedis, reply: str, end: str, why: str
) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.xadd(keys.replies(client.name), {"r": reply.replace("ID", request.id), "e": end})
    answer = wait_for(client, 1)[request.id]
    assert (answer.outcome, answer.reason) == (Outcome.FAILED, Reason.LOST)
    assert why in answer.error
    assert "same version" in answer.error
    assert Record.from_json(Record("q", 1, answer, 1.0).to_json()).reply == answer


def test_a_client_whose_name_is_taken_over_fails(redis: VirtualRedis, queues: Queues) -> None:
    with Client(redis, name="same") as first, Client(redis, name="same") as second:
        first.submit_one(Request("a", "q"))
        second.submit_one(Request("b", "q"))
        with pytest.raises(InvalidValue, match="another client named 'same'"):
            first.submit_one(Request("c", "q"))
        assert queues.state("q").waiting == 2


@given(
    st.binary(max_size=60)
    | st.text(max_size=60).map(lambda text: json.dumps([text, None, [], {}]).encode())
)
def test_foreign_data_in_redis_is_an_invalid_value(data: bytes) -> None:
    with pytest.raises(InvalidValue):
        jobs.decode(data)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_client_looks_for_what_is_lost_after_a_restart_of_redis(
    client: Client, redis: VirtualRedis, restarted: bool
) -> None:
    # given a request that Redis forgot
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.delete("rq:queue:q", keys.rq_job(request.id))
    # when the client beats, at the Redis that it knows or at one that was started anew
    if restarted:
        redis.run_id = "second start"
    client._beat()
    assert client.shaken == restarted
    # expect it to submit the request again where it has cause to look
    assert client.recover({request.id: request}) == int(restarted)
    assert redis.llen("rq:queue:q") == int(restarted)


def test_a_client_asks_now_and_then_for_what_redis_forgot_without_a_restart(
    client: Client, redis: VirtualRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = {name: Request(name, "q") for name in (client.new_id(), client.new_id())}
    client.submit([*requests.values()])
    first = next(iter(requests))
    redis.delete(keys.rq_job(first))
    redis.lrem("rq:queue:q", 1, first)
    assert (client.shaken, client.recover(requests)) == (False, 0)
    monkeypatch.setattr("scaletest.broker.client.ASK_S", 0.0)
    assert client.shaken
    assert client.recover(requests) == 1
    assert redis.lrange("rq:queue:q", 0, -1) == [name.encode() for name in (*requests,)[::-1]]


EVICTING = {"maxmemory_policy": "allkeys-lru", "maxmemory": 1 << 30}
UNLIMITED = {"maxmemory_policy": "noeviction", "maxmemory": 0}
LIMITED = {"maxmemory_policy": "noeviction", "maxmemory": 1 << 30}


@pytest.mark.parametrize(
    ("info", "hosts", "warning"),
    [
        (EVICTING, ["redis"], "maxmemory-policy allkeys-lru"),
        (EVICTING, [], "maxmemory-policy allkeys-lru"),
        (UNLIMITED, ["redis"], "no maxmemory"),
        (UNLIMITED, ["127.0.0.1", "10.0.0.1"], "no maxmemory"),
        # on the machine of whoever looks, or when nothing is known, nothing is said
        (UNLIMITED, ["localhost"], ""),
        (UNLIMITED, ["::1"], ""),
        (UNLIMITED, [], ""),
        (LIMITED, ["redis"], ""),
        ({}, ["redis"], ""),
    ],
)
def test_a_memory_warning_is_given_only_for_a_risky_setting(
    info: dict[str, Any], hosts: list[str], warning: str
) -> None:
    text = memory_warning(info, "redis://host", hosts)
    assert warning in text and bool(text) == bool(warning)


@pytest.mark.parametrize(
    ("info", "warns"),
    [
        ({"connected_clients": 8000, "maxclients": 10000}, True),
        ({"connected_clients": 7999, "maxclients": 10000}, False),
        ({"connected_clients": 9999}, False),
        ({}, False),
    ],
)
def test_a_redis_with_nearly_all_connections_in_use_gives_a_warning(
    info: dict[str, Any], warns: bool
) -> None:
    text = connections_warning(info, "redis://host")
    assert bool(text) == warns
    assert not warns or "8000 of at most 10000 connections" in text


def test_queues_of_dead_runs_are_removed(client: Client, queues: Queues) -> None:
    queues.add("mine", owner=client.name)
    queues.add("orphan", owner="nobody")
    assert queues.remove_abandoned() == ["orphan"]
    assert queues.names() == ["mine", "q"]


@pytest.mark.parametrize("key", [keys.ended, keys.slots, keys.failures])
def test_a_foreign_key_in_place_of_the_counts_costs_no_reply_and_no_worker(
    client: Client, redis: VirtualRedis, queues: Queues, key: Callable[[str], str]
) -> None:
    # given a value of another type where ended requests are counted, or failures kept
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    redis.delete(key("q"))
    redis.rpush(key("q"), "foreign")
    # when a worker ends a request, expect its reply, and the next request for the worker
    lane = lane_of(redis)
    first = lane.cycle(None)
    assert isinstance(lane.cycle(done(first, Outcome.FAILED)), Taken)
    assert redis.xlen(keys.replies(client.name)) == 1
    assert key is not keys.failures or queues.state("q").counters["failed"] == 1


@pytest.fixture
def watcher(redis: VirtualRedis, queues: Queues) -> Watcher:
    """The exporter's watcher."""
    return Watcher(redis, 5.0, 3)


def test_requests_of_a_dead_client_are_dropped_when_its_time_to_live_is_over(
    client: Client, redis: VirtualRedis, queues: Queues, clock: Clock, watcher: Watcher
) -> None:
    # given a client that dies, and one that lives
    dead = Client(redis, name="dead")
    dead.submit([Request(dead.new_id(), "q") for _ in range(3)])
    living = client.new_id()
    client.submit_one(Request(living, "q"))
    # when somebody watches, a little less and then longer than a client may be silent
    beats_for(clock, CLIENT_TTL_S - 4, lambda: (client._beat(), watcher.tick()))
    assert queues.state("q").waiting == 4
    beats_for(clock, 8, lambda: (client._beat(), watcher.tick()))
    # expect what is left to be the living one's, and the other to be told, if it was only frozen
    assert waiting(redis) == [living]
    assert {reply.outcome for reply in wait_for(dead, 3).values()} == {Outcome.CLIENT_GONE}
    state = queues.state("q")
    assert (state.counters["client_gone"], state.balance) == (3, 0)


def test_requests_of_a_client_that_left_wait_for_its_time_to_live(
    redis: VirtualRedis, queues: Queues, clock: Clock, watcher: Watcher
) -> None:
    # given a client that said goodbye after it submitted a request
    with Client(redis) as left:
        left.submit_one(Request(left.new_id(), "q"))
    beats_for(clock, CLIENT_TTL_S - 4, watcher.tick)
    assert queues.state("q").waiting == 1
    beats_for(clock, 8, watcher.tick)
    state = queues.state("q")
    assert (state.waiting, state.counters["client_gone"], state.balance) == (0, 1, 0)


def test_the_order_of_what_stays_is_kept(
    redis: VirtualRedis, queues: Queues, watcher: Watcher
) -> None:
    # given requests of a living and a dead client in turns, over two pieces of the queue
    redis.zadd(keys.CLIENTS, {"alive": 9e18})
    staying = []
    for number in range(PIECE + PIECE // 2):
        abandon(redis, f"dead-{number}")
        if number % 3 == 0:
            staying.append(f"alive-{number}")
            abandon(redis, staying[-1], client="alive")
    watcher.tick()
    assert waiting(redis) == staying
    state = queues.state("q")
    assert (state.counters["client_gone"], state.balance) == (PIECE + PIECE // 2, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"reply_to": "a b"},
        {"enqueued_us": "soon"},
        {"client_ttl_us": "1" * 18},
        {"enqueued_us": ""},
        {"client_ttl_us": ""},
    ],
)
def test_jobs_that_scaletest_did_not_submit_are_left_to_the_workers(
    fields: dict[str, str], redis: VirtualRedis, queues: Queues, watcher: Watcher
) -> None:
    abandon(redis, "odd")
    redis.hset(keys.rq_job("odd"), mapping=fields)
    redis.rpush(keys.rq_queue("q"), "no job", "nothing")
    redis.set(keys.rq_job("text"), "text")
    redis.rpush(keys.rq_queue("q"), "text")
    watcher.tick()
    assert waiting(redis) == ["odd", "no job", "nothing", "text"]
    assert "client_gone" not in queues.state("q").counters


@pytest.mark.parametrize("seconds", [60.0, 3600.0, 1e9, -3600.0])
def test_nothing_is_dropped_right_after_an_outage(
    client: Client, redis: VirtualRedis, clock: Clock, watcher: Watcher, seconds: float
) -> None:
    # given a client that could not beat, since Redis was away or its clock was set
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    clock.step(seconds)
    # when the watcher comes before the client, for some time
    beats_for(clock, CLIENT_TTL_S / 2, watcher.tick)
    assert waiting(redis) == [request.id]
    client._beat()
    beats_for(clock, CLIENT_TTL_S - 4, watcher.tick)
    assert waiting(redis) == [request.id]


@pytest.fixture
def ids(client: Client) -> list[str]:
    """Thirty requests that wait."""
    names = [client.new_id() for _ in range(30)]
    client.submit([Request(name, "q") for name in names])
    return names


def test_cancelling_counts_neither_running_nor_unknown_requests(
    client: Client, redis: VirtualRedis, queues: Queues, ids: list[str]
) -> None:
    lane_of(redis).cycle(None)
    assert client.cancel("q", [*ids[:3], "nobody", ids[1]]) == 2
    assert redis.exists(keys.rq_job(ids[0]))
    state = queues.state("q")
    assert (state.waiting, state.running, state.balance) == (27, 1, 0)
    assert state.counters["client_gone"] == 2
    # of which nothing is kept, neither as a failure nor as cancelled
    assert not redis.exists(keys.failures("q"), keys.cancelled(client.name))


def test_the_cancelled_set_of_a_dead_client_expires(
    client: Client,
    redis: VirtualRedis,
    ids: list[str],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Cancellation, "_sweep", dies)
    with pytest.raises(KeyboardInterrupt):
        client.cancel("q", ids)
    assert redis.scard(keys.cancelled(client.name)) == len(ids) + 1
    clock.step(SET_TTL_S + 1)
    assert not redis.exists(keys.cancelled(client.name))
    assert waiting(redis) == ids
