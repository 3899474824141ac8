"""Deadlines lie on a clock of their own: no outage and no step of Redis's clock ends a lease, or
keeps one.
"""

from __future__ import annotations

from typing import Any

from scaletest.broker import Client, Queues, keys
from scaletest.broker.devices import DeviceLeases
from scaletest.model import Request
from tests.conftest import wait_for
from tests.integration.lanes import done, lane_of

SHORT_S = 60.0


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
