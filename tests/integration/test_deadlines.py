"""Deadlines lie on a clock of their own: no outage and no step of Redis's clock ends a lease, or
keeps one.
"""

from __future__ import annotations

from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.devices import DeviceLeases, Slot
from scaletest.broker.heartbeat import LEASE_INTERVALS, Heartbeat, Watcher, reap
from scaletest.model import Outcome, Request
from tests.conftest import wait_for
from tests.integration.lanes import done, lane_of, set_clock

SHORT_S, LONG_S = 60.0, 600.0
LEASE = "r:1:w"


def worker(url: str, name: str, interval_s: float, queue: str = "q") -> Heartbeat:
    """A worker's heartbeat that has beaten once."""
    line = Heartbeat(connect(url), name, queue, interval_s=interval_s)
    line._beat()
    return line


def holds(line: Heartbeat, redis: Any) -> Heartbeat:
    """The worker w runs request r of queue q."""
    redis.hset("rq:job:r", "data", "")
    redis.zadd(keys.leases("q"), {LEASE: redis.zscore(keys.workers("q"), "w")})
    line.hold("r", 1)
    return line


# More of them, and what time does to leases: tests/unit/test_broker_deadlines.py
STEPS = [3600.0, -3600.0]


@pytest.mark.parametrize("seconds", STEPS)
@pytest.mark.parametrize("first", ["worker", "watcher", "client", "holder of a device"])
def test_no_lease_ends_because_the_clock_was_set_or_redis_was_away(
    url: str, redis: Any, queues: Queues, client: Client, seconds: float, first: str
) -> None:
    # given a worker with a short interval that runs a request, and one of another queue with a long
    # one
    queues.add("other")
    short = holds(worker(url, "w", SHORT_S), redis)
    long = worker(url, "slow", LONG_S, "other")
    reaper = worker(url, "reaper", SHORT_S)
    devices = DeviceLeases(redis, "node", "w", interval_s=LONG_S, nonce="n")
    assert devices.claim(["device"], 1) == Slot("device", 0)
    # when the clock is set, or Redis was away for that long, and somebody with a long interval
    # comes first
    set_clock(redis, seconds)
    if first == "worker":
        long._beat()
        long._reap()
    elif first == "watcher":
        Watcher(redis, LONG_S, 3).tick()
    elif first == "client":
        client._beat()
    else:
        assert devices.renew()
    # expect the worker's lease untouched when its own queue is reaped, and the worker known
    reaper._reap()
    assert redis.zcard(keys.leases("q")) == 1
    short._beat()
    assert "w" in queues.worker_names("q")
    state = queues.state("q")
    assert ("requeued" in state.counters, state.workers) == (False, 2)
    # and its next deadline as far away as always
    assert redis.zscore(keys.leases("q"), LEASE) == redis.zscore(keys.workers("q"), "w")
    next_s = reap(redis, "q", 3, int(SHORT_S * 1e6)).next_s
    assert next_s is not None
    assert next_s <= LEASE_INTERVALS * SHORT_S


@pytest.mark.parametrize("seconds", [0.0, *STEPS])
def test_requests_of_a_client_that_died_before_the_clock_was_set_are_dropped(
    client: Client, redis: Any, queues: Queues, seconds: float
) -> None:
    # given a request of a client that is dead, since more than its time to live
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.hincrby(f"rq:job:{request.id}", "enqueued_us", int(-3600e6))
    redis.zadd(keys.CLIENTS, {client.name: redis.zscore(keys.CLIENTS, client.name) - 3600e6})
    # when the clock is set
    redis.hincrby(f"rq:job:{request.id}", "enqueued_us", int(-seconds * 1e6))
    set_clock(redis, seconds)
    lane = lane_of(redis)
    # expect nobody to work for it
    assert lane.cycle(None) is None
    assert wait_for(client, 1)[request.id].outcome is Outcome.CLIENT_GONE
    lane.close()


def test_keys_that_make_calls_repeatable_do_not_expire_when_the_clock_is_set(
    client: Client, redis: Any, queues: Queues
) -> None:
    # given a worker and a client at work
    lane = lane_of(redis)
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    taken = lane.cycle(None)
    lane.cycle(done(taken))
    DeviceLeases(redis, "node", "w", interval_s=SHORT_S, nonce="n").claim(["device"], 1)
    # expect no time to live at what makes their calls safe to repeat, at leases, and at replies
    protecting = [
        "rq:worker:w",
        keys.client(client.name),
        keys.replies(client.name),
        keys.device("node", "device"),
    ]
    assert [redis.ttl(name) for name in protecting] == [-1] * 4
    lane.close()


def test_a_client_reads_a_stream_that_was_recreated_with_an_earlier_clock(
    client: Client, redis: Any, queues: Queues
) -> None:
    # given a client that has read an entry, from when Redis's clock was ahead
    redis.xadd(keys.replies(client.name), {"w": ""}, id="9999999999999-0")
    while client._reader.position == "0-0":
        client.replies(5.0)
    # when Redis is restarted without its data and with a clock that is behind
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.delete(keys.replies(client.name))
    client._beat()
    # expect the reply to arrive
    lane = lane_of(redis)
    lane.cycle(done(lane.cycle(None)))
    assert wait_for(client, 1)[request.id].ok
    lane.close()


def test_a_client_reads_on_after_redis_lost_its_last_second_and_its_clock_went_back(
    client: Client, redis: Any, queues: Queues
) -> None:
    # given a client that has read more than Redis remembers after a crash
    client.replies(0.001)
    client._reader._position = "9999999999999-0"
    client._beat()
    # expect what comes from now on to arrive
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    lane = lane_of(redis)
    lane.cycle(done(lane.cycle(None)))
    assert wait_for(client, 1)[request.id].ok
    lane.close()


def test_a_stream_that_is_recreated_during_a_read_raises_no_error(
    client: Client, redis: Any, queues: Queues
) -> None:
    # given a read under way
    assert client.replies(0.001) == []
    # when a reaper drops the stream, and the client's heartbeat makes it anew
    redis.delete(keys.replies(client.name))
    client._beat()
    # expect the next reads to bring what comes
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    lane = lane_of(redis)
    lane.cycle(done(lane.cycle(None)))
    assert wait_for(client, 1)[request.id].ok
    lane.close()
