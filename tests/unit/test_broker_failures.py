"""The last failures of a queue, on a Redis in this process: what is kept, of whom, and for how
long.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import Accounting, TakenJob
from scaletest.broker.connection import Retrying
from scaletest.broker.failures import FailedRequest, failures
from scaletest.broker.fast_lane import Done, FastLane, Taken
from scaletest.broker.scripts import LONGEST_FAILURE, MOST_FAILURES
from scaletest.broker.snapshot import snapshot
from scaletest.model import Outcome, Request
from scaletest.model.errors import InvalidValue
from tests.integration.lanes import lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis

REPLY = {
    "outcome": "failed",
    "reason": "exit",
    "exit_code": 234,
    "error": "[AVHWDeviceContext @ 0x55d0c3a1b2c0] Failed to initialise VAAPI",
    "node": "node-1",
    "pod": "pod-1",
    "device": "/dev/dri/renderD128",
    "attempts": 2,
}


def failed(taken: Taken, **changes: Any) -> Done:
    """A finished request that failed as REPLY says."""
    reply = {**REPLY, "id": taken.id, **changes}
    return Done(taken, reply["outcome"], 1, 1, json.dumps(reply), False)


def taken(client: Client, lane: FastLane) -> Taken:
    """The next request, in a worker's lane."""
    client.submit_one(Request(client.new_id(), "q"))
    request = lane.cycle(None)
    assert isinstance(request, Taken)
    return request


def test_a_failed_request_is_kept_with_what_its_reply_says(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    lane = lane_of(redis)
    request = taken(client, lane)
    clock.step(5.0)
    lane.cycle(failed(request), take=False)
    assert failures(redis, "q") == [
        FailedRequest(
            clock.seconds(),
            request.id,
            "node-1",
            "/dev/dri/renderD128",
            "pod-1",
            "failed",
            "exit",
            234,
            2,
            REPLY["error"],
        )
    ]
    row = failures(redis, "q")[0].to_dict()
    assert row["pattern"] == "[AVHWDeviceContext @ <address>] Failed to initialise VAAPI"
    assert row["exit_code"] == 234


def test_a_result_that_came_too_late_is_neither_kept_nor_in_a_slot(
    client: Client, redis: VirtualRedis
) -> None:
    lane = lane_of(redis)
    request = taken(client, lane)
    redis.delete(keys.leases("q"))
    lane.cycle(failed(request), take=False)
    assert failures(redis, "q") == []
    assert [slot.ended for slot in snapshot(redis).queues[0].slots] == [0]


def test_the_last_hundred_are_kept_the_newest_first(client: Client, redis: VirtualRedis) -> None:
    lane = lane_of(redis)
    ids = []
    for _ in range(MOST_FAILURES + 7):
        request = taken(client, lane)
        ids.append(request.id)
        lane.cycle(failed(request), take=False)
    assert [row.id for row in failures(redis, "q")] == ids[: -MOST_FAILURES - 1 : -1]
    assert redis.xlen(keys.failures("q")) == MOST_FAILURES


@pytest.mark.usefixtures("queues")
def test_a_job_that_nobody_may_execute_is_kept(redis: VirtualRedis) -> None:
    # given a job without data in the queue, and one that a worker refuses
    redis.hset(keys.rq_job("empty"), mapping={"origin": "q"})
    redis.hset(keys.rq_job("refused"), mapping={"origin": "q", "data": "x"})
    redis.rpush(keys.rq_queue("q"), "empty", "refused")
    refused = lane_of(redis).cycle(None)
    accounting = Accounting(redis, Retrying("test"))
    accounting.poison(TakenJob("refused", "q", "w", refused.attempt), "function 'x' is not allowed")
    assert [(row.id, row.reason, row.error) for row in failures(redis, "q")] == [
        ("refused", "poison", "function 'x' is not allowed"),
        ("empty", "poison", "it has no data"),
    ]


@pytest.mark.usefixtures("queues")
def test_a_request_that_rq_ran_is_kept_once_and_only_when_it_failed(redis: VirtualRedis) -> None:
    accounting = Accounting(redis, Retrying("test"))
    for name, outcome in (("good", "succeeded"), ("bad", "failed"), ("bad", "failed")):
        reply = json.dumps({**REPLY, "id": name, "outcome": outcome})
        accounting.settle(TakenJob(name, "q", "w", None), outcome, 0.1, 0.1, reply)
    assert [row.id for row in failures(redis, "q")] == ["bad"]


def test_a_removed_queue_leaves_neither_failures_nor_slots(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    lane = lane_of(redis)
    lane.cycle(failed(taken(client, lane)), take=False)
    assert redis.exists(keys.failures("q"), keys.slots("q")) == 2
    queues.remove("q")
    assert not redis.exists(keys.failures("q"), keys.slots("q"))
    assert snapshot(redis).queues == ()


def test_a_long_error_keeps_its_beginning_and_its_end(client: Client, redis: VirtualRedis) -> None:
    lane = lane_of(redis)
    lane.cycle(failed(taken(client, lane), error="a" * 5000 + "\u20ac" * 5000), take=False)
    (row,) = failures(redis, "q")
    assert len(row.error.encode("utf-8", "replace")) <= LONGEST_FAILURE + 8
    assert row.error.startswith("aaa")
    assert row.error.endswith("\u20ac")


@pytest.mark.parametrize("foreign", ["not json", '{"id": 7}'])
def test_a_reply_that_cannot_be_read_is_counted_and_not_kept(
    client: Client, redis: VirtualRedis, queues: Queues, foreign: str
) -> None:
    lane = lane_of(redis)
    request = taken(client, lane)
    lane.cycle(Done(request, "failed", 1, 1, foreign, False), take=False)
    assert queues.state("q").counters["failed"] == 1
    assert failures(redis, "q") == []


def test_a_foreign_value_in_its_place_costs_the_entry_only(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    redis.set(keys.failures("q"), "mine")
    lane = lane_of(redis)
    lane.cycle(failed(taken(client, lane)), take=False)
    assert queues.state("q").counters["failed"] == 1
    assert failures(redis, "q") == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            [b"at_us", b"id", b"outcome", b"exit_code", b"attempts", b"error", b"\xff"]
        ),
        st.one_of(st.binary(max_size=30), st.sampled_from([b"failed", b"1", b"-9" * 400, b"a-1"])),
        min_size=1,
    )
)
def test_foreign_entries_are_left_out_and_never_raise(
    redis: VirtualRedis, fields: dict[bytes, bytes]
) -> None:
    redis.delete(keys.failures("q"))
    redis.xadd(keys.failures("q"), fields)
    redis.xadd(keys.failures("q"), {"at_us": "1000000", "id": "a-1", "outcome": "failed"})
    rows = failures(redis, "q")
    assert rows[0] == FailedRequest(1.0, "a-1")
    assert all(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) for row in rows)
    assert all(len(row.error) <= LONGEST_FAILURE for row in rows)


def test_the_name_of_a_queue_is_checked(redis: VirtualRedis) -> None:
    with pytest.raises(InvalidValue):
        failures(redis, "no name")
