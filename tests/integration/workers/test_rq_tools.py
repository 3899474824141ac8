"""RQ's own tools see and stop what our workers run, and its key prefix is ours as well."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rq
from redis.crc import key_slot
from rq.command import handle_stop_job_command, send_stop_execution_command, send_stop_job_command
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, connect
from scaletest.model import Outcome, Reason
from scaletest_workers.runtime import Runtime
from scaletest_workers.worker import Worker, rq_serving
from scaletest_workers.workloads.base import Result
from tests.conftest import Gate, eventually, program, submit, wait_for

RQ = str(Path(sys.executable).parent / "rq")
# A worker that must stay alive for another beats so: without a processor for two seconds it is not
# dead yet.
STEADY = ("--heartbeat", "2")


def shown_worker(redis: Any) -> Any:
    """The only worker, as RQ's tools read it."""
    (worker,) = rq.Worker.all(connection=redis)
    return worker


def execution_keys(redis: Any) -> list[bytes]:
    return [
        *redis.keys("rq:execution*"),
        *redis.keys("rq:worker:*:executions"),
        *redis.keys("rq:wip:*"),
    ]


def test_rq_sees_what_the_fast_lane_runs_until_it_ends(
    client: Client, start: Any, redis: Any, gate: Gate
) -> None:
    start("--heartbeat", "0.4", "--name", "seen", "--", *gate.command)
    request = submit(client)
    eventually(lambda: shown_worker(redis).current_execution_count)
    worker = shown_worker(redis)
    assert (worker.get_state(), worker.get_current_job_id()) == ("busy", request)
    (execution,) = worker.get_current_executions()
    assert (execution.job_id, execution.id, execution.worker_name) == (request, "1", "seen")
    assert rq.Queue("q", connection=redis).started_job_registry.get_job_ids() == [request]
    gate.open()
    assert wait_for(client, 1)[request].ok
    assert execution_keys(redis) == []
    assert shown_worker(redis).get_current_job_id() is None


@pytest.mark.parametrize("command", ["stop-job", "stop-execution"])
def test_rq_stops_a_request_and_the_worker_serves_the_next(
    client: Client, start: Any, redis: Any, queues: Queues, command: str
) -> None:
    # given a request that would never end
    worker = start(*STEADY, "--null-output", "--", "/bin/sh", "-c")
    request = submit(client, "sleep 1000")
    eventually(lambda: shown_worker(redis).current_execution_count)
    if command == "stop-job":
        send_stop_job_command(redis, request, JSONSerializer)
    else:
        send_stop_execution_command(redis, request, "1")
    # expect it failed with the reason, and the worker at work
    reply = wait_for(client, 1)[request]
    assert (reply.outcome, reply.reason) == (Outcome.FAILED, Reason.STOPPED)
    assert "RQ" in reply.error
    after = submit(client, "true")
    assert wait_for(client, 1)[after].ok
    assert worker.poll() is None
    assert queues.state("q").balance == 0
    assert execution_keys(redis) == []


def test_rq_stops_a_request_whose_reply_it_keeps(start: Any, redis: Any, queues: Queues) -> None:
    start(*STEADY, "--", "/bin/sh", "-c")
    queue = rq.Queue("q", connection=redis, serializer=JSONSerializer)
    job = queue.enqueue("scaletest_workers.entry.run", ["sleep 1000"])
    eventually(lambda: shown_worker(redis).get_current_job_id() == job.id)
    send_stop_job_command(redis, job.id, JSONSerializer)
    eventually(lambda: queues.state("q").counters.get("failed") == 1)
    eventually(lambda: job.get_status(refresh=True) == "stopped")
    assert queue.failed_job_registry.get_job_ids() == [job.id]
    after = queue.enqueue("scaletest_workers.entry.run", ["true"])
    eventually(lambda: after.get_status(refresh=True) == "finished")
    assert queues.state("q").balance == 0


def test_a_stop_that_comes_as_a_request_ends_stops_no_other(
    client: Client, redis: Any, queues: Queues, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a command that comes when the workload is over, and its worker has not yet said so
    request = submit(client, "0")
    run, worker = (
        Runtime.run,
        Worker(
            ["q"],
            serializer=JSONSerializer,
            connection=connect(url),
            serving=replace(rq_serving({}), heartbeat_s=600.0),
        ),
    )

    def ends(runtime: Runtime, arguments: tuple[str, ...], limit_s: float) -> tuple[Result, float]:
        result = run(runtime, arguments, limit_s)
        handle_stop_job_command(worker, {"job_id": request})
        return result

    monkeypatch.setattr(Runtime, "run", ends)
    following = rq.Queue("q", connection=redis, serializer=JSONSerializer).enqueue(
        "scaletest_workers.entry.run", ["0.01"]
    )
    worker.work(burst=True, logging_level="CRITICAL")
    # expect both to end as if there had been none
    assert wait_for(client, 1)[request].ok
    assert following.get_status(refresh=True) == "finished"
    assert (queues.state("q").counters["succeeded"], queues.state("q").balance) == (2, 0)


def test_rq_counts_what_both_ways_of_a_worker_ran(client: Client, redis: Any, start: Any) -> None:
    # given a worker that ran a job by RQ's own code, one that fails there, and a request
    start("--heartbeat", "0.4", "--name", "counts", "--allow-function", "json")
    queue = rq.Queue("q", connection=redis, serializer=JSONSerializer)
    queue.enqueue("scaletest_workers.entry.run", ["0.3"])
    failing = queue.enqueue("json.loads", "no JSON")
    eventually(lambda: failing.get_status(refresh=True) == "failed")
    request = submit(client, "0.2")
    assert wait_for(client, 1)[request].ok
    # expect all of them in its figures
    eventually(lambda: shown_worker(redis).successful_job_count == 2)
    worker = shown_worker(redis)
    assert worker.failed_job_count == 1
    assert worker.total_working_time > 0.4


def test_what_rq_shows_of_a_killed_worker_goes_with_it(
    client: Client, start: Any, redis: Any, gate: Gate
) -> None:
    killed = start("--heartbeat", "0.4", "--name", "killed", "--", *gate.command)
    request = submit(client)
    eventually(lambda: redis.exists("rq:worker:killed:executions"))
    killed.send_signal(signal.SIGKILL)
    start("--heartbeat", "0.4", "--name", "living", "--", *gate.command)
    gate.open()
    assert wait_for(client, 1)[request].worker == "living"
    eventually(lambda: not redis.exists("rq:worker:killed"))
    assert execution_keys(redis) == []


def test_a_worker_holds_few_connections(client: Client, start: Any, redis: Any) -> None:
    def serve() -> None:
        request = submit(client)
        assert wait_for(client, 1)[request].ok

    def worker() -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = start(
            "--heartbeat", "2", "--device-glob", "/dev/null", "--", "true"
        )
        serve()
        return process

    # given a client with all of its own connections
    first = worker()
    first.terminate()
    first.wait()
    others = {row["id"] for row in redis.client_list()}
    # when a worker has served a request and waits for the next
    worker()
    eventually(lambda: len([row for row in redis.client_list() if row["id"] not in others]) == 3)


@pytest.mark.parametrize("prefix", ["lab", "{media}"])
def test_all_keys_begin_with_the_prefix_of_rq(redis: Any, url: str, prefix: str) -> None:
    # given an installation with a prefix of its own beside another
    redis.set("rq:queue:other", "untouched")
    environment = {**os.environ, "RQ_KEY_PREFIX": prefix}
    server = ("--redis-url", url)

    def run(*line: str) -> str:
        result = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120)
        assert result.returncode == 0, result.stderr
        return result.stdout

    # when a request of each lane is served, one waits, and RQ's tools look at them
    run(*program("queue", *server, "add", "q"))
    worker = subprocess.Popen(
        program("worker", "--queue", "q", "--heartbeat", "0.4", *server), env=environment
    )
    try:
        assert "succeeded" in run(*program("queue", *server, "submit", "q", "--", "1"))
        run(*program("queue", *server, "submit", "--no-wait", "q", "--", "0"))
        assert "1 workers" in run(RQ, "info", "-u", url)
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
    run(*program("queue", *server, "submit", "--no-wait", "q", "--", "0"))
    assert "succeeded" in run(*program("queue", *server, "show", "q"))
    # expect no key elsewhere, and all keys of the queue in one slot where the prefix is a hash tag
    keys = [key for key in redis.keys("*") if key != b"rq:queue:other"]
    assert keys
    assert [key for key in keys if not key.startswith(f"{prefix}:".encode())] == []
    assert any(key.startswith(f"{prefix}:scaletest:".encode()) for key in keys)
    if prefix.startswith("{"):
        assert len({key_slot(key) for key in keys}) == 1
    run(*program("queue", *server, "remove", "--yes", "q"))
