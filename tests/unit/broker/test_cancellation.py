"""What cancelling leaves, on a Redis in this process."""

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.cancellation import SET_TTL_S, Cancellation
from scaletest.model import Request
from tests.integration.lanes import lane_of, waiting
from tests.unit.virtual_redis import Clock, VirtualRedis


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
