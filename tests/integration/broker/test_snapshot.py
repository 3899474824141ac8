"""What the exporter reads: all queues in one round trip, slots that the scripts keep, and reaping
for others.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from redis.exceptions import ResponseError

from scaletest.broker import Client, Queues, connect, keys
from scaletest.broker.fast_lane import FastLane, FinishedRequest
from scaletest.broker.heartbeat import Heartbeat
from scaletest.broker.reaping import Watcher
from scaletest.broker.snapshot import read_snapshot
from scaletest.model import Request
from scaletest.model.histogram import bucket_of


def done(taken: Any, wait_s: float, run_s: float, pod: str = "pod-1") -> FinishedRequest:
    reply = json.dumps(
        {"id": taken.id, "outcome": "succeeded", "node": "node-1", "pod": pod, "exit_code": 0}
    )
    return FinishedRequest(taken, "succeeded", wait_s, run_s, reply, False)


def test_every_queue_with_its_counts_workers_and_histograms(
    client: Client, redis: Any, queues: Queues, lane: FastLane
) -> None:
    # given two queues, one with a running and a waiting request and a worker on it, the other
    # paused
    queues.add("other", maximum=3, note="a note")
    queues.pause("other")
    client.submit([Request(client.new_id(), "q") for _ in range(3)])
    line = Heartbeat(connect(f"unix://{redis.connection_pool.connection_kwargs['path']}"), "w", "q",
                    details=lambda: {"pod": "pod-1", "node": "node-1"})  # fmt: skip
    line.start()
    first = lane.cycle(None)
    began = redis.time()[0]
    lane.cycle(done(first, 0.5, 2.0))
    # expect all of it at once
    state = read_snapshot(redis)
    other, queue = state.queues
    assert (other.name, other.maximum, other.note, other.paused, other.oldest_waiting_s) == (
        "other", 3, "a note", True, None)  # fmt: skip
    assert (queue.waiting, queue.running, queue.paused) == (1, 1, False)
    assert queue.oldest_waiting_s is not None
    assert queue.counters["submitted"] == 3
    assert (queue.ended.wait, queue.ended.run) == ({bucket_of(0.5): 1}, {bucket_of(2.0): 1})
    worker = queue.workers[0]
    assert (worker.name, worker.busy, worker.suspect, worker.pod, worker.node) == (
        "w",
        True,
        False,
        "pod-1",
        "node-1",
    )
    assert began <= worker.started_s <= state.at_s
    assert sum(slot.submitted for slot in queue.slots) == 3
    # and once idle, it runs nothing
    lane.cycle(None, take=False)
    assert read_snapshot(redis).queues[1].workers[0].started_s is None
    line.stop()
    line.forget()


def test_a_slot_keeps_the_maxima_and_where_the_longest_ran(
    client: Client, redis: Any, lane: FastLane
) -> None:
    client.submit([Request(client.new_id(), "q") for _ in range(3)])
    taken = lane.cycle(None)
    for wait_s, run_s, pod in ((4.0, 1.0, "a"), (0.5, 3.0, "b\"'é"), (1.0, 2.0, "c")):
        taken = lane.cycle(done(taken, wait_s, run_s, pod))
    slots = [slot for slot in read_snapshot(redis).queues[0].slots if slot.ended]
    assert sum(slot.ended for slot in slots) == 3
    assert sum(slot.run_sum_s for slot in slots) == pytest.approx(6.0, rel=0.01)
    assert max(slot.max_wait_s for slot in slots) == pytest.approx(4.0, rel=0.01)
    assert max(slot.max_total_s for slot in slots) == pytest.approx(5.0, rel=0.01)
    longest = max(slots, key=lambda slot: slot.max_run_s)
    assert longest.max_run_s == pytest.approx(3.0, rel=0.01)
    assert (longest.node, longest.pod) == ("node-1", "b\"'é")


def test_a_slot_is_found_without_a_search(client: Client, redis: Any, lane: FastLane) -> None:
    # given the shortest names there are
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    first = lane.cycle(None)
    second = lane.cycle(done(first, 0.5, 2.0, pod="p"))
    # expect a hash table at once, and the names as they were
    assert redis.object("encoding", keys.slots("q")) == b"hashtable"
    assert [
        (slot.node, slot.pod) for slot in read_snapshot(redis).queues[0].slots if slot.ended
    ] == [("node-1", "p")]
    lane.cycle(done(second, 0.5, 3.0, pod=""), take=False)
    assert [slot.pod for slot in read_snapshot(redis).queues[0].slots if slot.ended][-1] == ""


def test_foreign_fields_in_the_slots_stop_no_worker(
    client: Client, redis: Any, lane: FastLane
) -> None:
    for number in range(64):
        redis.hset(keys.slots("q"), mapping={f"a{number}": "y" * 99})
    client.submit_one(Request(client.new_id(), "q"))
    lane.cycle(
        FinishedRequest(lane.cycle(None), "succeeded", 1, 1, '{"node": null, "pod": 7}', False)
    )
    slots = [slot for slot in read_snapshot(redis).queues[0].slots if slot.number > 64]
    assert [(sum(s.submitted for s in slots), sum(s.ended for s in slots))] == [(1, 1)]
    assert {(slot.node, slot.pod) for slot in slots} == {("", "")}


def test_an_undeclared_or_broken_job_at_the_front_does_not_break_the_read(
    redis: Any, queues: Queues
) -> None:
    redis.rpush("rq:queue:q", "nothing")
    assert read_snapshot(redis).queues[0].oldest_waiting_s is None
    redis.hset("rq:job:nothing", "enqueued_us", "soon")
    assert read_snapshot(redis).queues[0].oldest_waiting_s is None
    redis.delete("rq:job:nothing")
    redis.set("rq:job:nothing", "text")
    assert read_snapshot(redis).queues[0].waiting == 1


FOREIGN: dict[str, Callable[[Any], object]] = {
    "a queue that is text": lambda r: r.set("rq:queue:bad", "x"),
    "leases that are text": lambda r: r.set(keys.leases("bad"), "x"),
    "counters that are text": lambda r: r.set(keys.counters("bad"), "x"),
    "a counter that is no number": lambda r: r.hset(keys.counters("bad"), "submitted", "x"),
    "an entry that is no JSON": lambda r: r.hset(keys.QUEUES, "bad", "x"),
    "an entry that is a list": lambda r: r.hset(keys.QUEUES, "bad", "[]"),
    "an entry without a number": lambda r: r.hset(keys.QUEUES, "bad", '{"maximum": Infinity}'),
    "an entry too deep": lambda r: r.hset(keys.QUEUES, "bad", "[" * 100_000),
    "suspects that are text": lambda r: r.set("scaletest:suspects:bad", "x"),
    "a worker that is text": lambda r: (
        r.zadd(keys.workers("bad"), {"w": 9e18}),
        r.set("rq:worker:w", "x"),
    ),
}


@pytest.mark.parametrize("damage", FOREIGN)
def test_a_damaged_queue_is_reported_and_others_are_read(
    damage: str, redis: Any, queues: Queues
) -> None:
    # given a queue whose keys somebody else wrote to, beside one with a request
    queues.add("bad")
    redis.rpush("rq:queue:q", "a")
    FOREIGN[damage](redis)
    # expect the other to be read, and this one named
    state = read_snapshot(redis)
    assert [(queue.name, queue.waiting) for queue in state.queues] == [("q", 1)]
    assert [name for name, why in state.unreadable if why] == ["bad"]


def test_names_that_are_not_utf8_are_replaced(redis: Any, queues: Queues) -> None:
    redis.hset(keys.QUEUES, b"\xff", "{}")
    redis.zadd(keys.workers("q"), {b"\xfe": 9e18})
    state = read_snapshot(redis)
    assert [worker.name for queue in state.queues for worker in queue.workers] == ["\ufffd"]
    assert [name for name, _ in state.unreadable] == [r"\xff"]


def test_a_queue_that_cannot_be_reaped_does_not_stop_the_reaping_of_others(
    redis: Any, queues: Queues, url: str
) -> None:
    # given the lease of a dead worker on queue q, and a queue before it whose leases are something
    # else
    queues.add("a")
    redis.set(keys.leases("a"), "x")
    redis.zadd(keys.leases("q"), {"r:1:w": 1})
    # when somebody has been there within the interval, so that deadlines run
    redis.set(keys.PULSE, redis.time()[0] * 1_000_000)
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        Watcher(connect(url), 60.0, 3).tick()
    assert redis.zcard(keys.leases("q")) == 0
