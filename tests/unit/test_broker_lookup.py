"""What pages look up beside a snapshot, on a Redis in this process."""

from __future__ import annotations

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.lookup import RqState, request_state, rq_state
from scaletest.model import Request
from scaletest.model.errors import InvalidValue
from tests.integration.lanes import lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis


def test_a_request_is_known_while_it_waits_and_runs(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    # given two requests, of which a worker takes the first
    enqueued_s = clock.seconds()
    first, second = (Request(client.new_id(), "q") for _ in range(2))
    client.submit([first, second])
    waiting = request_state(redis, "q", second.id)
    assert (waiting.place, waiting.status, waiting.queue) == (1, "queued", "q")
    assert (waiting.enqueued_s, waiting.worker) == (enqueued_s, "")
    Heartbeat(redis, "w", "q", interval_s=60.0)._beat()
    lane_of(redis, interval_s=60.0).cycle(None)
    running = request_state(redis, "q", first.id)
    assert (running.place, running.worker, running.attempt) == (None, "w", "1")
    assert request_state(redis, "q", "unknown") is None


def test_a_request_far_behind_is_not_searched_for(
    client: Client, redis: VirtualRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.lookup.MOST_SEARCHED", 3)
    requests = [Request(client.new_id(), "q") for _ in range(5)]
    client.submit(requests)
    states = [request_state(redis, "q", request.id) for request in requests]
    assert [state and state.place for state in states] == [0, 1, 2, None, None]
    assert states[-1] is not None and states[-1].status == "queued"


@pytest.mark.usefixtures("queues")
def test_what_others_wrote_into_a_job_is_cut_or_left_out(redis: VirtualRedis) -> None:
    redis.hset(keys.rq_job("odd"), mapping={"status": "\x1b[2J" + "x" * 999, "enqueued_us": "soon"})
    redis.set(keys.rq_job("other"), "a text")
    odd = request_state(redis, "q", "odd")
    assert len(odd.status) <= 50
    assert "\x1b" not in odd.status
    assert odd.enqueued_s is None
    assert request_state(redis, "q", "other") is None
    for name in ("*", "a:b", ""):
        with pytest.raises(InvalidValue):
            request_state(redis, "q", name)


def test_failed_jobs_and_the_suspension_of_rq_are_told(
    redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.lookup.QUEUES_AT_ONCE", 2)
    names = [f"q-{number}" for number in range(5)]
    for name in names:
        queues.add(name)
    redis.zadd(keys.rq_failed("q-1"), {"a": 1, "b": 2})
    redis.set(keys.rq_failed("q-2"), "a text")
    redis.zadd(keys.rq_failed("q-4"), {"c": 1})
    assert rq_state(redis, names) == RqState(False, {"q-1": 2, "q-4": 1})
    redis.set(keys.RQ_SUSPENDED, "1")
    assert rq_state(redis, []) == RqState(True, {})
