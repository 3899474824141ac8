"""The reading end of a client's replies: one read under way, however often somebody looks, and
whatever Redis's clock does.
"""

from typing import Any

import pytest
import redis.exceptions

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.devices import DeviceLeases
from scaletest.broker.fast_lane import FastLane
from scaletest.broker.reply_reader import BLOCK_S, SLACK_S, Reader
from scaletest.model import Request
from tests.conftest import wait_for
from tests.integration.lanes import done


def reads(redis: Any) -> int:
    """XREAD commands that the server has begun or ended."""
    blocked = int(redis.info("clients")["blocked_clients"])
    return int(redis.info("commandstats").get("cmdstat_xread", {"calls": 0})["calls"]) + blocked


def test_short_reads_send_one_command_and_miss_no_entry(url: str, redis: Any) -> None:
    redis.config_resetstat()
    reader = Reader(connect(url), "s")
    for _ in range(20):
        assert reader.read(0.001) == []
    assert reads(redis) <= 2
    redis.xadd("s", {"a": "1"})
    redis.xadd("s", {"a": "2"})
    entries: list[Any] = []
    while len(entries) < 2:
        entries += reader.read(5.0)
    assert [fields for _, fields in entries] == [{b"a": b"1"}, {b"a": b"2"}]
    # what was read is deleted with the next read, and the answer to that is no entry
    assert reader.read(0.001) == []
    assert redis.xlen("s") == 0
    reader.close()


def test_a_stream_that_was_recreated_is_read_from_its_start(url: str, redis: Any) -> None:
    redis.xadd("s", {"a": "0"})
    reader = Reader(connect(url), "s")
    assert len(reader.read(60.0)) == 1
    assert reader.read(0.001) == []
    # when the stream is deleted while a read is under way, and made anew as a heartbeat does
    redis.delete("s")
    redis.eval("redis.call('XDEL', KEYS[1], redis.call('XADD', KEYS[1], '*', 'w', ''))", 1, "s")
    assert reader.read(0.2) == []
    # expect the next entry to be read
    redis.xadd("s", {"a": "1"})
    entries: list[Any] = []
    while not entries:
        entries = reader.read(5.0)
    assert [fields for _, fields in entries] == [{b"a": b"1"}]
    # so Redis 7.0 answers, which other servers do not
    assert reader._entries([[b"s", []]]) == []
    reader.close()


def test_a_server_that_does_not_answer_counts_as_unreachable(url: str) -> None:
    now = [0.0]
    reader = Reader(connect(url), "s", clock=lambda: now[0])
    assert reader.read(0.0) == []
    now[0] = BLOCK_S + SLACK_S + 1
    with pytest.raises(redis.exceptions.TimeoutError):
        reader.read(0.0)
    # and the next read begins anew
    assert reader.read(0.0) == []
    reader.close()


def test_a_read_whose_connection_was_cut_continues_at_the_last_entry(
    client: Client, redis: Any
) -> None:
    assert client.replies(0.001) == []
    redis.client_kill_filter(_type="normal", skipme=True)
    assert client.replies(0.001) == []
    client.wake()
    assert client.replies(5.0) == []
    assert client._reader.position != "0-0"


SHORT_S = 60.0


def test_keys_that_make_calls_repeatable_do_not_expire_when_the_clock_is_set(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    # given a worker and a client at work
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    lane.cycle(done(lane.cycle(None)))
    DeviceLeases(redis, "node", "w", interval_s=SHORT_S, nonce="n").claim(["device"], 1)
    # expect no time to live at what makes their calls safe to repeat, at leases, and at replies
    protecting = [
        "rq:worker:w",
        keys.client(client.name),
        keys.replies(client.name),
        keys.device("node", "device"),
    ]
    assert [redis.ttl(name) for name in protecting] == [-1] * 4


def test_a_client_reads_on_after_redis_lost_its_last_second_and_its_clock_went_back(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    # given a client that has read more than Redis remembers after a crash
    client.replies(0.001)
    client._reader._position = "9999999999999-0"
    client._beat()
    # expect what comes from now on to arrive
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    lane.cycle(done(lane.cycle(None)))
    assert wait_for(client, 1)[request.id].ok
