"""Samples of nodes with real workers: who takes them, when, and where they are found in the end."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scaletest.broker import Client, Queues, keys
from scaletest.broker.samples import SampleReader, fresh
from scaletest.model import NodeSample, Request
from tests.conftest import Gate, eventually, wait_for

Start = Callable[..., subprocess.Popen[bytes]]
# A worker that gets no processor for two seconds is no dead one.
STEADY = ("--heartbeat", "2")


def next_samples(redis: Any, count: int) -> list[NodeSample]:
    """The next so many that come."""
    reader, found = SampleReader(redis, "q"), []

    def come() -> bool:
        found.extend(reader.read())
        return len(found) >= count

    eventually(come)
    return found


def test_one_worker_of_a_node_samples_and_another_takes_over_when_it_dies(
    client: Client, redis: Any, start: Start, gate: Gate
) -> None:
    # given two workers of a node, of which the second has work, and one that shall not sample
    workers = {name: start(*STEADY, "--name", name, "--", *gate.command) for name in ("first", "second")}
    start("--name", "third", "--no-causes", "--", *gate.command)
    for _ in range(3):
        client.submit_one(Request(client.new_id(), "q"))
    # expect samples of one of them, with the node and the time of replies
    before_s = redis.time()[0]
    sampled = next_samples(redis, 3)
    sampler = sampled[0].worker
    assert {row.worker for row in sampled} == {sampler} <= set(workers)
    assert all(row.value("cpu", "cores") and row.interval_s > 0 for row in sampled)
    assert before_s <= sampled[0].at_s <= sampled[-1].at_s <= redis.time()[0] + 1
    # when it is killed
    workers.pop(sampler).kill()
    (other,) = workers
    # expect the other one to go on, and no other
    eventually(lambda: redis.hvals(keys.samplers("q")) == [other.encode()])
    assert {row.worker for row in next_samples(redis, 3)} == {other}
    gate.open()
    assert {reply.node for reply in wait_for(client, 3).values()} == {sampled[0].node}
    workers[other].send_signal(signal.SIGTERM)
    assert workers[other].wait(60) == 0


def test_a_worker_without_work_stops_sampling_and_leaves_at_once(redis: Any, queues: Queues, start: Start) -> None:
    worker = start()
    # what an idle node does is sampled as well
    assert next_samples(redis, 1)[0].value("memory", "total")

    eventually(lambda: redis.exists(keys.samples("q")) and not fresh(redis, "q", 5.0, 1))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    queues.remove("q")
    assert not redis.exists(keys.samples("q"), keys.samplers("q"))


def test_sampling_needs_no_connection_of_its_own(redis: Any, start: Start) -> None:
    def connections(*options: str) -> int:
        before = len(redis.client_list())
        start("--name", f"w{before}", *options)
        if not options:
            next_samples(redis, 2)
        return len(redis.client_list()) - before

    assert connections() == connections("--no-causes")


def test_stock_rq_starts_our_worker_with_its_sampler(url: str, redis: Any, queues: Queues, tmp_path: Path) -> None:
    rq = str(Path(sys.executable).parent / "rq")
    line = [rq, "worker", "-w", "workers.worker.Worker", "-S", "json", "--url", url, "q"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(line, stdout=log, stderr=log) as process:
        try:
            assert next_samples(redis, 1)
        finally:
            process.terminate()
    assert process.returncode == 0
