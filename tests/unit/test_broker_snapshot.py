"""What the exporter and pages read, on a Redis in this process: slots of ten seconds, pages, ages,
living workers.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import Accounting, TakenJob
from scaletest.broker.connection import Retrying
from scaletest.broker.fast_lane import Done
from scaletest.broker.heartbeat import LEASE_INTERVALS, Heartbeat
from scaletest.broker.lookup import RqState, rq_state
from scaletest.broker.scripts import Script
from scaletest.broker.snapshot import PAGE_WORKERS, snapshot
from scaletest.model import Request
from scaletest.model.histogram import bucket
from tests.integration.lanes import lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis

SLOT_S, SLOTS = 10.0, 64


def done(taken: Any, run_s: float, pod: str = "pod-1") -> Done:
    """A request that waited for a second."""
    reply = json.dumps(
        {"id": taken.id, "outcome": "succeeded", "node": "node-1", "pod": pod, "exit_code": 0}
    )
    return Done(taken, "succeeded", bucket(1.0), bucket(run_s), reply, False)


def test_events_are_counted_in_the_slot_of_their_time(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    # given a request that is submitted in one slot, and ends in the next but one
    lane = lane_of(redis)
    first = int(clock.seconds() / SLOT_S)
    client.submit_one(Request(client.new_id(), "q"))
    taken = lane.cycle(None)
    clock.step(2 * SLOT_S)
    lane.cycle(done(taken, 20.0))
    rows = [
        (slot.number - first, slot.submitted, slot.ended, slot.pod)
        for slot in snapshot(redis).queues[0].slots
    ]
    assert rows == [(0, 1, 0, ""), (2, 0, 1, "pod-1")]


def test_a_slot_of_an_earlier_turn_is_begun_anew(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    # given a request with a long run in every slot of the ring
    lane = lane_of(redis)
    for _ in range(SLOTS):
        client.submit_one(Request(client.new_id(), "q"))
        lane.cycle(done(lane.cycle(None), 900.0, "long ago"), take=False)
        clock.step(SLOT_S)
    assert redis.hlen(keys.slots("q")) == 2 * SLOTS
    # when a turn of the ring is over, and another request ends
    number = int(clock.seconds() / SLOT_S)
    client.submit_one(Request(client.new_id(), "q"))
    lane.cycle(done(lane.cycle(None), 1.0, "now"))
    # expect its slot to hold that request alone, and the ring no more than before
    (slot,) = [slot for slot in snapshot(redis).queues[0].slots if slot.number == number]
    assert (slot.submitted, slot.ended, slot.pod) == (1, 1, "now")
    assert slot.max_run_s == pytest.approx(1.0, rel=0.01)
    assert redis.hlen(keys.slots("q")) == 2 * SLOTS


@pytest.mark.usefixtures("queues")
def test_the_slow_lane_and_stock_workers_are_in_the_slots(redis: VirtualRedis) -> None:
    accounting = Accounting(redis, Retrying("test"))
    accounting.settle(TakenJob("stock", "q", "w", None), "succeeded", 0.0, 7.0, "not json")
    (slot,) = snapshot(redis).queues[0].slots
    assert (slot.submitted, slot.ended, slot.pod) == (1, 1, "")
    assert slot.max_run_s == pytest.approx(7.0, rel=0.01)


def test_a_snapshot_carries_the_time_of_redis(
    client: Client, redis: VirtualRedis, clock: Clock
) -> None:
    # given a worker that runs a request for three seconds, and another request that waits for five
    Heartbeat(
        redis,
        "w",
        "q",
        interval_s=60.0,
        details=lambda: {"pod": "pod-1", "node": "node-1", "device": "/dev/d0"},
    )._beat()
    beaten_s = clock.seconds()
    lane = lane_of(redis, interval_s=60.0)
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    clock.step(2.0)
    taken = lane.cycle(None)
    lane_request, taken_s = taken.id, clock.seconds()
    clock.step(3.0)
    # expect these times, and what the worker said of itself
    view = snapshot(redis)
    (queue,) = view.queues
    assert (view.at_s, view.clients, queue.oldest_waiting_s) == (clock.seconds(), 1, 5.0)
    (worker,) = queue.workers
    assert (worker.name, worker.busy, worker.started_s) == ("w", True, taken_s)
    assert (worker.pod, worker.node, worker.device) == ("pod-1", "node-1", "/dev/d0")
    assert (worker.state, worker.heartbeat_s) == ("busy", beaten_s)
    assert worker.request == lane_request
    # and neither worker nor client when their deadlines are over
    clock.step(LEASE_INTERVALS * 60.0)
    view = snapshot(redis)
    assert (view.clients, view.queues[0].workers) == (0, ())


def test_every_queue_is_in_one_page(
    redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given seven queues, of which a call is asked for three
    monkeypatch.setattr("scaletest.broker.snapshot.PAGE_QUEUES", 3)
    for number in range(6):
        queues.add(f"q-{number}", maximum=number)
    view = snapshot(redis)
    assert [(queue.name, queue.maximum) for queue in view.queues] == [
        ("q", 0), *((f"q-{number}", number) for number in range(6))]  # fmt: skip
    assert view.pages == 3


def test_the_workers_of_a_long_list_are_read_in_pages(
    redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given more workers than a call reads, one of them suspect
    monkeypatch.setattr("scaletest.broker.snapshot.PAGE_WORKERS", 400)
    pages: list[int] = []
    real = Script.__call__

    def counted(self: Script, connection: Any, names: list[str], arguments: list[Any]) -> Any:
        if self.name == "roster":
            pages.append(len(arguments))
        return real(self, connection, names, arguments)

    monkeypatch.setattr(Script, "__call__", counted)
    for number in range(901):
        redis.zadd(keys.workers("q"), {f"w-{number}": 9e15})
    redis.hset(
        keys.rq_worker("w-7"), mapping={"state": "busy", "answer": "r:1:2000000", "pod": "pod-7"}
    )
    redis.sadd(keys.suspects("q"), "w-7")
    workers = {worker.name: worker for worker in snapshot(redis).queues[0].workers}
    assert (len(workers), pages) == (901, [400, 400, 101])
    assert [name for name, worker in workers.items() if worker.suspect or worker.busy] == ["w-7"]
    assert (workers["w-7"].pod, workers["w-7"].started_s) == ("pod-7", 2.0)


def test_a_foreign_key_among_very_many_workers_hides_only_their_queue(
    redis: VirtualRedis, queues: Queues
) -> None:
    # given more workers than a call reads, of which one is no worker, beside another queue
    queues.add("other")
    redis.zadd(keys.workers("q"), {f"w-{number}": 9e15 for number in range(PAGE_WORKERS + 1)})
    redis.set(keys.rq_worker("w-7"), "x")
    view = snapshot(redis)
    assert [queue.name for queue in view.queues] == ["other"]
    assert [name for name, _ in view.unreadable] == ["q"]


def test_failed_jobs_and_the_suspension_of_rq_are_told(
    redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.lookup.QUEUES_AT_ONCE", 2)
    names = [f"q-{number}" for number in range(5)]
    for name in names:
        queues.add(name)
    redis.zadd(keys.rq_failed("q-1"), {"a": 1, "b": 2})
    redis.set(keys.rq_failed("q-2"), "a text")
    redis.zadd(keys.rq_failed("q-4"), {"c": 1})
    assert rq_state(redis, names) == RqState(False, {"q-1": 2, "q-4": 1})
    redis.set(keys.RQ_SUSPENDED, "1")
    assert rq_state(redis, []) == RqState(True, {})
