"""Cancelling many requests: in calls that are short, whatever else happens to the queue between two
of them.
"""

import random
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.cancellation import CANCEL_BATCH, Cancellation
from scaletest.broker.fast_lane import TakenRequest
from scaletest.broker.scripts import Script, script
from scaletest.model import Request
from tests.conftest import check_books
from tests.integration.lanes import done, lane_of, waiting

T = TypeVar("T")
LIST = "rq:queue:q"


class Between:
    """Stands in for Retrying: carries every call out, and does something else to Redis after
    each.
    """

    def __init__(self, disturb: Callable[[], object]) -> None:
        self._disturb = disturb

    def run(self, call: Callable[[], T]) -> T:
        answer = call()
        self._disturb()
        return answer


def fill(redis: Any, ids: list[str]) -> None:
    """These requests wait, as if they had been submitted."""
    pipe = redis.pipeline()
    for name in ids:
        pipe.rpush(LIST, name)
        pipe.hset(f"rq:job:{name}", mapping={"data": "x", "enqueued_us": 1})
    pipe.hincrby(keys.counters("q"), "submitted", len(ids))
    pipe.execute()


def cancellation(
    redis: Any, ids: list[str], disturb: Callable[[], object] = bool, client: str = "c"
) -> Cancellation:
    return Cancellation(redis, Between(disturb), client, "q", ids)  # type: ignore[arg-type]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three entries a call, so that a list of a few dozen has many stretches."""
    monkeypatch.setattr("scaletest.broker.cancellation.CANCEL_BATCH", 3)
    yield


def test_no_call_handles_more_than_a_batch(
    client: Client, redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    # given thousands that wait, every second of them to be cancelled
    ids = [client.new_id() for _ in range(5 * CANCEL_BATCH)]
    client.submit([Request(name, "q") for name in ids])
    rows: list[tuple[int, int]] = []
    real = Script.__call__

    def measured(self: Script, connection: Any, names: list[str], arguments: list[Any]) -> Any:
        before = redis.llen(LIST)
        answer = real(self, connection, names, arguments)
        rows.append((len(arguments), before - redis.llen(LIST)))
        return answer

    monkeypatch.setattr(Script, "__call__", measured)
    # when they are cancelled
    redis.config_resetstat()
    assert client.cancel("q", ids[::2]) == len(ids) / 2
    # expect small calls, none of which searches the list more than once
    assert max(arguments for arguments, _ in rows) <= 3
    assert max(removed for _, removed in rows) <= CANCEL_BATCH
    assert redis.info("commandstats")["cmdstat_lrem"]["calls"] <= len(rows)
    assert waiting(redis) == ids[1::2]
    check_books(queues, client_gone=len(ids) / 2)
    assert not redis.exists(keys.cancelled(client.name))


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_a_second_client_cancels_at_the_same_time(
    redis: Any, queues: Queues, short: None, patience: int
) -> None:
    # given two clients whose requests alternate, and one that waits behind them
    mine, theirs = [f"a-{n}" for n in range(60)], [f"b-{n}" for n in range(60)]
    fill(redis, [name for pair in zip(mine, theirs, strict=True) for name in pair] + ["other"])
    calls = iter(range(1000))
    other = Cancellation(redis, Between(bool), "b", "q", theirs)  # type: ignore[arg-type]

    # when the second cancels a part between the first's calls
    def disturb() -> None:
        if next(calls) % patience == 0:
            other._ids = theirs[:: patience + 1]
            other.run()

    assert cancellation(redis, mine, disturb).run() == len(mine)
    # expect neither to miss one of its own
    assert waiting(redis) == [name for name in theirs if name not in theirs[:: patience + 1]] + [
        "other"
    ]
    assert queues.state("q").balance == 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=80)
@given(seed=st.integers(0, 2**32), deep=st.booleans())
def test_no_request_is_lost_or_answered_twice_whatever_happens_between_two_calls(
    redis: Any, short: None, monkeypatch: pytest.MonkeyPatch, seed: int, deep: bool
) -> None:
    # given a queue, in which every place is near an end, or where those in the middle are too far
    # from both
    chance = random.Random(seed)
    redis.flushall()
    queues = Queues(redis)
    queues.add("q")
    ids = [f"r-{n}" for n in range(chance.randrange(1, 60))]
    fill(redis, ids)
    unwanted = chance.sample(ids, chance.randrange(1, len(ids) + 1))
    text = script("cancel").text.replace("REACH = 100000", f"REACH = {4 if deep else 100000}")
    monkeypatch.setattr(
        "scaletest.broker.cancellation.script",
        lambda _: (
            lambda connection, names, arguments: connection.eval(
                text, len(names), *names, *arguments
            )
        ),
    )
    taken: list[str] = []
    added: list[str] = []

    def disturb() -> None:
        if chance.random() < 0.2:
            taken.extend(name.decode() for name in redis.lpop(LIST, 2) or [])
        if chance.random() < 0.2 and len(added) < 40:
            names = [f"n-{len(added) + n}" for n in range(3)]
            fill(redis, names)
            added.extend(names)
        if chance.random() < 0.05:
            redis.delete(keys.cancelled("c"))

    # when workers take, clients add, and the set is lost meanwhile
    count = cancellation(redis, unwanted, disturb).run()
    # expect what is left to be what nobody took and nobody cancelled, in its order where nothing is
    # deep
    left = waiting(redis)
    expected = [name for name in ids + added if name not in unwanted and name not in taken]
    assert sorted(left) == sorted(expected)
    assert deep or left == expected
    assert count == len(set(unwanted) - set(taken))
    redis.zadd(keys.leases("q"), {f"{name}:1:w": 9e15 for name in taken} or {"": 0})
    assert not taken or queues.state("q").balance == 0


def test_a_client_that_is_killed_meanwhile_leaves_a_whole_queue(
    redis: Any, queues: Queues, short: None
) -> None:
    ids = [f"r-{n}" for n in range(30)]
    fill(redis, ids)
    calls = iter(range(1000))

    def disturb() -> None:
        if next(calls) == 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cancellation(redis, ids[::2], disturb).run()
    # expect the rest to wait, the books to balance, and the set to go by itself
    left = waiting(redis)
    assert 15 < len(left) < 30
    assert left == [name for name in ids if name in left]
    assert queues.state("q").balance == 0
    assert 0 < redis.ttl(keys.cancelled("c")) <= 60


def test_a_state_that_came_back_after_a_crash_is_swept_again(
    redis: Any, queues: Queues, short: None
) -> None:
    # given a sweep, in whose midst Redis comes back with what it had a second ago
    ids = [f"r-{n}" for n in range(40)]
    fill(redis, ids)
    calls = iter(range(1000))
    stored: dict[str, bytes] = {}

    def disturb() -> None:
        number = next(calls)
        if number == 16:
            stored.update({key.decode(): redis.dump(key) for key in redis.keys("*")})
        if number == 20:
            redis.flushall()
            for key, value in stored.items():
                redis.restore(key, 0, value)

    assert cancellation(redis, ids[::2], disturb).run() == 20
    assert waiting(redis) == ids[1::2]
    assert queues.state("q").balance == 0


def test_a_worker_takes_while_two_clients_cancel(
    client: Client, redis: Any, queues: Queues, url: str
) -> None:
    # given two clients whose requests wait among one another, and a worker that takes them
    with Client(connect(url)) as other:
        mine, theirs = ([maker.new_id() for _ in range(3000)] for maker in (client, other))
        for start in range(0, 3000, 50):
            client.submit([Request(name, "q") for name in mine[start : start + 50]])
            other.submit([Request(name, "q") for name in theirs[start : start + 50]])
        began, ended = threading.Event(), threading.Event()
        taken: list[str] = []

        def work() -> None:
            lane = lane_of(connect(url))
            answer = lane.cycle(None)
            while isinstance(answer, TakenRequest) and not ended.is_set():
                taken.append(answer.id)
                began.set()
                answer = lane.cycle(done(answer))
            if isinstance(answer, TakenRequest):
                taken.append(answer.id)
            lane.close()

        # when both cancel at the same time, while the worker goes on
        worker = threading.Thread(target=work)
        worker.start()
        assert began.wait(60)
        counts: list[int] = []
        second = threading.Thread(target=lambda: counts.append(other.cancel("q", theirs)))
        second.start()
        counts.append(client.cancel("q", mine))
        second.join()
        ended.set()
        worker.join()
    # expect each request to have been taken or cancelled, never both
    assert len(taken) == len(set(taken))
    assert sum(counts) + len(taken) == 6000
    check_books(queues, waiting=0, client_gone=sum(counts))
