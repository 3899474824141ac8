"""The reading end of a client's replies: one read under way, however often somebody looks."""

from __future__ import annotations

from typing import Any

import pytest
import redis.exceptions

from scaletest.broker import Client, connect
from scaletest.broker.reader import BLOCK_S, SLACK_S, Reader


def reads(redis: Any) -> int:
    """XREAD commands that the server has begun or ended."""
    blocked = int(redis.info("clients")["blocked_clients"])
    return int(redis.info("commandstats").get("cmdstat_xread", {"calls": 0})["calls"]) + blocked


def test_looking_often_asks_once_and_misses_nothing(url: str, redis: Any) -> None:
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


def test_a_stream_that_is_made_anew_is_read_on(url: str, redis: Any) -> None:
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


def test_a_server_that_stays_silent_is_away(url: str) -> None:
    now = [0.0]
    reader = Reader(connect(url), "s", clock=lambda: now[0])
    assert reader.read(0.0) == []
    now[0] = BLOCK_S + SLACK_S + 1
    with pytest.raises(redis.exceptions.TimeoutError):
        reader.read(0.0)
    # and the next read begins anew
    assert reader.read(0.0) == []
    reader.close()


def test_a_cut_read_goes_on_where_it_was(client: Client, redis: Any) -> None:
    assert client.replies(0.001) == []
    redis.client_kill_filter(_type="normal", skipme=True)
    assert client.replies(0.001) == []
    client.wake()
    assert client.replies(5.0) == []
    assert client._reader.position != "0-0"
