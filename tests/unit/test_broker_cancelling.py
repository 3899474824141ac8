"""Cancelling what waits, on a Redis in this process: what is counted, and a set of ids that does
not live for long.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import SET_TTL_S, Cancellation
from scaletest.model import Request
from tests.integration.lanes import lane_of, waiting
from tests.unit.virtual_redis import Clock, VirtualRedis

T = TypeVar("T")


@pytest.fixture
def ids(client: Client) -> list[str]:
    """Thirty requests that wait."""
    names = [client.new_id() for _ in range(30)]
    client.submit([Request(name, "q") for name in names])
    return names


def test_cancelling_counts_neither_running_nor_unknown_requests(
    client: Client, redis: VirtualRedis, queues: Queues, ids: list[str]
) -> None:
    lane_of(redis).cycle(None)
    assert client.cancel("q", [*ids[:3], "nobody", ids[1]]) == 2
    assert redis.exists(keys.rq_job(ids[0]))
    state = queues.state("q")
    assert (state.waiting, state.running, state.balance) == (27, 1, 0)
    assert state.counters["client_gone"] == 2
    # of which nothing is kept, neither as a failure nor as cancelled
    assert not redis.exists(keys.failures("q"), keys.cancelled(client.name))


class Pausing:
    """Stands in for Retrying: carries every call out, and lets time pass after the one with this
    number.
    """

    def __init__(self, clock: Clock, number: int, seconds: float) -> None:
        self._clock = clock
        self._left = number
        self._seconds = seconds

    def run(self, call: Callable[[], T]) -> T:
        """Carry it out."""
        answer = call()
        if self._left == 0:
            self._clock.step(self._seconds)
        self._left -= 1
        return answer


@pytest.mark.parametrize("number", range(0, 16, 3))
def test_an_expired_set_of_cancelled_requests_is_written_again(
    redis: VirtualRedis,
    queues: Queues,
    ids: list[str],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    # given a client that is kept from its next call for longer than Redis keeps the set of what it
    # cancels
    monkeypatch.setattr("scaletest.broker.accounting.CANCEL_BATCH", 3)
    retrying = Pausing(clock, number, SET_TTL_S + 1)
    cancelling = Cancellation(redis, retrying, "c", "q", ids[::2])  # type: ignore[arg-type]
    # expect it to go on all the same
    assert cancelling.run() == 15
    assert waiting(redis) == ids[1::2]
    state = queues.state("q")
    assert (state.counters["client_gone"], state.balance) == (15, 0)


def test_the_cancelled_set_of_a_dead_client_expires(
    client: Client,
    redis: VirtualRedis,
    ids: list[str],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Cancellation, "_sweep", dies)
    with pytest.raises(KeyboardInterrupt):
        client.cancel("q", ids)
    assert redis.scard(keys.cancelled(client.name)) == len(ids) + 1
    clock.step(SET_TTL_S + 1)
    assert not redis.exists(keys.cancelled(client.name))
    assert waiting(redis) == ids
