"""Requests that ended in a queue, on a Redis in this process: their counts, in a row of numbers
that the scripts write, and the last failures.
"""

import json
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import Accounting
from scaletest.broker.failures import FailedRequest, last_failures
from scaletest.broker.fast_lane import FastLane, FinishedRequest, TakenRequest
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import LONGEST_FAILURE, MOST_FAILURES, script
from scaletest.broker.snapshot import read_snapshot
from scaletest.model import Outcome, Request
from scaletest.model.errors import InvalidValue
from scaletest.model.histogram import LONGEST_S, bucket_of
from scaletest.model.queue_counts import LONGEST_ROW, EndedCounts, add_counts, count_arguments, read
from scaletest.model.time_slots import unpack_slots
from tests.integration.lanes import done, lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis


def test_every_request_is_counted_once_in_each_way(
    redis: VirtualRedis, queues: Queues, client: Client
) -> None:
    # given a request of each outcome that a worker tells, with the shortest and the longest times
    lane = lane_of(redis)
    times = ((0.0, 1e9), (1e9, 0.0), (0.5, 2.0))
    client.submit([Request(client.new_id(), "q") for _ in times])
    for outcome, (wait_s, run_s) in zip(("succeeded", "failed", "timed_out"), times, strict=True):
        taken = lane.cycle(None)
        finished = done(taken, Outcome(outcome))._replace(wait_s=wait_s, run_s=run_s)
        lane.cycle(finished, take=False)
    # expect them in outcomes and histograms, the balance kept, and the row no longer than
    # documented
    (queue,) = read_snapshot(redis).queues
    assert queue.ended.wait == {bucket_of(wait_s): 1 for wait_s, _ in times}
    assert queue.ended.run == {bucket_of(run_s): 1 for _, run_s in times}
    assert sum(slot.failed for slot in queue.slots) == 2
    state = queues.state("q")
    assert (state.counters["timed_out"], state.balance) == (1, 0)
    assert redis.strlen(keys.ended("q")) == LONGEST_ROW


@given(st.binary(max_size=9000))
def test_a_row_of_anything_is_read_or_refused(row: bytes) -> None:
    try:
        counts = read(row)
    except ValueError:
        return
    assert min([0, *counts.outcomes.values(), *counts.wait.values(), *counts.run.values()]) == 0
    assert all(slot.number >= 0 and slot.ended > 0 for slot in unpack_slots({}, counts.slots))


def test_a_row_longer_than_any_of_ours_is_refused() -> None:
    counts = read(bytes(LONGEST_ROW))
    assert (counts.outcomes, counts.slots, counts.wait, counts.run) == ({}, (), {}, {})
    with pytest.raises(ValueError, match="at most"):
        read(bytes(LONGEST_ROW + 1))


def test_failures_that_an_older_slot_left_are_at_most_what_ended() -> None:
    row = bytearray(LONGEST_ROW)
    for number, count in ((100, 170_000_000), (200, 3), (700, 40)):
        struct.pack_into(">q", row, 8 * number, count)
    (slot,) = read(bytes(row)).slots
    assert (slot.ended, slot.failed) == (3, 3)


def test_a_foreign_row_of_counts_hides_no_other_queue(redis: VirtualRedis, queues: Queues) -> None:
    queues.add("bad")
    redis.set(keys.ended("bad"), struct.pack(">q", -1))
    view = read_snapshot(redis)
    assert [queue.name for queue in view.queues] == ["q"]
    assert view.unreadable == (("bad", "a number of requests that ended is negative"),)
    with pytest.raises(InvalidValue, match="is negative"):
        queues.state("bad")


def test_a_queue_without_counts_has_no_ended_requests() -> None:
    assert read(None) == read(b"") == read(b"abc") == EndedCounts()
    assert add_counts({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}


@given(st.sampled_from(list(Outcome)), st.floats(0, LONGEST_S), st.floats(0, LONGEST_S))
def test_every_bucket_has_numbers_of_its_own(outcome: Outcome, wait_s: float, run_s: float) -> None:
    *numbers, wait_us, run_us = count_arguments(outcome.value, wait_s, run_s)
    row = bytearray(LONGEST_ROW)
    for number in numbers:
        struct.pack_into(">q", row, 8 * int(number[1:]), 7)
    counts = read(bytes(row))
    assert (counts.outcomes, counts.slots) == ({outcome.value: 7}, ())
    assert (counts.wait, counts.run) == ({bucket_of(wait_s): 7}, {bucket_of(run_s): 7})
    # times are kept to the microsecond: a mean is not below the truth
    assert wait_us == pytest.approx(wait_s * 1e6, abs=0.5)
    assert run_us == pytest.approx(run_s * 1e6, abs=0.5)


def test_a_row_longer_than_ours_is_not_read_from_redis(redis: VirtualRedis, queues: Queues) -> None:
    # given a queue whose row somebody else made long, beside another queue
    queues.add("other")
    redis.setrange(keys.ended("q"), LONGEST_ROW, b"x")
    # expect its size and no byte of it, and the other queue read
    reason = f"{keys.ended('q')} has {LONGEST_ROW + 1} bytes, more than scaletest writes"
    _, _, *rows = script("metrics")(redis, [keys.QUEUES, keys.CLIENTS], ["q", "other"])
    assert rows[0] == [b"q", reason.encode()]
    assert len(rows[1]) > 2
    with pytest.raises(InvalidValue, match=reason):
        queues.state("q")


def test_counters_with_too_many_fields_are_not_read_from_redis(
    redis: VirtualRedis, queues: Queues
) -> None:
    redis.hset(keys.counters("q"), mapping={str(number): 1 for number in range(2001)})
    with pytest.raises(InvalidValue, match=r"has 2001 fields, more than scaletest writes"):
        queues.state("q")


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


@pytest.fixture
def lane(redis: VirtualRedis, queues: Queues) -> FastLane:
    return lane_of(redis)


def failed(taken: TakenRequest, **changes: Any) -> FinishedRequest:
    """A finished request that failed as REPLY says."""
    reply = {**REPLY, "id": taken.id, **changes}
    return FinishedRequest(taken, reply["outcome"], 1, 1, json.dumps(reply), False)


def taken(client: Client, lane: FastLane) -> TakenRequest:
    """The next request, in a worker's lane."""
    client.submit_one(Request(client.new_id(), "q"))
    request = lane.cycle(None)
    assert isinstance(request, TakenRequest)
    return request


def test_a_failed_request_is_kept_with_what_its_reply_says(
    client: Client, redis: VirtualRedis, clock: Clock, lane: FastLane
) -> None:
    request = taken(client, lane)
    clock.step(5.0)
    lane.cycle(failed(request), take=False)
    assert last_failures(redis, "q") == [
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
    row = last_failures(redis, "q")[0].to_dict()
    assert row["pattern"] == "[AVHWDeviceContext @ <address>] Failed to initialise VAAPI"
    assert row["exit_code"] == 234


def test_a_result_that_came_too_late_is_neither_kept_nor_in_a_slot(
    client: Client, redis: VirtualRedis, lane: FastLane
) -> None:
    request = taken(client, lane)
    redis.delete(keys.leases("q"))
    lane.cycle(failed(request), take=False)
    assert last_failures(redis, "q") == []
    assert [(slot.ended, slot.failed) for slot in read_snapshot(redis).queues[0].slots] == [(0, 0)]


def test_the_last_hundred_are_kept_the_newest_first(
    client: Client, redis: VirtualRedis, lane: FastLane
) -> None:
    ids = []
    for _ in range(MOST_FAILURES + 7):
        request = taken(client, lane)
        ids.append(request.id)
        lane.cycle(failed(request), take=False)
    assert [row.id for row in last_failures(redis, "q")] == ids[: -MOST_FAILURES - 1 : -1]
    assert redis.xlen(keys.failures("q")) == MOST_FAILURES


@pytest.mark.usefixtures("queues")
def test_a_job_that_nobody_may_execute_is_kept(redis: VirtualRedis) -> None:
    # given a job without data in the queue, and one that a worker refuses
    redis.hset(keys.rq_job("empty"), mapping={"origin": "q"})
    redis.hset(keys.rq_job("refused"), mapping={"origin": "q", "data": "x"})
    redis.rpush(keys.rq_queue("q"), "empty", "refused")
    refused = lane_of(redis).cycle(None)
    Accounting(redis, Retrying("test"), "q", "w").poison(refused, "function 'x' is not allowed")
    assert [(row.id, row.reason, row.error) for row in last_failures(redis, "q")] == [
        ("refused", "poison", "function 'x' is not allowed"),
        ("empty", "poison", "it has no data"),
    ]


@pytest.mark.usefixtures("queues")
def test_a_request_that_rq_ran_is_kept_once_and_only_when_it_failed(redis: VirtualRedis) -> None:
    accounting = Accounting(redis, Retrying("test"), "q", "w")
    for name, outcome in (("good", "succeeded"), ("bad", "failed"), ("bad", "failed")):
        reply = json.dumps({**REPLY, "id": name, "outcome": outcome})
        accounting.settle(TakenRequest(name, 0, 0), outcome, 0.1, 0.1, reply)
    assert [row.id for row in last_failures(redis, "q")] == ["bad"]


def test_a_removed_queue_leaves_neither_failures_nor_slots(
    client: Client, redis: VirtualRedis, queues: Queues, lane: FastLane
) -> None:
    lane.cycle(failed(taken(client, lane)), take=False)
    assert redis.exists(keys.failures("q"), keys.slots("q")) == 2
    queues.remove("q")
    assert not redis.exists(keys.failures("q"), keys.slots("q"))
    assert read_snapshot(redis).queues == ()


def test_a_long_error_keeps_its_beginning_and_its_end(
    client: Client, redis: VirtualRedis, lane: FastLane
) -> None:
    lane.cycle(failed(taken(client, lane), error="a" * 5000 + "\u20ac" * 5000), take=False)
    (row,) = last_failures(redis, "q")
    assert len(row.error.encode("utf-8", "replace")) <= LONGEST_FAILURE + 8
    assert row.error.startswith("aaa")
    assert row.error.endswith("\u20ac")


@pytest.mark.parametrize("foreign", ["not json", '{"id": 7}'])
def test_a_reply_that_cannot_be_read_is_counted_and_not_kept(
    client: Client, redis: VirtualRedis, queues: Queues, foreign: str, lane: FastLane
) -> None:
    request = taken(client, lane)
    lane.cycle(FinishedRequest(request, "failed", 1, 1, foreign, False), take=False)
    assert queues.state("q").counters["failed"] == 1
    assert last_failures(redis, "q") == []


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
    rows = last_failures(redis, "q")
    assert rows[0] == FailedRequest(1.0, "a-1")
    assert all(row.outcome in (Outcome.FAILED, Outcome.TIMED_OUT) for row in rows)
    assert all(len(row.error) <= LONGEST_FAILURE for row in rows)


def test_the_name_of_a_queue_is_checked(redis: VirtualRedis) -> None:
    with pytest.raises(InvalidValue):
        last_failures(redis, "no name")
