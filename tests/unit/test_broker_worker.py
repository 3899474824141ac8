"""A worker's conversation with Redis, on one in this process: answers that get lost, late calls,
forgotten workers.
"""

from __future__ import annotations

import logging
from unittest.mock import Mock

import pytest
from redis.exceptions import ResponseError

from scaletest.broker import Client, Queues, jobs, keys
from scaletest.broker.fast_lane import FastLane, NothingTaken, PendingCall, Taken
from scaletest.broker.heartbeat import Heartbeat
from scaletest.model import Outcome, Request
from tests.conftest import wait_for
from tests.integration.lanes import done, lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis, beats_for


def test_a_request_is_submitted_taken_finished_and_replied(
    client: Client, redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a request that waits for two seconds
    request = Request(client.new_id(), "q", ("a", "b"), 2.5)
    client.submit_one(request)
    clock.step(2.0)
    assert queues.state("q").oldest_waiting_s == 2.0
    # when a worker takes it, and finishes it three seconds later
    lane = lane_of(redis)
    taken = lane.cycle(None)
    assert jobs.decode(taken.data) == (("a", "b"), 2.5)
    assert (taken.started_us - taken.enqueued_us, queues.state("q").running) == (2_000_000, 1)
    clock.step(3.0)
    assert lane.cycle(done(taken)) is None
    # expect its reply with the time of its end, balanced books and no key of its own
    reply = wait_for(client, 1)[request.id]
    assert (reply.outcome, reply.ended_s) == (Outcome.SUCCEEDED, clock.seconds())
    state = queues.state("q")
    assert (state.waiting, state.running, state.counters["succeeded"], state.balance) == (
        0,
        0,
        1,
        0,
    )
    assert not redis.keys("rq:job:*")


def test_a_call_that_comes_late_is_refused(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    # given a worker that has moved on
    client.submit([Request(client.new_id(), "q") for _ in range(3)])
    lane = lane_of(redis)
    first = lane.cycle(None)
    lane.cycle(done(first))
    # when an older packet of its arrives, as after a broken connection
    lane._number -= 2
    with pytest.raises(ResponseError, match="STALECALL"):
        lane.cycle(None)
    assert queues.state("q").running == 1


@pytest.fixture
def line(redis: VirtualRedis, queues: Queues) -> Heartbeat:
    """The heartbeat of worker w, whose thread does not run."""
    heartbeat = Heartbeat(redis, "w", "q", interval_s=600.0)
    heartbeat._beat()
    return heartbeat


@pytest.fixture
def lane(line: Heartbeat, redis: VirtualRedis) -> FastLane:
    """Its lane, which the heartbeat watches."""
    line.lane = lane_of(redis)
    return line.lane


@pytest.fixture
def broken(lane: FastLane, monkeypatch: pytest.MonkeyPatch) -> Mock:
    """What breaks the lane's connection off."""
    break_off = Mock(return_value=True)
    monkeypatch.setattr(lane, "break_off", break_off)
    return break_off


def test_a_call_that_two_beats_find_unanswered_is_broken_off(
    line: Heartbeat, lane: FastLane, broken: Mock
) -> None:
    # another call each time, or none: the lane gets on
    for call in (
        PendingCall("1", 0.0, ""),
        PendingCall("2", 0.0, ""),
        None,
        PendingCall("3", 0.0, ""),
    ):
        lane.pending = call
        line._beat()
    assert broken.call_count == 0
    line._beat()
    assert broken.call_count == 1


def test_a_call_that_waits_for_a_request_is_broken_off_only_when_it_was_answered(
    line: Heartbeat, lane: FastLane, redis: VirtualRedis, broken: Mock
) -> None:
    lane.pending = PendingCall("1", 3600.0, "")
    for _ in range(5):
        line._beat()
    assert broken.call_count == 0
    # when Redis has answered it, expect one more beat to be waited for: the answer may be on its
    # way
    redis.hset("rq:worker:w", "call", "1")
    line._beat()
    assert broken.call_count == 0
    line._beat()
    assert broken.call_count == 1


def test_a_call_that_waits_longer_than_it_may_is_broken_off(
    line: Heartbeat, lane: FastLane, broken: Mock
) -> None:
    lane.pending = PendingCall("1", 1e-9, "")
    line._beat()
    line._beat()
    assert broken.call_count == 1


def test_the_lease_of_a_request_lives_while_its_result_is_on_its_way(
    line: Heartbeat, lane: FastLane, redis: VirtualRedis
) -> None:
    # given a result whose call has no answer yet, and a lease that is nearly over
    redis.zadd(keys.leases("q"), {"r:1:w": 1})
    lane.pending = PendingCall("1", 0.0, "r:1:w")
    line._beat()
    assert redis.zscore(keys.leases("q"), "r:1:w") == redis.zscore(keys.workers("q"), "w")
    # and none is made for what Redis has taken in
    redis.zrem(keys.leases("q"), "r:1:w")
    line._beat()
    assert not redis.exists(keys.leases("q"))


def test_a_lease_that_ends_with_its_request_is_no_loss(
    line: Heartbeat, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the program lets nobody else have its log; another test may have run it
    monkeypatch.setattr(logging.getLogger("scaletest"), "propagate", True)
    line.hold("r", 1, slow=True)
    line.settling()
    line._beat()
    assert "lost its lease" not in caplog.text
    line.hold("r", 1, slow=True)
    line._beat()
    assert "lost its lease" in caplog.text


def test_a_repeated_call_gets_no_request_that_is_not_its_own_any_more(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    # given a worker whose answer was lost, and whose request was given to another one meanwhile
    first, second = Request(client.new_id(), "q"), Request(client.new_id(), "q")
    client.submit([first, second])
    lane, other = lane_of(redis), lane_of(redis, "other")
    taken = lane.cycle(None)
    redis.zadd(keys.leases("q"), {f"{first.id}:1:w": 1})
    Heartbeat(redis, "reaper", "q", interval_s=600.0)._reap()
    again = other.cycle(None)
    assert (again.id, again.attempt) == (taken.id, 2)
    # when the call is repeated, expect nothing for it, however often
    lane._number -= 1
    assert lane._call_script(None, "1") is NothingTaken.AGAIN
    lane._number -= 1
    assert lane._call_script(None, "1") is NothingTaken.AGAIN
    assert queues.state("q").waiting == 1
    # and the next request for the next call
    following = lane.cycle(None)
    assert following.id == second.id


def test_a_worker_that_was_forgotten_beats_before_it_takes_anything(
    client: Client, redis: VirtualRedis, queues: Queues, line: Heartbeat
) -> None:
    # given a worker that was frozen while idle, and forgotten
    lane = lane_of(redis)
    redis.zadd(keys.workers("q"), {"w": 1})
    Heartbeat(redis, "reaper", "q", interval_s=600.0)._reap()
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    # when its next call arrives, or that of a connection that outlived it
    for block_s in (0.0, 0.01):
        assert lane.cycle(None, block_s=block_s) is NothingTaken.OVERDUE
    # expect the request untouched, and no key of it that would stay
    assert not redis.exists("rq:worker:w")
    assert redis.lrange("rq:queue:q", 0, -1) == [request.id.encode()]
    # and all well after a heartbeat
    line._beat()
    assert isinstance(lane.cycle(None), Taken)


def test_a_worker_whose_deadline_is_over_beats_before_it_takes_anything(
    client: Client, redis: VirtualRedis, queues: Queues, line: Heartbeat, clock: Clock
) -> None:
    # given a frozen worker that delivers, not yet forgotten
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    lane = lane_of(redis, interval_s=10.0)
    taken = lane.cycle(None)
    beats_for(clock, 20.0, Heartbeat(redis, "other", "q", interval_s=10.0)._beat)
    assert lane.cycle(done(taken)) is NothingTaken.OVERDUE
    # expect its result to count once, also when the call is repeated, and no second request
    lane._number -= 1
    assert lane.cycle(done(taken)) is NothingTaken.OVERDUE
    state = queues.state("q")
    assert (
        state.counters["succeeded"],
        state.counters.get("stale"),
        state.running,
        state.waiting,
    ) == (1, None, 0, 1)
    line._beat()
    assert isinstance(lane.cycle(None), Taken)


def test_a_lease_ends_with_the_deadline_that_heartbeats_move(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    # given a worker that finishes a request every two seconds, and beats every ten
    client.submit([Request(client.new_id(), "q") for _ in range(17)])
    lane, line = lane_of(redis, interval_s=10.0), Heartbeat(redis, "w", "q", interval_s=10.0)
    other = Heartbeat(redis, "other", "q", interval_s=10.0)
    taken = lane.cycle(None)
    for number in range(1, 16):
        beats_for(clock, 2.0, line._beat if number % 5 == 0 else other._beat, 2.0)
        taken = lane.cycle(done(taken))
        # expect its lease to last until the next beat at least, and never longer than the worker is
        # taken for alive
        lease_us = redis.zscore(keys.leases("q"), f"{taken.id}:1:w") or 0.0
        until_us = int(redis.hget("rq:worker:w", "until") or 0)
        assert clock.seconds() + 8.0 <= lease_us / 1e6 <= until_us / 1e6


def shown(line: Heartbeat, taken: Taken | None) -> None:
    """A heartbeat shows the request in RQ's registries."""
    line.hold(taken.id, taken.attempt)
    line._beat()


def test_a_late_result_leaves_what_rq_shows_of_the_attempt_that_runs(
    client: Client, redis: VirtualRedis, queues: Queues
) -> None:
    # given a worker that was frozen, and another one that runs its request again
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    frozen, other = lane_of(redis), lane_of(redis, "other")
    late, line = frozen.cycle(None), Heartbeat(redis, "other", "q", interval_s=600.0)
    shown(Heartbeat(redis, "w", "q", interval_s=600.0), late)
    redis.zadd(keys.leases("q"), {f"{request.id}:1:w": 1})
    line._reap()
    again = other.cycle(None)
    shown(line, again)
    # when the first one delivers
    frozen.cycle(done(late)._replace(registered=True))
    # expect RQ to see the attempt that runs, and nothing once that has ended
    member = f"{request.id}:2".encode()
    assert redis.zrange("rq:wip:q", 0, -1) == [member]
    assert redis.smembers("rq:worker:other:executions") == {member}
    assert redis.exists(f"rq:execution:{request.id}:2") and redis.zrange(
        f"rq:executions:{request.id}", 0, -1
    ) == [b"2"]
    other.cycle(done(again)._replace(registered=True))
    assert [
        *redis.keys("rq:execution*"),
        *redis.keys("rq:worker:*:executions"),
        *redis.keys("rq:wip:*"),
    ] == []


def test_a_queue_removed_while_a_request_runs_leaves_no_key_of_it_in_rq(
    client: Client, redis: VirtualRedis, queues: Queues, line: Heartbeat
) -> None:
    client.submit_one(Request(client.new_id(), "q"))
    taken = lane_of(redis).cycle(None)
    shown(line, taken)
    assert redis.keys("rq:execution*")
    queues.remove("q")
    # neither does the worker that still runs it bring it back
    line._beat()
    assert redis.keys("rq:execution*") == [] and redis.keys("rq:worker:*:executions") == []
