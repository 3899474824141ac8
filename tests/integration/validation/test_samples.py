"""Samples of nodes with real workers: who takes them, when, and where they are found in the end."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scaletest.broker import Client, Queues, keys
from scaletest.broker.samples import SampleReader, latest_samples
from scaletest.exporter.view import ViewReader
from scaletest.model import NodeSample, Request
from scaletest.model.desired_workers import Targets
from scaletest.validation.folder import ValidationFolder
from tests.conftest import Gate, call, eventually, wait_for

Start = Callable[..., subprocess.Popen[bytes]]
# A worker that gets no processor for two seconds is no dead one.
STEADY = ("--heartbeat", "2")


def next_samples(redis: Any, count: int) -> list[NodeSample]:
    """The next so many that come."""
    reader, samples = SampleReader(redis, "q"), []

    def come() -> bool:
        samples.extend(reader.read())
        return len(samples) >= count

    eventually(come)
    return samples


def test_one_worker_of_a_node_samples_and_another_takes_over_when_it_dies(
    client: Client, url: str, redis: Any, start: Start, gate: Gate
) -> None:
    # given two workers of a node, of which the second has work, and one that shall not sample
    workers = {
        name: start(*STEADY, "--name", name, "--", *gate.command) for name in ("first", "second")
    }
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
    # and metrics of it
    (row,) = ViewReader(url, Targets()).read().queues
    assert [sample.worker for sample in row.nodes] == [sampler]
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


def test_a_worker_without_work_stops_sampling_and_leaves_at_once(
    redis: Any, queues: Queues, start: Start
) -> None:
    worker = start()
    # what an idle node does is sampled as well
    assert next_samples(redis, 1)[0].value("memory", "total")

    eventually(lambda: redis.exists(keys.samples("q")) and not latest_samples(redis, {"q": 1}))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    queues.remove("q")
    assert not redis.exists(keys.samples("q"), keys.samplers("q"))


def test_stock_rq_starts_our_worker_with_its_sampler(
    url: str, redis: Any, queues: Queues, tmp_path: Path
) -> None:
    rq = str(Path(sys.executable).parent / "rq")
    line = [rq, "worker", "-w", "scaletest_workers.worker.Worker", "-S", "json", "--url", url, "q"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(line, stdout=log, stderr=log) as process,
    ):
        try:
            assert next_samples(redis, 1)
        finally:
            process.terminate()
    assert process.returncode == 0


def validated(folder: Path, *options: str) -> ValidationFolder:
    """A short run of a command that uses a processor."""
    line = [
        "--local",
        "--limit",
        "2",
        "--step-time",
        "2",
        "--scale",
        "1.1",
        "--run-dir",
        str(folder),
        *options,
    ]
    done = call("validate", *line, "--", sys.executable, "-c", "sum(range(2_000_000))")
    assert done.returncode in (0, 3, 4), done.stderr
    return ValidationFolder(folder)


def test_a_local_run_keeps_samples_of_its_time(tmp_path: Path) -> None:
    stored = validated(tmp_path / "run").load()
    replies = [record.reply for records in stored.records.values() for record in records]
    assert {sample.node for sample in stored.samples} == {reply.node for reply in replies}
    assert any(reply.activity is not None for reply in replies)
    # one sampler at a time, though there were two workers
    times = [sample.at_s for sample in stored.samples]
    assert times == sorted(times) and len(set(times)) == len(times) >= 3
    began, ended = (
        min(reply.started_s for reply in replies),
        max(reply.ended_s for reply in replies),
    )
    during = [sample for sample in stored.samples if began < sample.at_s < ended + 2]
    assert max(sample.value("cpu", "user") or 0.0 for sample in during) > 0.1


def test_no_causes_leaves_no_samples_and_no_activities(tmp_path: Path) -> None:
    folder = validated(tmp_path / "run", "--no-causes")
    stored = folder.load()
    replies = [record.reply for records in stored.records.values() for record in records]
    assert replies and all(reply.activity is None for reply in replies)
    assert stored.samples == [] and not (folder.path / "samples.jsonl").exists()
