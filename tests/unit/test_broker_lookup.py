"""What pages look up beside a snapshot, on a Redis in this process."""

from __future__ import annotations

import pytest

from scaletest.broker import Queues, keys
from scaletest.broker.lookup import RqState, rq_state
from tests.unit.virtual_redis import VirtualRedis


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
