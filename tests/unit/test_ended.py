"""Requests that ended in a queue, in a row of numbers that the scripts write."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, keys
from scaletest.broker.scripts import script
from scaletest.broker.snapshot import snapshot
from scaletest.model import Request
from scaletest.model.errors import InvalidValue
from scaletest.model.histogram import LAST_BUCKET, bucket, middle
from scaletest.model.queue_counts import (
    LONGEST_ROW,
    EndedCounts,
    added,
    counted,
    read,
    unpack,
)
from scaletest.model.record import Outcome
from tests.integration.lanes import done, lane_of
from tests.unit.virtual_redis import VirtualRedis


def test_every_request_is_counted_once_in_each_way(
    redis: VirtualRedis, queues: Queues, client: Client
) -> None:
    # given a request of each outcome that a worker tells, with the shortest and the longest times
    lane = lane_of(redis)
    buckets = ((0, LAST_BUCKET), (LAST_BUCKET, 0), (bucket(0.5), bucket(2.0)))
    client.submit([Request(client.new_id(), "q") for _ in buckets])
    for outcome, (wait, run) in zip(("succeeded", "failed", "timed_out"), buckets, strict=True):
        taken = lane.cycle(None)
        lane.cycle(
            done(taken, Outcome(outcome))._replace(wait_bucket=wait, run_bucket=run), take=False
        )
    # expect them in outcomes and histograms, the balance kept, and the row no longer than
    # documented
    (queue,) = snapshot(redis).queues
    assert queue.wait == {wait: 1 for wait, _ in buckets}
    assert queue.run == {run: 1 for _, run in buckets}
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
    assert all(slot.number >= 0 and slot.ended > 0 for slot in unpack({}, counts.slots))


def test_a_row_longer_than_any_of_ours_is_refused() -> None:
    counts = read(bytes(LONGEST_ROW))
    assert (counts.outcomes, counts.slots, counts.wait, counts.run) == ({}, (), {}, {})
    with pytest.raises(ValueError, match="at most"):
        read(bytes(LONGEST_ROW + 1))


def test_a_foreign_row_of_counts_hides_no_other_queue(redis: VirtualRedis, queues: Queues) -> None:
    queues.add("bad")
    redis.set(keys.ended("bad"), struct.pack(">q", -1))
    view = snapshot(redis)
    assert [queue.name for queue in view.queues] == ["q"]
    assert view.unreadable == (("bad", "a number of requests that ended is negative"),)
    with pytest.raises(InvalidValue, match="is negative"):
        queues.state("bad")


def test_a_queue_without_counts_has_no_ended_requests() -> None:
    assert read(None) == read(b"") == read(b"abc") == EndedCounts()
    assert added({"a": 1, "b": 2}, {"b": 3, "c": 4}) == {"a": 1, "b": 5, "c": 4}


@given(st.sampled_from(list(Outcome)), st.integers(0, LAST_BUCKET), st.integers(0, LAST_BUCKET))
def test_every_bucket_has_numbers_of_its_own(outcome: Outcome, wait: int, run: int) -> None:
    *numbers, wait_us, run_us = counted(outcome.value, wait, run)
    row = bytearray(LONGEST_ROW)
    for number in numbers:
        struct.pack_into(">q", row, 8 * int(number[1:]), 7)
    counts = read(bytes(row))
    assert (counts.outcomes, counts.slots) == ({outcome.value: 7}, ())
    assert (counts.wait, counts.run) == ({wait: 7}, {run: 7})
    assert wait_us == pytest.approx(middle(wait) * 1e6, abs=0.5)
    assert run_us == pytest.approx(middle(run) * 1e6, abs=0.5)


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
