"""A worker's conversation with Redis, on one in this process: answers that get lost, late calls,
forgotten workers. Deadlines with a clock of Redis that the test sets: leases, heartbeats, dead
workers, outages, steps of the clock.
"""

import logging
import time
from typing import Any

import pytest
from redis.exceptions import ResponseError
from rq.registry import StartedJobRegistry
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, jobs, keys
from scaletest.broker.devices import DeviceLeases, Slot
from scaletest.broker.fast_lane import FastLane, NothingTaken, TakenRequest
from scaletest.broker.heartbeat import (
    DEFAULT_INTERVAL_S,
    LEASE_INTERVALS,
    LONGEST_TICK_S,
    MAX_ATTEMPTS,
    Heartbeat,
)
from scaletest.broker.reaping import Watcher, reap
from scaletest.broker.retrying import Retrying
from scaletest.model import Outcome, Reason, Request
from tests.conftest import eventually, wait_for
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
    lane.cycle(done(lane.cycle(None)))
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


def test_the_lease_of_a_request_lives_while_its_result_is_on_its_way(
    line: Heartbeat, lane: FastLane, redis: VirtualRedis
) -> None:
    # given a result whose call has no answer yet, and a lease that is nearly over
    redis.zadd(keys.leases("q"), {"r:1:w": 1})
    lane.delivering = "r:1:w"
    line._beat()
    assert redis.zscore(keys.leases("q"), "r:1:w") == redis.zscore(keys.workers("q"), "w")
    # and none is made for what Redis has taken in
    redis.zrem(keys.leases("q"), "r:1:w")
    line._beat()
    assert not redis.exists(keys.leases("q"))


def test_a_lost_lease_is_logged(
    line: Heartbeat, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the program lets nobody else have its log; another test may have run it
    monkeypatch.setattr(logging.getLogger("scaletest"), "propagate", True)
    line.note_start("r", 1, by_rq=True)
    line._beat()
    assert "lost its lease on request r" in caplog.text


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
    assert lane.cycle(None).id == second.id


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
    assert isinstance(lane.cycle(None), TakenRequest)


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
    assert isinstance(lane.cycle(None), TakenRequest)


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


def shown(line: Heartbeat, taken: TakenRequest | None) -> None:
    """A heartbeat shows the request in RQ's registries."""
    line.note_start(taken.id, taken.attempt)
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


SHORT_S, LONG_S = 60.0, 600.0
# Outages, and steps of Redis's clock in both directions.
STEPS = [300.0, 3600.0, 1e9, -300.0, -3600.0, -1e9]
LEASE = "r:1:w"


def worker(redis: Any, name: str, interval_s: float = SHORT_S, queue: str = "q") -> Heartbeat:
    """A worker's heartbeat that has beaten once."""
    line = Heartbeat(redis, name, queue, interval_s=interval_s)
    line._beat()
    return line


def holds(line: Heartbeat, redis: Any) -> Heartbeat:
    """The worker w runs request r of queue q."""
    redis.hset("rq:job:r", "data", "")
    redis.zadd(keys.leases("q"), {LEASE: redis.zscore(keys.workers("q"), "w")})
    line.note_start("r", 1)
    return line


def comes(line: Heartbeat) -> None:
    """One turn of a living worker."""
    line._beat()
    if line._has_turn:
        line._reap()


@pytest.mark.parametrize("seconds", STEPS)
@pytest.mark.parametrize("first", ["worker", "watcher", "client", "holder of a device"])
def test_no_lease_ends_while_no_worker_could_send_heartbeats(
    redis: VirtualRedis, queues: Queues, client: Client, clock: Clock, seconds: float, first: str
) -> None:
    # given a worker with a short interval that runs a request, and one of another queue with a long
    # one
    queues.add("other")
    short = holds(worker(redis, "w"), redis)
    long = worker(redis, "slow", LONG_S, "other")
    reaper = worker(redis, "reaper")
    devices = DeviceLeases(redis, "node", "w", interval_s=LONG_S, nonce="n")
    assert devices.claim(["device"], 1) == Slot("device", 0)
    # when the clock is set, or Redis was away for that long, and somebody with a long interval
    # comes first
    clock.step(seconds)
    comers = {
        "worker": lambda: comes(long),
        "watcher": Watcher(redis, LONG_S, 3).tick,
        "client": client._beat,
        "holder of a device": devices.renew,
    }
    comers[first]()
    # expect the worker's lease untouched when its own queue is reaped, and the worker known
    reaper._reap()
    assert redis.zcard(keys.leases("q")) == 1
    short._beat()
    assert "w" in queues.worker_names("q")
    state = queues.state("q")
    assert ("requeued" in state.counters, state.workers) == (False, 2)
    # and its next deadline as far away as always
    assert reap(redis, "q", 3, int(SHORT_S * 1e6)) == pytest.approx(
        LEASE_INTERVALS * SHORT_S, abs=1e-6
    )
    assert devices.renew()


@pytest.mark.parametrize("seconds", STEPS)
def test_a_dead_workers_lease_lasts_no_longer_than_its_own_interval_says(
    redis: VirtualRedis, queues: Queues, clock: Clock, seconds: float
) -> None:
    # given a worker of a long interval that was there once, and one of a short interval that dies
    worker(redis, "stopped", LONG_S).forget()
    holds(worker(redis, "w"), redis)
    # when the clock is set meanwhile
    clock.step(seconds)
    # expect no more than the dead one's own lease until its request goes back, and no less than
    # half of it
    next_s = reap(redis, "q", 3, int(SHORT_S * 1e6))
    assert next_s is not None
    assert LEASE_INTERVALS * SHORT_S / 2 < next_s <= LEASE_INTERVALS * SHORT_S
    # and that it does go back then, when somebody beats
    living = worker(redis, "living")
    beats_for(clock, next_s - 4, lambda: comes(living))
    assert queues.state("q").running == 1
    beats_for(clock, 8.0, lambda: comes(living))
    assert (queues.state("q").running, redis.lrange("rq:queue:q", 0, -1)) == (0, [b"r"])


def test_one_slow_worker_outlives_a_dead_one_with_a_short_interval(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a dead worker with a short interval, and nobody else than one that beats more rarely
    # than that
    holds(worker(redis, "w"), redis)
    slow = worker(redis, "slow", LONG_S)
    # when that one beats for a while
    beats = 0
    while redis.zcard(keys.leases("q")):
        clock.step(LONG_S / 2)
        comes(slow)
        beats += 1
    # expect the request back: each beat ended a quarter of the short interval, of which a lease has
    # 1.8
    assert beats == 8
    assert queues.state("q").waiting == 1


def test_heartbeats_in_time_do_not_stop_the_clock_of_deadlines(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a dead worker and a living one of the same interval, which beats twice an interval
    holds(worker(redis, "w"), redis)
    living = worker(redis, "living")
    beats_for(clock, 1.5 * SHORT_S, lambda: comes(living), every_s=SHORT_S / 2)
    assert queues.state("q").running == 1
    # expect the dead one's lease to end with the fourth of these beats
    beats_for(clock, 0.5 * SHORT_S, lambda: comes(living), every_s=SHORT_S / 2)
    assert queues.state("q").running == 0


def test_one_worker_of_a_queue_reaps_a_period(
    redis: VirtualRedis, queues: Queues, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a hundred workers of one queue, whose beats are spread over a tick, and one of another
    # queue
    queues.add("other")
    lines = [Heartbeat(redis, f"w{number}", "q") for number in range(100)]
    other = Heartbeat(redis, "other", "other")
    reaped: list[str] = []

    def counted(client: Any, queue: str, *arguments: int) -> float | None:
        reaped.append(queue)
        return reap(client, queue, *arguments)

    monkeypatch.setattr("scaletest.broker.heartbeat.reap", counted)
    # when each beats ten times
    periods = 10
    for _ in range(periods):
        comes(other)
        for line in lines:
            clock.step(LONGEST_TICK_S / len(lines))
            comes(line)
    # expect each queue to be reaped at least once a tick, and hardly more often, however many
    # workers it has
    assert periods <= reaped.count("q") <= 1.5 * periods
    assert reaped.count("other") == periods


@pytest.mark.parametrize("living", [1, 2, 7])
def test_a_dead_workers_request_goes_back_though_the_reaper_died_as_well(
    redis: VirtualRedis, queues: Queues, clock: Clock, living: int
) -> None:
    # given a worker that runs a request, and some that wait for some
    busy = Heartbeat(redis, "w", "q")
    busy._beat()
    holds(busy, redis)
    lines = [Heartbeat(redis, f"w{number}", "q") for number in range(living)]
    for line in lines:
        comes(line)
    # when it dies, and so does each that has the turn to reap before it does so, until the lease is
    # over
    clock.step(0.1)
    lease_s, waited_s = LEASE_INTERVALS * DEFAULT_INTERVAL_S, 0.1
    number = living
    while redis.zcard(keys.leases("q")):
        clock.step(LONGEST_TICK_S / living)
        waited_s += LONGEST_TICK_S / living
        line = lines.pop(0)
        line._beat()
        if line._has_turn and waited_s < lease_s:
            line = Heartbeat(redis, f"w{number}", "q")
            number += 1
        elif line._has_turn:
            line._reap()
        lines.append(line)
        assert waited_s < 15.0
    # expect the request to wait again, half an interval after its lease at the latest
    assert redis.lrange("rq:queue:q", 0, -1) == [b"r"]
    assert lease_s < waited_s <= lease_s + LONGEST_TICK_S + 0.1


def test_the_reaper_runs_again_when_the_next_lease_ends(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a dead worker's lease that ends soon, and two that reap
    holds(worker(redis, "w", DEFAULT_INTERVAL_S), redis)
    first, second = Heartbeat(redis, "first", "q"), Heartbeat(redis, "second", "q")
    beats_for(clock, LEASE_INTERVALS * DEFAULT_INTERVAL_S - 2.0, lambda: comes(first), every_s=1.0)
    clock.step(1.0)
    first._beat()
    assert first._has_turn
    left_s = first._reap()
    # expect the one with the turn to come at that moment, and the other at its own time
    second._beat()
    assert not second._has_turn
    assert 0.0 < left_s < LONGEST_TICK_S
    clock.step(left_s)
    comes(first)
    assert redis.zcard(keys.leases("q")) == 0


def test_foreign_data_under_the_key_of_reap_turns_stops_no_worker(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    holds(worker(redis, "w", DEFAULT_INTERVAL_S), redis)
    living = Heartbeat(redis, "living", "q")
    for foreign in ("x", "1e300", "-1"):
        redis.set(keys.reaps("q"), foreign)
        living._beat()
        assert living._has_turn
        living._reap()
    redis.delete(keys.reaps("q"))
    redis.rpush(keys.reaps("q"), "x")
    beats_for(
        clock, LEASE_INTERVALS * DEFAULT_INTERVAL_S, lambda: comes(living), every_s=LONGEST_TICK_S
    )
    assert redis.zcard(keys.leases("q")) == 0


def test_a_heartbeat_tells_all_details_also_after_redis_lost_them(
    redis: VirtualRedis, queues: Queues
) -> None:
    line = Heartbeat(redis, "w", "q", details=lambda: {"pod": "pod-1", "successful_job_count": 1})
    line._beat()
    redis.flushall()
    line._beat()
    assert redis.hmget(keys.rq_worker("w"), "pod", "successful_job_count") == [b"pod-1", b"1"]


@pytest.mark.parametrize("years", [-5, 0, 5])
def test_stock_maintenance_fails_no_running_request_after_a_step_of_redis_clock(
    redis: VirtualRedis, queues: Queues, clock: Clock, years: int
) -> None:
    # given a request that runs, shown at a heartbeat while Redis's clock is years from ours
    clock.step(time.time() - clock.seconds() + years * 365 * 86400)
    holds(worker(redis, "w"), redis)._beat()
    registry = StartedJobRegistry("q", connection=redis, serializer=JSONSerializer)
    assert registry.get_job_ids(cleanup=False) == ["r"]
    # when RQ cleans the registry by its own clock, expect the request to stay as it was
    registry.cleanup()
    assert redis.hget("rq:job:r", "status") != b"failed"
    assert registry.get_job_ids(cleanup=False) == ["r"]


def test_a_worker_reaps_in_its_turn_although_it_cannot_renew_its_devices(
    redis: VirtualRedis, queues: Queues
) -> None:
    # given a dead worker's lease, and a worker that has the turn to reap and meets a foreign key
    # among its devices
    redis.zadd(keys.workers("q"), {"dead": 1})
    renewals = []

    def renew() -> None:
        renewals.append(1)
        raise ResponseError("WRONGTYPE")

    line = Heartbeat(redis, "w", "q", renew=renew)
    line.start()
    try:
        eventually(lambda: renewals and redis.zscore(keys.workers("q"), "dead") is None)
    finally:
        line.stop()


def test_a_worker_that_beats_keeps_its_request_and_a_dead_one_is_forgotten(
    client: Client, redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given two workers that run a request each, of which one dies
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    lines = {name: worker(redis, name) for name in ("living", "dead")}
    lanes = {name: FastLane(redis, name, "q", SHORT_S, Retrying("test")) for name in lines}
    taken = {name: lane.cycle(None) for name, lane in lanes.items()}
    for name, line in lines.items():
        line.note_start(taken[name].id, 1)
    # when the living one beats for longer than a lease lives
    beats_for(
        clock, LEASE_INTERVALS * SHORT_S + 1, lambda: (client._beat(), comes(lines["living"]))
    )
    # expect it to have its request still, and the other one's request to wait, first of all
    state = queues.state("q")
    assert (state.running, state.waiting, state.workers, state.counters["requeued"]) == (1, 1, 1, 1)
    assert redis.lindex("rq:queue:q", 0) == taken["dead"].id.encode()
    assert not redis.exists("rq:worker:dead")
    # and what the dead one still delivers, if it was only frozen, to count as long as nobody took
    # it since
    assert lanes["dead"].cycle(done(taken["dead"])) is NothingTaken.OVERDUE
    assert queues.state("q").waiting == 0
    assert lanes["living"].cycle(done(taken["living"])) is None
    state = queues.state("q")
    assert (state.counters["succeeded"], state.counters.get("stale"), state.balance) == (2, None, 0)


def test_a_request_that_kills_its_workers_fails_as_lost(
    client: Client, redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a request whose worker dies, each time
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    watcher = Watcher(redis, SHORT_S, MAX_ATTEMPTS)
    for number in range(MAX_ATTEMPTS):
        assert queues.state("q").waiting == 1
        taken = lane_of(redis, f"victim-{number}", SHORT_S).cycle(None)
        assert isinstance(taken, TakenRequest) and taken.attempt == number + 1
        beats_for(clock, LEASE_INTERVALS * SHORT_S + 1, lambda: (client._beat(), watcher.tick()))
    # expect a reply that names them, and no further attempt
    reply = wait_for(client, 1)[request.id]
    assert (reply.outcome, reply.reason, reply.attempts) == (
        Outcome.FAILED,
        Reason.LOST,
        MAX_ATTEMPTS,
    )
    assert reply.error == "lost 3 times, by victim-0, victim-1, victim-2"
    counters = queues.state("q").counters
    assert (counters["lost"], counters["requeued"], queues.state("q").balance) == (
        1,
        MAX_ATTEMPTS - 1,
        0,
    )
    assert queues.state("q").workers == 0


def test_a_client_that_is_gone_for_long_leaves_no_keys(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a client that died before it read a reply
    dead = Client(redis, name="dead")
    dead.submit_one(Request(dead.new_id(), "q"))
    lane = lane_of(redis, interval_s=SHORT_S)
    lane.cycle(done(lane.cycle(None)))
    living = worker(redis, "w")
    # when its deadline is over, expect its replies to be kept for ten minutes: it may only be
    # frozen
    beats_for(clock, 600, lambda: comes(living))
    assert redis.xlen(keys.replies("dead")) == 1
    # and then nothing of it to be left
    beats_for(clock, 120, lambda: comes(living))
    assert not redis.keys("scaletest:*dead*")
    assert redis.zscore(keys.CLIENTS, "dead") is None


@pytest.mark.parametrize("seconds", [0.0, *STEPS])
def test_nobody_works_for_a_client_that_died_before_the_clock_was_set(
    redis: VirtualRedis, queues: Queues, clock: Clock, seconds: float
) -> None:
    # given a request of a client that died, since when somebody beat for more than its time to live
    dead = Client(redis, name="dead")
    dead.submit_one(Request(dead.new_id(), "q"))
    living = worker(redis, "w")
    beats_for(clock, 120, lambda: comes(living))
    # when the clock is set
    clock.step(seconds)
    # expect nobody to work for it
    assert lane_of(redis).cycle(None) is None
    assert wait_for(dead, 1)["dead-1"].outcome is Outcome.CLIENT_GONE
    assert queues.state("q").counters["client_gone"] == 1


def test_readers_see_no_workers_after_the_last_lease_of_a_queue_ended(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    # given a worker that died, and nobody who beats
    worker(redis, "w")
    assert (queues.worker_names("q"), queues.state("q").workers) == (["w"], 1)
    clock.step(LEASE_INTERVALS * SHORT_S - 1)
    assert (queues.worker_names("q"), queues.state("q").workers) == (["w"], 1)
    clock.step(2)
    assert (queues.worker_names("q"), queues.state("q").workers) == ([], 0)
