"""What a client submits and reads, on a Redis in this process."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, jobs, keys
from scaletest.broker.fast_lane import TakenRequest
from scaletest.model import Outcome, Reason, Record, Request
from scaletest.model.errors import InvalidValue, QueueFull, UndeclaredQueue
from tests.conftest import wait_for
from tests.integration.lanes import done, lane_of
from tests.unit.virtual_redis import VirtualRedis


def test_submitting_to_an_undeclared_queue_lists_the_declared_ones(
    client: Client, redis: VirtualRedis
) -> None:
    with pytest.raises(UndeclaredQueue, match="declared: q"):
        client.submit_one(Request("r", "typo"))
    assert not redis.exists("rq:queue:typo")


def test_a_full_queue_rejects_and_counts(client: Client, queues: Queues) -> None:
    queues.add("q", maximum=3)
    assert client.submit([Request(client.new_id(), "q") for _ in range(5)]) == 3
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
    monkeypatch.setattr("scaletest.broker.client.DECLARED_AGAIN_S", 0.0)
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
    assert [redis.llen(f"rq:queue:{name}") for name in names] == [2, 1, 0, 1]


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
    monkeypatch.setattr("scaletest.broker.client.DECLARED_AGAIN_S", 0.0)
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
    monkeypatch.setattr("scaletest.broker.client.ASK_EVERY_S", 0.0)
    assert client.shaken
    assert client.recover(requests) == 1
    assert redis.lrange("rq:queue:q", 0, -1) == [name.encode() for name in (*requests,)[::-1]]


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
    assert isinstance(lane.cycle(done(first, Outcome.FAILED)), TakenRequest)
    assert redis.xlen(keys.replies(client.name)) == 1
    assert key is not keys.failures or queues.state("q").counters["failed"] == 1
