"""What the exporter and pages read, on a Redis in this process: slots of ten seconds, pages, ages,
living workers; samples of nodes: who samples, what is kept, and what comes out again.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from scaletest.broker import Client, Queues, keys
from scaletest.broker.accounting import Accounting
from scaletest.broker.fast_lane import FinishedRequest, TakenRequest
from scaletest.broker.heartbeat import LEASE_INTERVALS, Heartbeat
from scaletest.broker.retrying import Retrying
from scaletest.broker.samples import (
    AFTERWARDS_S,
    AT_FIRST_S,
    LONGEST_WAIT_S,
    SAMPLE_EVERY_S,
    SampleReader,
    SamplerLease,
    decode,
    encode,
    latest_samples,
)
from scaletest.broker.scripts import Script
from scaletest.broker.snapshot import PAGE_WORKERS, RqState, read_rq_state, read_snapshot
from scaletest.model import NodeSample, Request
from scaletest.model.node_sample import MAX_RESOURCES
from scaletest_workers.node_sampler import NodeSampler
from tests.integration.lanes import lane_of
from tests.unit.virtual_redis import Clock, VirtualRedis, beats_for

SLOT_S, SLOTS = 10.0, 64


def done(taken: Any, run_s: float, pod: str = "pod-1") -> FinishedRequest:
    """A request that waited for a second."""
    reply = json.dumps(
        {"id": taken.id, "outcome": "succeeded", "node": "node-1", "pod": pod, "exit_code": 0}
    )
    return FinishedRequest(taken, "succeeded", 1.0, run_s, reply, False)


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
        for slot in read_snapshot(redis).queues[0].slots
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
    (slot,) = [slot for slot in read_snapshot(redis).queues[0].slots if slot.number == number]
    assert (slot.submitted, slot.ended, slot.pod) == (1, 1, "now")
    assert (slot.max_run_s, slot.failed) == (1.0, 0)
    assert redis.hlen(keys.slots("q")) == 2 * SLOTS


@pytest.mark.usefixtures("queues")
def test_the_slow_lane_and_stock_workers_are_in_the_slots(redis: VirtualRedis) -> None:
    accounting = Accounting(redis, Retrying("test"), "q", "w")
    accounting.settle(TakenRequest("stock", 0, 0), "succeeded", 0.0, 7.0, "not json")
    (slot,) = read_snapshot(redis).queues[0].slots
    assert (slot.submitted, slot.ended, slot.pod) == (1, 1, "")
    assert slot.max_run_s == 7.0


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
    lane = lane_of(redis, interval_s=60.0)
    client.submit([Request(client.new_id(), "q") for _ in range(2)])
    clock.step(2.0)
    taken = lane.cycle(None)
    lane_request, taken_s = taken.id, clock.seconds()
    clock.step(3.0)
    # expect these times, and what the worker said of itself
    view = read_snapshot(redis)
    (queue,) = view.queues
    assert (view.at_s, view.clients, queue.oldest_waiting_s) == (clock.seconds(), 1, 5.0)
    (worker,) = queue.workers
    assert (worker.name, worker.busy, worker.started_s) == ("w", True, taken_s)
    assert (worker.pod, worker.node, worker.device) == ("pod-1", "node-1", "/dev/d0")
    assert worker.state == "busy"
    assert worker.request == lane_request
    # and neither worker nor client when their deadlines are over
    clock.step(LEASE_INTERVALS * 60.0)
    view = read_snapshot(redis)
    assert (view.clients, view.queues[0].workers) == (0, ())


def test_every_queue_is_in_one_page(
    redis: VirtualRedis, queues: Queues, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given seven queues, of which a call is asked for three
    monkeypatch.setattr("scaletest.broker.snapshot.PAGE_QUEUES", 3)
    for number in range(6):
        queues.add(f"q-{number}", maximum=number)
    view = read_snapshot(redis)
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
    workers = {worker.name: worker for worker in read_snapshot(redis).queues[0].workers}
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
    view = read_snapshot(redis)
    assert [queue.name for queue in view.queues] == ["other"]
    assert [name for name, _ in view.unreadable] == ["q"]


def test_failed_jobs_and_the_suspension_of_rq_are_told(redis: VirtualRedis, queues: Queues) -> None:
    names = [f"q-{number}" for number in range(5)]
    for name in names:
        queues.add(name)
    redis.zadd(keys.rq_failed("q-1"), {"a": 1, "b": 2})
    redis.set(keys.rq_failed("q-2"), "a text")
    redis.zadd(keys.rq_failed("q-4"), {"c": 1})
    assert read_rq_state(redis, names) == RqState(False, {"q-1": 2, "q-4": 1})
    redis.set(keys.RQ_SUSPENDED, "1")
    assert read_rq_state(redis, []) == RqState(True, {})


def sample(node: str = "n", resources: dict[str, dict[str, float]] | None = None) -> NodeSample:
    return NodeSample(node, "w", 0.0, 1.0, resources or {"cpu": {"user": 1.5}})


SAMPLINGS: list[Sampling] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """What a heartbeat has open is closed after the test."""
    yield
    while SAMPLINGS:
        SAMPLINGS.pop().line.stop()


class Sampling:
    """A worker that could sample, and what its heartbeat does."""

    def __init__(
        self, redis: VirtualRedis, worker: str, clock: Clock, node: str = "n", queue: str = "q"
    ) -> None:
        self.redis = redis
        self.lease = SamplerLease(queue, node, worker, clock.seconds)
        self.line = Heartbeat(redis, worker, queue, sampling=self.lease)
        SAMPLINGS.append(self)

    def beat(self) -> None:
        self.line._beat()

    def come(self) -> None:
        self.line._beat()
        if self.line._has_turn:
            self.line._reap()

    def owns_lease(self) -> bool:
        return self.lease._holds_lease.is_set()

    def send(self, sampled: NodeSample | None = None) -> None:
        self.lease.offer(sampled or sample())
        self.lease.send(self.redis)


@pytest.fixture
def sampling(redis: VirtualRedis, queues: Queues, clock: Clock) -> Sampling:
    sampler = Sampling(redis, "w", clock)
    sampler.beat()
    return sampler


def test_one_worker_a_node_and_queue_samples(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    queues.add("other")
    first, second = Sampling(redis, "first", clock), Sampling(redis, "second", clock)
    elsewhere, other = (
        Sampling(redis, "third", clock, node="m"),
        Sampling(redis, "fourth", clock, queue="other"),
    )
    for _ in range(2):
        for each in (first, second, elsewhere, other):
            each.beat()
    assert [each.owns_lease() for each in (first, second, elsewhere, other)] == [
        True,
        False,
        True,
        True,
    ]
    # who does not sample says nothing, whatever it was told to send
    second.send()
    assert redis.xlen(keys.samples("q")) == 0


def test_another_worker_takes_over_from_one_that_died(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    first, second = Sampling(redis, "first", clock), Sampling(redis, "second", clock)
    first.beat()
    beats_for(clock, 8, second.beat)
    assert not second.owns_lease()
    beats_for(clock, 4, second.beat)
    assert second.owns_lease()
    # the first one was only frozen
    first.send()
    assert redis.xlen(keys.samples("q")) == 0 and not first.owns_lease()
    first.beat()
    assert not first.owns_lease() and second.owns_lease()


def test_a_worker_that_leaves_gives_up_the_sampler_lease(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    first, second = Sampling(redis, "first", clock), Sampling(redis, "second", clock)
    first.beat()
    first.line.forget()
    second.beat()
    assert second.owns_lease()


def test_an_outage_does_not_end_the_sampler_lease(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    first, second = Sampling(redis, "first", clock), Sampling(redis, "second", clock)
    first.beat()
    for seconds in (3600.0, -7200.0):
        clock.step(seconds)
        second.beat()
        assert not second.owns_lease()


def test_nodes_that_are_gone_are_forgotten(
    redis: VirtualRedis, queues: Queues, clock: Clock
) -> None:
    for number in range(60):
        Sampling(redis, f"w{number}", clock, node=f"n{number}").beat()
    assert redis.hlen(keys.samplers("q")) == 60
    last = Sampling(redis, "last", clock, node="last")
    beats_for(clock, 600, last.come)
    assert redis.hgetall(keys.samplers("q")) == {b"last": b"last"}
    assert last.lease.interval_s == SAMPLE_EVERY_S


def test_samplers_without_a_worker_are_forgotten(
    redis: VirtualRedis, queues: Queues, sampling: Sampling, clock: Clock
) -> None:
    # given more of them than a call looks at, whose workers were forgotten without their nodes
    redis.hset(keys.samplers("q"), mapping={f"n{number}": f"w{number}" for number in range(25)})
    beats_for(clock, 600, sampling.come)
    assert redis.hgetall(keys.samplers("q")) == {b"n": b"w"}


def test_with_many_nodes_samples_are_farther_apart(
    redis: VirtualRedis, queues: Queues, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.samples.MOST_SAMPLES_PER_S", 10)
    lines = [Sampling(redis, f"w{number}", clock, node=f"n{number}") for number in range(30)]
    for _ in range(2):
        for line in lines:
            line.beat()
    assert sum(1 / line.lease.interval_s for line in lines) == pytest.approx(10)


@pytest.mark.parametrize("key", [keys.samplers("q"), keys.counters("q"), keys.QUEUES])
def test_a_key_of_another_type_stops_no_heartbeat(
    redis: VirtualRedis, queues: Queues, clock: Clock, key: str
) -> None:
    worker = Sampling(redis, "w", clock)
    worker.line.note_start("r", 1)
    redis.zadd(keys.leases("q"), {"r:1:w": 1})
    redis.delete(key)
    redis.set(key, "x")
    worker.beat()
    assert not worker.owns_lease() and redis.zscore(keys.workers("q"), "w")
    # what it runs stays its own
    assert redis.zscore(keys.leases("q"), "r:1:w") == redis.zscore(keys.workers("q"), "w")


def test_samples_come_out_with_the_time_of_redis(
    redis: VirtualRedis, sampling: Sampling, clock: Clock
) -> None:
    sampling.send()
    reader = SampleReader(redis, "q")
    assert reader.read() == []
    resources = {"cpu": {"user": 1.23456789}, "device:0": {"energy_j": 123456789.25}}
    clock.step(1.5)
    sampling.send(sample(resources=resources))
    (read,) = reader.read()
    assert read.at_s == pytest.approx(clock.seconds(), abs=0.001)
    assert read.resources == {"cpu": {"user": 1.23457}, "device:0": {"energy_j": 123456789.25}}
    assert reader.read() == []
    # who goes on from where another one stopped
    assert len(SampleReader(redis, "q", "0-0").read()) == 2
    assert SampleReader(redis, "q", reader.position).read() == []


def test_the_last_fresh_sample_of_each_node_is_shown(
    redis: VirtualRedis,
    queues: Queues,
    sampling: Sampling,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for user, node in enumerate("abcb"):
        sampling.send(sample(node, {"cpu": {"user": float(user)}}))
        clock.step(4.0)
    # a key that is not ours hides no other queue
    redis.set(keys.samples("other"), "mine")
    rows = latest_samples(redis, {"other": 1, "q": 3, "empty": 2, "none": 0})
    assert {
        queue: {node_sample.node: node_sample.value("cpu", "user") for node_sample in node_samples}
        for queue, node_samples in rows.items()
    } == {"q": {"b": 3.0, "c": 2.0}}
    monkeypatch.setattr("scaletest.broker.samples.MOST_NODES", 3)
    assert latest_samples(redis, {"other": 3, "q": 3}) == latest_samples(redis, {}) == {}


@pytest.mark.parametrize("fields", [{"s": "nonsense"}, {"x": "y"}, {"s": encode(sample())[:-5]}])
def test_stream_entries_that_are_no_samples_are_left_out(
    redis: VirtualRedis, sampling: Sampling, fields: Any
) -> None:
    redis.xadd(keys.samples("q"), fields)
    sampling.send()
    assert len(SampleReader(redis, "q", "0-0").read()) == 1


def test_a_removed_queue_keeps_no_samples(
    redis: VirtualRedis, queues: Queues, sampling: Sampling
) -> None:
    sampling.send()
    assert redis.exists(keys.samples("q"), keys.samplers("q")) == 2
    queues.remove("q")
    assert not redis.exists(keys.samples("q"), keys.samplers("q"))
    # nor does a worker of its that lives on leave any
    sampling.send()
    sampling.beat()
    sampling.send()
    assert not redis.exists(keys.samples("q"), keys.samplers("q"))


def test_the_stream_is_bounded(
    redis: VirtualRedis, sampling: Sampling, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.broker.samples.STREAM_LENGTH", 100)
    for _ in range(300):
        sampling.send()
    assert redis.xlen(keys.samples("q")) <= 200  # about, as Redis trims whole nodes of its tree


def test_a_sample_is_packed() -> None:
    row = {f"busy.engine{number}": random.Random(number).random() for number in range(30)}
    names = ["cpu", "disk:a", "network:a", *(f"device:{number}" for number in range(40))]
    packed = encode(sample(resources=dict.fromkeys(names, row)))
    assert len(packed) < 1000
    assert set(decode(packed, 0.0).resources) == set(names)


def test_a_sample_that_waited_too_long_is_not_sent(
    redis: VirtualRedis, sampling: Sampling, clock: Clock
) -> None:
    sampling.lease.offer(sample())
    clock.step(LONGEST_WAIT_S + 1)
    sampling.lease.send(redis)
    assert redis.xlen(keys.samples("q")) == 0


def test_a_failing_stream_gives_one_warning(
    redis: VirtualRedis, sampling: Sampling, caplog: pytest.LogCaptureFixture
) -> None:
    redis.set(keys.samples("q"), "mine")
    for _ in range(3):
        sampling.send()
    assert caplog.text.count("samples of its node are lost") == 1


# -- the thread
# --------------------------------------------------------------------------------------------------


def test_samples_are_taken_at_first_and_while_there_is_work(
    redis: VirtualRedis, queues: Queues, sampling: Sampling, clock: Clock
) -> None:
    begun = 0
    sampler = NodeSampler(sampling.lease, lambda: begun, dict, clock.seconds)

    def after(seconds: int) -> int:
        """How many samples come in that time."""
        before = redis.xlen(keys.samples("q"))
        for second in range(seconds):
            clock.step(1.0)
            sampler._sample_once()
            sampling.lease.send(redis)
            if second % 2:
                sampling.beat()
        return int(redis.xlen(keys.samples("q")) - before)

    sampler._sample_once()
    # what the node does without work
    assert after(30) == AT_FIRST_S - 1
    # work of this worker: the first reading after the pause is only remembered
    begun = 1
    assert after(30) == AFTERWARDS_S - 1
    # work of another worker, that the next heartbeat sees
    redis.hincrby(keys.counters("q"), "submitted")
    assert after(30) == AFTERWARDS_S - 2
    # a request that runs on
    redis.zadd(keys.leases("q"), {"r:1:other": 9e18})
    assert after(30) == 27
    read, *_ = SampleReader(redis, "q", "0-0").read()
    assert read.interval_s == 1.0 and read.resources["cpu"]["cores"] >= 1


def test_devices_without_number_or_end_do_no_harm(
    redis: VirtualRedis, sampling: Sampling, clock: Clock
) -> None:
    names = [f"device:{number}" for number in range(100)]
    figures = {"busy": 0.5, "power": math.nan, "energy_j": math.inf}

    def devices() -> dict[str, dict[str, float]]:
        return dict.fromkeys(names, figures)

    sampler = NodeSampler(sampling.lease, int, devices, clock.seconds)
    for _ in range(2):
        sampler._sample_once()
        sampling.lease.send(redis)
        clock.step(1.0)
    (row,) = SampleReader(redis, "q", "0-0").read()
    assert len(row.resources) == MAX_RESOURCES and row.value("cpu", "cores")
    assert row.resources["device:0"] == {"busy": 0.5}


def test_the_thread_ends_whatever_it_waits_for(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = NodeSampler(SamplerLease("q", "n", "w"), int, dict)
    never_started = NodeSampler(SamplerLease("q", "n", "w"), int, dict)
    busy, broken = SamplerLease("q", "n", "w"), SamplerLease("q", "n", "w")
    busy.interval_s = 600.0
    for lease in (busy, broken):
        lease.take_answer([1, 1, 1])
    busy.interval_s = 600.0
    samplers = [waiting, NodeSampler(busy, int, dict), NodeSampler(broken, lambda: 1 // 0, dict)]
    for sampler in samplers:
        sampler.start()
    for sampler in (*samplers, never_started):
        sampler.stop()
        sampler.stop()
    for sampler in samplers:
        sampler._thread.join(60)
        assert not sampler._thread.is_alive()
    # a mistake of ours ends the thread, and the worker does not notice
    assert "this worker stops sampling its node: ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("row", [[], [1, 1, 1]])
def test_a_heartbeat_that_ends_with_the_lease_keeps_no_thread_waiting(row: list[int]) -> None:
    # given a sampler that was ended in the middle of a look, whose worker beat before that look was
    # over
    lease = SamplerLease("q", "n", "w")
    lease.take_answer([1, 1, 1])
    lease.end()
    lease.take_answer(row)
    # expect its next look to find the end at once
    assert lease._holds_lease.is_set() and not lease.wait()
