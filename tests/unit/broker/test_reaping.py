"""What a watcher drops of clients that are dead, on a Redis in this process."""

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.client import CLIENT_TTL_S
from scaletest.broker.reaping import CHECK_BATCH, Watcher
from scaletest.model import Outcome, Request
from tests.conftest import wait_for
from tests.integration.lanes import abandon, waiting
from tests.unit.virtual_redis import Clock, VirtualRedis, beats_for


@pytest.fixture
def watcher(redis: VirtualRedis, queues: Queues) -> Watcher:
    """The exporter's watcher."""
    return Watcher(redis, 5.0, 3)


def test_requests_of_a_dead_client_are_dropped_when_its_time_to_live_is_over(
    client: Client, redis: VirtualRedis, queues: Queues, clock: Clock, watcher: Watcher
) -> None:
    # given a client that dies, and one that lives
    dead = Client(redis, name="dead")
    dead.submit([Request(dead.new_id(), "q") for _ in range(3)])
    living = client.new_id()
    client.submit_one(Request(living, "q"))
    # when somebody watches, a little less and then longer than a client may be silent
    beats_for(clock, CLIENT_TTL_S - 4, lambda: (client._beat(), watcher.tick()))
    assert queues.state("q").waiting == 4
    beats_for(clock, 8, lambda: (client._beat(), watcher.tick()))
    # expect what is left to be the living one's, and the other to be told, if it was only frozen
    assert waiting(redis) == [living]
    assert {reply.outcome for reply in wait_for(dead, 3).values()} == {Outcome.CLIENT_GONE}
    state = queues.state("q")
    assert (state.counters["client_gone"], state.balance) == (3, 0)


def test_requests_of_a_client_that_left_wait_for_its_time_to_live(
    redis: VirtualRedis, queues: Queues, clock: Clock, watcher: Watcher
) -> None:
    # given a client that said goodbye after it submitted a request
    with Client(redis) as left:
        left.submit_one(Request(left.new_id(), "q"))
    beats_for(clock, CLIENT_TTL_S - 4, watcher.tick)
    assert queues.state("q").waiting == 1
    beats_for(clock, 8, watcher.tick)
    state = queues.state("q")
    assert (state.waiting, state.counters["client_gone"], state.balance) == (0, 1, 0)


def test_the_order_of_what_stays_is_kept(
    redis: VirtualRedis, queues: Queues, watcher: Watcher
) -> None:
    # given requests of a living and a dead client in turns, over two pieces of the queue
    redis.zadd(keys.CLIENTS, {"alive": 9e18})
    staying = []
    for number in range(CHECK_BATCH + CHECK_BATCH // 2):
        abandon(redis, f"dead-{number}")
        if number % 3 == 0:
            staying.append(f"alive-{number}")
            abandon(redis, staying[-1], client="alive")
    watcher.tick()
    assert waiting(redis) == staying
    state = queues.state("q")
    assert (state.counters["client_gone"], state.balance) == (CHECK_BATCH + CHECK_BATCH // 2, 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"reply_to": "a b"},
        {"enqueued_us": "soon"},
        {"client_ttl_us": "1" * 18},
        {"enqueued_us": ""},
        {"client_ttl_us": ""},
    ],
)
def test_jobs_that_scaletest_did_not_submit_are_left_to_the_workers(
    fields: dict[str, str], redis: VirtualRedis, queues: Queues, watcher: Watcher
) -> None:
    abandon(redis, "odd")
    redis.hset(keys.rq_job("odd"), mapping=fields)
    redis.rpush(keys.rq_queue("q"), "no job", "nothing")
    redis.set(keys.rq_job("text"), "text")
    redis.rpush(keys.rq_queue("q"), "text")
    watcher.tick()
    assert waiting(redis) == ["odd", "no job", "nothing", "text"]
    assert "client_gone" not in queues.state("q").counters


@pytest.mark.parametrize("seconds", [60.0, 3600.0, 1e9, -3600.0])
def test_nothing_is_dropped_right_after_an_outage(
    client: Client, redis: VirtualRedis, clock: Clock, watcher: Watcher, seconds: float
) -> None:
    # given a client that could not beat, since Redis was away or its clock was set
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    clock.step(seconds)
    # when the watcher comes before the client, for some time
    beats_for(clock, CLIENT_TTL_S / 2, watcher.tick)
    assert waiting(redis) == [request.id]
    client._beat()
    beats_for(clock, CLIENT_TTL_S - 4, watcher.tick)
    assert waiting(redis) == [request.id]
