"""Worker processes on a real server: workloads, signals, stock RQ on both sides of the queue."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import rq
from rq.job import Callback, Job, Retry
from rq.repeat import Repeat
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, connect
from scaletest.model import Outcome, Reason, Request
from scaletest_workers.worker import Worker, rq_serving
from tests.conftest import Gate, call, check_books, eventually, processes_with, submit, wait_for

RQ = str(Path(sys.executable).parent / "rq")
ROOT = Path(__file__).parents[3]
# A worker that must stay alive for another one beats so: one that gets no processor for two seconds
# is no dead one.
STEADY = ("--heartbeat", "2")


def ask(client: Client, *arguments: str, limit_s: float = 0.0) -> Any:
    name = submit(client, *arguments, limit_s=limit_s)
    return wait_for(client, 1)[name]


def lease_ends(redis: Any) -> float:
    """When the only lease ends, in seconds of Redis's clock."""
    ((_, micros),) = redis.zrange("scaletest:leases:q", 0, -1, withscores=True)
    return float(micros) / 1e6


def stock_queue(redis: Any) -> rq.Queue:
    return rq.Queue("q", connection=redis, serializer=JSONSerializer)


def test_a_worker_runs_sleep_and_ends_a_request_at_its_time_limit(
    client: Client, start: Any
) -> None:
    start("--node-env", "HOME")
    reply = ask(client, "0.05")
    assert reply.ok
    assert reply.enqueued_s <= reply.started_s <= reply.ended_s
    assert 0.05 <= reply.run_s <= reply.ended_s - reply.started_s + 0.001
    assert reply.wait_s == pytest.approx(reply.started_s - reply.enqueued_s, abs=2e-6)
    assert reply.node.startswith("/")
    assert ask(client, "30", limit_s=0.05).outcome is Outcome.TIMED_OUT


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_worker_drains_on_a_signal(
    client: Client, start: Any, queues: Queues, redis: Any, gate: Gate, number: int
) -> None:
    # given one running and one waiting request
    worker = start("--", *gate.command)
    running, waiting = submit(client), submit(client)
    eventually(lambda: gate.reached)
    # when the worker gets the signal, and then the running one ends
    worker.send_signal(number)
    gate.open()
    # expect the running one finished, the other untouched, and a clean end
    assert worker.wait(60) == 0
    assert not redis.smembers("rq:workers")
    assert wait_for(client, 1)[running].ok
    assert queues.state("q").waiting == 1
    assert queues.state("q").balance == 0
    assert waiting != running


def test_a_draining_worker_keeps_its_lease(
    client: Client, start: Any, queues: Queues, redis: Any, gate: Gate
) -> None:
    draining = start(*STEADY, "--name", "draining", "--", *gate.command)
    name = submit(client)
    eventually(lambda: gate.reached)
    start(*STEADY, "--name", "other")
    draining.send_signal(signal.SIGTERM)
    # when the lease that it had at the signal is long over, and the other one has looked for dead
    # ones
    first = lease_ends(redis)
    eventually(lambda: redis.time()[0] > first + 2)
    gate.open()
    reply = wait_for(client, 1)[name]
    assert (reply.worker, reply.attempts) == ("draining", 1)
    assert draining.wait(60) == 0
    assert "requeued" not in queues.state("q").counters


def test_a_killed_worker_can_be_started_again_under_its_name(start: Any, queues: Queues) -> None:
    first = start(*STEADY, "--name", "fixed")
    assert start("--name", "fixed", wait=False).wait(60) == 2
    first.kill()
    first.wait()
    eventually(lambda: queues.worker_names("q") == [])
    start(*STEADY, "--name", "fixed")
    assert queues.worker_names("q") == ["fixed"]


def test_a_worker_whose_device_fails_does_not_fail_the_whole_queue(
    client: Client, start: Any, queues: Queues, url: str
) -> None:
    # given three workers, one of which fails everything at once
    start("--name", "broken", "--", "false")
    for name in ("a", "b"):
        start("--name", name, "--", "sleep", "0.02")
    client.submit([Request(client.new_id(), "q") for _ in range(200)])
    replies = wait_for(client, 200)
    # expect it to have taken the smaller share, and to be named
    assert sum(reply.worker == "broken" for reply in replies.values()) < 66
    assert queues.state("q").suspects == ("broken",)
    assert "suspect" in call("queue", "--redis-url", url, "show", "q").stdout


def test_after_the_grace_period_the_request_goes_back_to_the_front(
    client: Client, start: Any, queues: Queues
) -> None:
    mark = f"3141.{os.getpid()}"
    worker = start("--grace", "0.3", "--", "/bin/sleep")
    first, second = submit(client, mark), submit(client, "0")
    eventually(lambda: processes_with(mark))
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert not processes_with(mark)
    check_books(queues, waiting=2, running=0)
    # expect the first one first again, with its attempt not counted
    start("--time-limit", "0.1", "--", "/bin/sleep")
    replies = wait_for(client, 2)
    assert replies[first].attempts == 1
    assert replies[first].ended_s <= replies[second].ended_s


def test_the_request_of_a_killed_worker_runs_again(
    client: Client, start: Any, queues: Queues
) -> None:
    # given two workers, one of them with a long command
    mark = f"2718.{os.getpid()}"
    doomed = start(
        "--heartbeat", "0.4", "--", "/bin/sh", "-c", f'exec sleep "${{1:-{mark}}}"', "sh"
    )
    name = submit(client)
    eventually(lambda: processes_with(f"sleep {mark}".replace(" ", "\0")))
    # when it is killed and another worker lives
    doomed.kill()
    doomed.wait()
    eventually(lambda: not processes_with(f"sleep {mark}".replace(" ", "\0")))
    start("--heartbeat", "0.4", "--", "true")
    # expect the request to run again, with its attempts counted
    reply = wait_for(client, 1)[name]
    assert (reply.outcome, reply.attempts) == (Outcome.SUCCEEDED, 2)
    check_books(queues, requeued=1)


def test_a_frozen_worker_delivers_only_what_nobody_took_again(
    client: Client, start: Any, queues: Queues, gate: Gate
) -> None:
    frozen = start("--heartbeat", "0.4", "--name", "frozen", "--", *gate.command)
    name = submit(client)
    eventually(lambda: queues.state("q").running == 1)
    frozen.send_signal(signal.SIGSTOP)
    start("--heartbeat", "0.4", "--name", "living", "--", "true")
    eventually(lambda: queues.state("q").counters.get("requeued"))
    reply = wait_for(client, 1)[name]
    assert (reply.worker, reply.attempts) == ("living", 2)
    gate.open()
    frozen.send_signal(signal.SIGCONT)
    eventually(lambda: queues.state("q").counters.get("stale") == 1)
    assert client.replies(0.2) == []
    assert queues.state("q").balance == 0


def test_rq_info_counts_nothing_as_failed_while_a_lease_is_over(
    client: Client, start: Any, queues: Queues, url: str, redis: Any, gate: Gate
) -> None:
    worker = start("--heartbeat", "0.4", "--name", "sleepy", "--", *gate.command)
    name = submit(client)
    eventually(lambda: redis.zcard("rq:wip:q") == 1)
    worker.send_signal(signal.SIGSTOP)
    eventually(lambda: lease_ends(redis) < redis.time()[0])
    shown = subprocess.run([RQ, "info", "-u", url], capture_output=True, text=True, check=True)
    worker.send_signal(signal.SIGCONT)
    gate.open()
    assert re.search(r"q\s+\|", shown.stdout)
    assert "sleepy" in shown.stdout
    assert redis.zcard("rq:failed:q") == 0
    assert wait_for(client, 1)[name].ok


# -- stock RQ
# --------------------------------------------------------------------------------------------------


def test_a_stock_worker_runs_our_requests(
    client: Client, url: str, queues: Queues, redis: Any
) -> None:
    name = submit(client, "0.01")
    no_wait = Request(client.new_id(), "q", ("0.01",))
    client.submit_one(no_wait, reply=False)
    subprocess.run(
        [RQ, "worker", "-u", url, "-S", "json", "--burst", "q"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    assert wait_for(client, 1)[name].ok
    check_books(queues, succeeded=2)
    assert not redis.exists(f"rq:job:{name}")
    shown = call("queue", "--redis-url", url, "result", no_wait.id)
    assert shown.returncode == 0
    assert json.loads(shown.stdout)["outcome"] == "succeeded"


def test_the_worker_class_runs_from_the_command_line_of_rq(
    client: Client, url: str, queues: Queues, redis: Any
) -> None:
    name = submit(client, "0.01")
    stock_queue(redis).enqueue("tests.integration.functions.add", 1, 2, job_id="added")
    subprocess.run(
        [RQ, "worker", "-u", url, "-w", "scaletest_workers.worker.Worker", "--burst", "q"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        env={
            "PATH": "/usr/bin:/bin",
            "SCALETEST_WORKER_ALLOW_FUNCTION": "tests.integration",
            "PYTHONPATH": str(ROOT),
        },
    )
    assert wait_for(client, 1)[name].ok
    assert Job.fetch("added", redis, JSONSerializer).return_value() == 3
    assert queues.state("q").balance == 0


def test_a_foreign_function_is_refused_unless_allowed(
    start: Any, redis: Any, queues: Queues, tmp_path: Path
) -> None:
    victim = tmp_path / "created"
    job = stock_queue(redis).enqueue("os.system", f"touch {victim}")
    start("--burst", wait=False).wait(60)
    assert not victim.exists()
    assert job.get_status().value == "failed"
    assert "not allowed" in (job.latest_result().exc_string or "")
    assert job.id in stock_queue(redis).failed_job_registry
    check_books(queues, poison=1)


def test_foreign_callbacks_are_refused_like_foreign_functions(
    start: Any, redis: Any, tmp_path: Path
) -> None:
    victim = tmp_path / "created"
    job = stock_queue(redis).enqueue(
        "scaletest_workers.entry.run", ["0"], on_success=Callback("os.system")
    )
    start("--burst", "--allow-function", "tests", wait=False).wait(60)
    assert job.get_status().value == "failed"
    assert not victim.exists()


class _Creates:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (self.path, "w"))


@pytest.mark.parametrize("compressed", [False, True])
def test_a_pickle_is_never_loaded(
    start: Any, redis: Any, queues: Queues, tmp_path: Path, compressed: bool
) -> None:
    victim = tmp_path / "created"
    data = pickle.dumps(("os.getcwd", None, (_Creates(str(victim)),), {}))
    job = stock_queue(redis).enqueue("os.getcwd")
    redis.hset(job.key, "data", zlib.compress(data) if compressed else data)
    redis.hset(job.key, "meta", data)
    redis.hset(job.key, "result", data)
    start("--burst", "--allow-function", "os", wait=False).wait(60)
    assert not victim.exists()
    assert redis.hget(job.key, "status") == b"failed"
    assert queues.state("q").balance == 0


BROKEN = (
    b"",
    b"[",
    b"null",
    b'["scaletest_workers.entry.run",null]',
    b'["scaletest_workers.entry.run",null,[["0"],"x"],{}]',
    b"\xff",
)


def test_broken_data_never_stop_a_worker(
    client: Client, start: Any, redis: Any, queues: Queues
) -> None:
    # given requests with broken data, of clients that wait for a reply and others, each before one
    # that is well
    broken, well = set(), set()
    for data in BROKEN:
        for waits in (True, False):
            request = Request(client.new_id(), "q", ("0",))
            client.submit_one(request, reply=waits)
            redis.hset(f"rq:job:{request.id}", "data", data)
            broken |= {request.id} if waits else set()
            well.add(submit(client, "0"))
    # when one worker serves them all
    assert start("--burst", wait=False).wait(60) == 0
    # expect an answer to each that somebody waits for
    replies = wait_for(client, len(broken | well))
    assert {name for name, reply in replies.items() if reply.ok} == well
    assert {name for name, reply in replies.items() if reply.reason is Reason.POISON} == broken
    check_books(queues, waiting=0, running=0)


def test_books_balance_when_a_stock_job_is_put_back(
    start: Any, redis: Any, queues: Queues, tmp_path: Path, gate: Gate
) -> None:
    stock_queue(redis).enqueue(
        "tests.integration.functions.pass_gate", str(tmp_path / "marks"), gate.path
    )
    worker = start("--grace", "0.2", "--allow-function", "tests", cwd=ROOT)
    eventually(lambda: queues.state("q").running == 1)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert queues.state("q").waiting == 1
    gate.open()
    assert start("--burst", "--allow-function", "tests", cwd=ROOT, wait=False).wait(60) == 0
    check_books(queues, submitted=1, succeeded=1)


@pytest.mark.parametrize(
    "again", [{"retry": Retry(max=2)}, {"repeat": Repeat(times=1, interval=0)}]
)
def test_an_rq_retry_or_repeat_runs_once_more_and_not_twice(
    start: Any, redis: Any, queues: Queues, tmp_path: Path, again: dict[str, Any]
) -> None:
    function = "fail_once" if "retry" in again else "note"
    stock_queue(redis).enqueue(
        f"tests.integration.functions.{function}", str(tmp_path / "marks"), **again
    )
    worker = start("--heartbeat", "0.3", "--allow-function", "tests", cwd=ROOT)
    eventually(lambda: (tmp_path / "marks").exists() and (tmp_path / "marks").read_text() == "xx")
    eventually(lambda: queues.state("q").balance == 0 and queues.state("q").running == 0)
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    assert (tmp_path / "marks").read_text() == "xx"
    counters = queues.state("q").counters
    assert (counters["submitted"], counters["succeeded"]) == (
        (2, 1) if "retry" in again else (2, 2)
    )
    assert "requeued" not in counters


def test_jobs_without_a_stored_result_are_counted_as_succeeded(
    start: Any, redis: Any, queues: Queues
) -> None:
    for number in range(15):
        stock_queue(redis).enqueue("tests.integration.functions.add", number, 1, result_ttl=0)
    assert (
        start(
            "--burst", "--heartbeat", "0.05", "--allow-function", "tests", cwd=ROOT, wait=False
        ).wait(60)
        == 0
    )
    check_books(queues, succeeded=15, failed=0)
    assert not redis.keys("rq:job:*")
    assert redis.zcard("rq:wip:q") == 0


def test_a_killed_slow_job_runs_again_and_can_be_enqueued_again(
    start: Any, redis: Any, queues: Queues, tmp_path: Path, gate: Gate
) -> None:
    def enqueue() -> None:
        marks = str(tmp_path / "marks")
        stock_queue(redis).enqueue(
            "tests.integration.functions.pass_gate", marks, gate.path, job_id="same"
        )

    enqueue()
    options = ("--heartbeat", "0.3", "--allow-function", "tests")
    doomed = start(*options, cwd=ROOT)
    eventually((tmp_path / "marks").exists)
    doomed.kill()
    doomed.wait()
    gate.open()
    start(*options, cwd=ROOT)
    eventually(lambda: queues.state("q").counters.get("succeeded") == 1)
    enqueue()
    eventually(lambda: queues.state("q").counters.get("succeeded") == 2)
    check_books(queues, submitted=2, requeued=1)


def test_a_stop_during_a_run_is_not_reported_as_a_timeout(
    client: Client, start: Any, queues: Queues, tmp_path: Path
) -> None:
    # given a program that ignores TERM, so that its limit passes between the signal that ends it
    # and its end
    ready, limit_s = tmp_path / "ready", 6
    script = f"trap '' TERM; touch {ready}; sleep 60 & wait; wait"
    worker = start(
        "--time-limit", str(limit_s), "--kill-grace", str(limit_s), "--", "/bin/sh", "-c", script
    )
    submit(client)
    eventually(ready.exists)
    worker.send_signal(signal.SIGTERM)
    eventually(lambda: queues.state("q").running == 1)
    time.sleep(0.7)  # a second signal sooner counts as the same
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0
    check_books(queues, waiting=1, timed_out=0)


def test_a_worker_without_standard_error_still_drains_its_programs(
    client: Client, start: Any
) -> None:
    line = 'exec 2>&-; exec "$@"'
    start("--", "sh", "-c", "head -c 300000 /dev/zero >&2", shell_prefix=["sh", "-c", line, "sh"])
    assert ask(client).ok


def test_a_job_that_cannot_be_fetched_since_redis_is_away_goes_back_at_once(
    redis: Any, queues: Queues, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a job, and a Redis that goes away for a moment between its taking and its fetching
    stock_queue(redis).enqueue("tests.integration.functions.add", 1, 2, job_id="plain")
    real, failures = Job.fetch, [ConnectionError("cut")]

    def fetch(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return real(*arguments, **options)

    monkeypatch.setattr(Job, "fetch", fetch)
    # expect one worker, whose leases live for 18 minutes, to run it in one go, with nothing lost
    options: dict[str, Any] = {
        "serializer": JSONSerializer,
        "connection": connect(url),
        "serving": replace(
            rq_serving({}), allow_function=("tests.integration",), heartbeat_s=600.0
        ),
    }
    Worker(["q"], **options).work(burst=True, logging_level="CRITICAL")
    check_books(queues, succeeded=1, requeued=0)


def kinds_of_jobs(queue: rq.Queue) -> None:
    here = "tests.integration.functions."
    queue.enqueue(here + "add", 1, 2, job_id="plain")
    queue.enqueue(here + "callback", job_id="none")
    queue.enqueue(here + "boom", job_id="failing")
    queue.enqueue(here + "boom", job_id="retried", retry=Retry(max=1))
    queue.enqueue(here + "add", 1, 2, job_id="brief", result_ttl=0)
    queue.enqueue(here + "add", 1, 2, job_id="kept", result_ttl=-1)
    queue.enqueue(here + "add", 1, 2, job_id="called", on_success=Callback(here + "callback"))
    queue.enqueue(here + "add", 3, 4, job_id="after", depends_on="plain")
    queue.enqueue(here + "add", 1, 2, job_id="meta", meta={"a": 1})


def leftovers(redis: Any) -> dict[str, Any]:
    """Every key of RQ's with type, members or fields, and whether it expires; ids and times made
    equal.
    """
    contents: dict[str, Any] = {}
    for raw in redis.keys("rq:*"):
        key, kind = raw.decode(), redis.type(raw).decode()
        if kind == "hash":
            value: Any = {name.decode() for name in redis.hkeys(raw)}
            if key.startswith("rq:job:"):
                value |= {("status", redis.hget(raw, "status"))}
        elif kind == "stream":
            value = [{name.decode() for name in fields} for _, fields in redis.xrange(raw)]
        elif kind == "zset":
            value = set(redis.zrange(raw, 0, -1))
        elif kind == "set":
            value = redis.smembers(raw)
        else:
            value = redis.lrange(raw, 0, -1) if kind == "list" else redis.get(raw)
        contents[re.sub(r"rq:worker:.*", "rq:worker:NAME", key)] = (kind, value, redis.ttl(raw) > 0)
    return contents


def test_ordinary_jobs_leave_what_stock_rq_leaves(redis: Any, url: str) -> None:
    left = []
    for kind in (rq.SimpleWorker, Worker):
        redis.flushall()
        kinds_of_jobs(stock_queue(redis))
        options: dict[str, Any] = {"serializer": JSONSerializer, "connection": connect(url)}
        if kind is Worker:
            options["serving"] = replace(rq_serving({}), allow_function=("tests.integration",))
        kind(["q"], **options).work(burst=True, logging_level="CRITICAL")
        left.append(leftovers(redis))
    # two fields that make a worker's calls safe to repeat, one of its heartbeats and three that
    # say where it runs, in the worker's own hash, are all that is added
    added = {"call", "answer", "node", "pod", "device"}
    left[1]["rq:worker:NAME"][1].symmetric_difference_update(added)
    assert left[1] == left[0]
