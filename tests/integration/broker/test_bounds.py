"""No call of a script does more than so much, however much there is to do: counted in Redis
commands, never in time.
"""

import struct
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import FastLane, NothingTaken, TakenRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.queues import PURGE_BATCH, REMOVE_BATCH
from scaletest.broker.reaping import REAP_BATCH, Watcher, reap
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import Script
from scaletest.broker.snapshot import read_snapshot
from scaletest.model import Request
from scaletest.model.histogram import LAST_BUCKET
from tests.conftest import check_books, eventually, wait_for
from tests.integration.lanes import done

# Commands that a script may run for each entry that it handles, and besides.
EACH, BESIDES = 12, 40


def commands(redis: Any) -> int:
    rows = redis.info("commandstats")
    return sum(
        row["calls"]
        for name, row in rows.items()
        if name not in ("cmdstat_info", "cmdstat_client|setinfo")
    )


@pytest.fixture
def calls(redis: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int]]]:
    """Every call of a script, and how many Redis commands it was."""
    rows: list[tuple[str, int]] = []
    real = Script.__call__

    def counted(self: Script, connection: Any, names: list[str], arguments: list[Any]) -> Any:
        before = commands(redis)
        answer = real(self, connection, names, arguments)
        rows.append((self.name, commands(redis) - before))
        return answer

    monkeypatch.setattr(Script, "__call__", counted)
    yield rows


def most(calls: list[tuple[str, int]], name: str) -> int:
    return max(count for script, count in calls if script == name)


def lose(redis: Any, count: int) -> None:
    """So many workers are dead, each with a request."""
    pipe = redis.pipeline()
    for number in range(count):
        pipe.zadd(keys.leases("q"), {f"r-{number}:1:w-{number}": 1})
        pipe.hset(f"rq:job:r-{number}", mapping={"data": "x", "enqueued_us": 1, "reply_to": "c"})
        pipe.zadd(keys.workers("q"), {f"w-{number}": 1})
        pipe.sadd(keys.rq_queue_workers("q"), f"rq:worker:w-{number}")
    pipe.hincrby(keys.counters("q"), "submitted", count)
    pipe.set(keys.PULSE, redis.time()[0] * 1_000_000)
    pipe.execute()


def test_all_expired_leases_are_taken_back_in_small_calls(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    # given more dead workers than a call handles
    count = 3 * REAP_BATCH + 1
    lose(redis, count)
    # expect one reaping to find all
    assert reap(redis, "q", 3, 60_000_000) is None
    check_books(queues, waiting=count, running=0)
    assert not redis.exists(keys.workers("q"))
    assert most(calls, "reap") <= 2 * EACH * REAP_BATCH + BESIDES


def test_a_full_taking_list_is_put_back_in_small_calls(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    # given more moved requests than a call handles, before one that waits
    ids = [f"r-{number}".encode() for number in range(30 * REAP_BATCH + 1)]
    redis.rpush(keys.taking("q"), *ids)
    redis.rpush(keys.rq_queue("q"), b"behind")
    # expect one reaping to put all of them back, in their order
    reap(redis, "q", 3, 60_000_000)
    assert redis.lrange(keys.rq_queue("q"), 0, -1) == [*ids, b"behind"]
    assert most(calls, "reap") <= EACH * REAP_BATCH + BESIDES


def test_a_worker_of_a_paused_queue_puts_a_full_taking_list_back_in_small_calls(
    redis: Any, queues: Queues, lane: FastLane
) -> None:
    redis.rpush(keys.taking("q"), *[f"r-{number}" for number in range(1000)])
    queues.pause("q")
    before = commands(redis)
    assert lane._blocking_take(0.01) is NothingTaken.PAUSED
    assert commands(redis) - before <= 200 + BESIDES
    assert redis.llen(keys.taking("q")) + redis.llen(keys.rq_queue("q")) == 1000


def test_devices_of_very_many_nodes_are_looked_at_in_small_calls(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    # given more devices than a call looks at, with leases that ended long ago, and one that is in
    # use
    names = [keys.device(f"node-{number}", "0") for number in range(1000)]
    pipe = redis.pipeline()
    for name in names:
        pipe.zadd(name, {"0:w:n": 1})
    pipe.zadd(keys.device("living", "0"), {"0:w:n": 9e15})
    pipe.sadd(keys.DEVICES, keys.device("living", "0"), *names)
    pipe.execute()
    # expect the watcher to forget the others, a few a tick
    watcher = Watcher(redis, 60.0, 3)
    watcher.tick()
    assert redis.scard(keys.DEVICES) > 500
    eventually(lambda: (watcher.tick(), redis.scard(keys.DEVICES) == 1)[1])
    assert redis.keys("scaletest:device:*") == [keys.device("living", "0").encode()]
    assert most(calls, "watch") <= 400


def test_a_heartbeat_costs_no_more_where_every_worker_has_an_interval_of_its_own(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    for number in range(200):
        heartbeat = Heartbeat(redis, f"w-{number}", "q", interval_s=5.0 + number / 1000)
        heartbeat._beat()
        heartbeat.stop()
    # expect the intervals as steps, none of them longer than it is
    intervals = redis.zrange("scaletest:intervals", 0, -1)
    assert sorted(map(int, intervals)) == [5_000_000, 5_100_000]
    assert queues.state("q").workers == 200


def test_a_purge_is_many_small_calls(
    client: Client, redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    client.submit([Request(client.new_id(), "q") for _ in range(4 * PURGE_BATCH + 1)])
    assert queues.purge("q") == 4 * PURGE_BATCH + 1
    assert most(calls, "purge") <= EACH * PURGE_BATCH + BESIDES
    assert len([name for name, _ in calls if name == "purge"]) == 5


def test_a_queue_with_many_results_is_removed_in_small_calls(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    # given a queue with results that are kept, running requests of a client and workers
    count = 3 * REMOVE_BATCH
    lose(redis, count)
    pipe = redis.pipeline()
    for number in range(count):
        pipe.zadd(keys.rq_finished("q"), {f"f-{number}": 9e9})
        pipe.hset(f"rq:job:f-{number}", "data", "x")
        pipe.xadd(f"rq:results:f-{number}", {"a": "b"})
    pipe.execute()
    # when it is removed
    assert queues.remove("q") == 0
    # expect small calls, and nothing left
    assert most(calls, "remove") <= EACH * REMOVE_BATCH + BESIDES
    assert queues.names() == []
    assert not [key for key in redis.keys("*") if key.startswith(b"rq:") or b":q" in key]


def test_the_books_balance_while_a_queue_is_being_removed(
    redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    # given a removal that is interrupted after its first call
    lose(redis, 2 * REMOVE_BATCH)
    real = Script.__call__

    def interrupted(self: Script, *arguments: Any) -> Any:
        answer = real(self, *arguments)
        if self.name == "remove":
            raise KeyboardInterrupt
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(Script, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queues.remove("q")
    # expect a queue with less in it, which can be removed again
    check_books(queues, running=REMOVE_BATCH, purged=REMOVE_BATCH)
    queues.remove("q")
    assert queues.names() == []


@pytest.mark.parametrize(("place", "counts"), [(0, True), (60_000, False), (-1, True)])
def test_a_late_result_is_searched_near_the_ends_of_the_queue_only(
    redis: Any, url: str, queues: Queues, place: int, counts: bool
) -> None:
    # given a request that waits again among very many, while its first worker finishes it
    ids = [f"r-{number}" for number in range(120_000)]
    redis.rpush("rq:queue:q", *ids)
    redis.hset(f"rq:job:{ids[place]}", mapping={"data": "x", "enqueued_us": 1})
    redis.config_resetstat()
    accounting = Accounting(connect(url), Retrying("test", patience_s=10), "q", "w")
    ended = accounting.settle(TakenRequest(ids[place], 1, 0, 1, "c"), "succeeded", 0.1, 0.1)
    # expect it to count where a reaper or its client put it, and the list never to be searched as a
    # whole
    assert bool(ended) == counts
    assert ("cmdstat_lrem" in redis.info("commandstats")) == counts
    assert redis.hget(keys.counters("q"), "stale") == (None if counts else b"1")


def test_replies_that_a_dead_client_never_read_are_freed_in_the_background(
    redis: Any, queues: Queues
) -> None:
    pipe = redis.pipeline()
    for number in range(20_000):
        pipe.xadd(keys.replies("dead"), {"r": f"reply {number}"})
    pipe.zadd(keys.CLIENTS, {"dead": 1})
    pipe.set(keys.PULSE, redis.time()[0] * 1_000_000)
    pipe.execute()
    redis.config_resetstat()
    reap(redis, "q", 3, 60_000_000)
    assert not redis.exists(keys.replies("dead"))
    assert "cmdstat_unlink" in redis.info("commandstats")


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> list[list[Any]]:
    """The answers of the calls that read queues."""
    answers: list[list[Any]] = []
    real = Script.__call__

    def noted(self: Script, connection: Any, names: list[str], arguments: list[Any]) -> Any:
        answer = real(self, connection, names, arguments)
        if self.name == "metrics":
            answers.append(answer)
        return answer

    monkeypatch.setattr(Script, "__call__", noted)
    return answers


def test_very_many_queues_are_read_in_pages(
    redis: Any, queues: Queues, pages: list[list[Any]]
) -> None:
    # given many queues, a few with counts in all the buckets that there can be
    for number in range(150):
        queues.add(f"q-{number}")
        numbers = struct.pack(">qq", 5, 7) * (LAST_BUCKET + 1 if number % 50 == 0 else 20)
        redis.set(keys.ended(f"q-{number}"), bytes(8000) + numbers)
    # when they are read
    state = read_snapshot(redis)
    # expect all of them, and no call that reads very much
    assert [queue.name for queue in state.queues] == sorted(
        ["q", *[f"q-{number}" for number in range(150)]]
    )
    assert all(sum(queue.ended.run.values()) == 7 * len(queue.ended.wait) for queue in state.queues)
    assert max(sum(len(row[-1] or b"") for row in answer[2:]) for answer in pages) <= 500_000
    # and a snapshot that says how many instants it is of
    assert state.pages == len(pages) > 2
    assert [queue.at_s for queue in state.queues] == sorted(queue.at_s for queue in state.queues)
    assert min(queue.at_s for queue in state.queues) == state.at_s


def test_a_snapshot_costs_no_more_where_more_requests_wait(
    client: Client, redis: Any, calls: list[tuple[str, int]]
) -> None:
    client.submit_one(Request(client.new_id(), "q"))
    for _ in range(2):
        read_snapshot(redis)
    few = calls[-1]
    client.submit([Request(client.new_id(), "q") for _ in range(5000)])
    read_snapshot(redis)
    assert calls[-1] == few


def test_books_balance_in_every_page(
    client: Client, redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    # given queues of which one is submitted to between two pages
    monkeypatch.setattr("scaletest.broker.snapshot.PAGE_QUEUES", 2)
    for number in range(6):
        queues.add(f"q-{number}")
    real = Script.__call__

    def busy(self: Script, *arguments: Any) -> Any:
        if self.name == "metrics":
            for number in range(6):
                client.submit_one(Request(client.new_id(), f"q-{number}"))
        return real(self, *arguments)

    monkeypatch.setattr(Script, "__call__", busy)
    state = read_snapshot(redis)
    assert [queue.waiting for queue in state.queues] == [
        queue.counters.get("submitted", 0) for queue in state.queues
    ]
    assert state.pages == 4


def test_a_queue_that_is_removed_between_two_pages_is_left_out(
    redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    monkeypatch.setattr("scaletest.broker.snapshot.PAGE_QUEUES", 1)
    queues.add("z")
    real = Script.__call__

    def removing(self: Script, *arguments: Any) -> Any:
        answer = real(self, *arguments)
        redis.hdel(keys.QUEUES, "z")
        return answer

    monkeypatch.setattr(Script, "__call__", removing)
    state = read_snapshot(redis)
    assert ([queue.name for queue in state.queues], state.unreadable) == (["q"], ())


def test_a_hash_of_far_too_many_fields_is_not_read(
    redis: Any, queues: Queues, calls: list[tuple[str, int]]
) -> None:
    redis.hset(keys.counters("q"), mapping=dict.fromkeys(range(3000), 1))
    assert [name for name, why in read_snapshot(redis).unreadable if "3000 fields" in why] == ["q"]


def test_a_large_job_of_stock_rq_is_taken_without_reading_it(
    redis: Any, queues: Queues, lane: FastLane
) -> None:
    redis.hset("rq:job:large", "data", b"x" * 60_000_000)
    redis.rpush("rq:queue:q", "large")
    taken = lane.cycle(None)
    assert (taken.id, taken.data) == ("large", b"")
    assert redis.info("memory")["used_memory_lua"] < 30_000_000


def test_requests_of_ours_with_too_much_data_are_refused(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    request = Request(client.new_id(), "q")
    client.submit_one(request)
    redis.hset(f"rq:job:{request.id}", "data", b"x" * 1_048_577)
    assert lane.cycle(None) is None
    assert wait_for(client, 1)[request.id].error == "its data are too large: 1048577 bytes"
    assert queues.state("q").balance == 0


def test_books_are_checked_in_pages(
    client: Client, redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    # given a queue longer than a page, and one job that somebody deleted
    monkeypatch.setattr("scaletest.broker.queues.READ_BATCH", 3)
    ids = [client.new_id() for _ in range(20)]
    client.submit([Request(name, "q") for name in ids])
    assert queues.check("q") == []
    redis.delete(f"rq:job:{ids[17]}")
    redis.config_resetstat()
    assert [line.split(":")[0] for line in queues.check("q") if "no job" in line] == [
        "1 waiting entries have no job"
    ]
    assert redis.info("commandstats")["cmdstat_lrange"]["calls"] == 7


def test_requests_with_long_arguments_are_submitted_in_smaller_batches(
    client: Client, redis: Any, queues: Queues, monkeypatch: Any
) -> None:
    # given requests that are many, and each as long as it may be
    sizes: list[int] = []
    real = Script.__call__

    def noted(self: Script, connection: Any, names: list[str], arguments: list[Any]) -> Any:
        sizes.append(sum(len(value) for value in arguments if isinstance(value, bytes)))
        return real(self, connection, names, arguments)

    monkeypatch.setattr(Script, "__call__", noted)
    requests = [Request(client.new_id(), "q", ("x" * 4096,)) for _ in range(400)]
    # expect all of them, in their order
    assert client.submit(requests) == 400
    assert redis.lrange("rq:queue:q", 0, -1) == [request.id.encode() for request in requests]
    assert max(sizes) < 300_000


def test_a_request_costs_ten_commands_beside_the_call(
    client: Client, redis: Any, lane: FastLane
) -> None:
    # given a worker that has taken a request, and has finished a longer one in this slot
    count = 40
    client.submit([Request(client.new_id(), "q") for _ in range(count + 2)])
    taken = lane.cycle(done(lane.cycle(None))._replace(run_s=60.0, wait_s=60.0))
    # when it finishes it and takes the next, again and again
    redis.config_resetstat()
    for _ in range(count):
        taken = lane.cycle(done(taken))
    rows = redis.info("commandstats")
    # expect ten commands a request beside the call; only the first request of a slot takes more
    often = {
        name.removeprefix("cmdstat_"): row["calls"] // count
        for name, row in rows.items()
        if row["calls"] >= count
    }
    names = (
        "evalsha",
        "time",
        "zrem",
        "del",
        "xadd",
        "bitfield",
        "mget",
        "lpop",
        "hmget",
        "zadd",
        "hset",
    )
    assert often == dict.fromkeys(names, 1)
