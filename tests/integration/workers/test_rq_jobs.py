"""Jobs that RQ's own client enqueues are RQ's, whatever our worker runs for them: retries,
dependencies, callbacks, registries and schedules, beside requests of our own.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import rq
from rq.job import Callback, Job, Retry
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues
from scaletest.broker.jobs import read_stored_reply
from scaletest.model import Outcome, Reason
from tests.conftest import check_books, eventually, submit, wait_for

RQ = str(Path(sys.executable).parent / "rq")
ROOT = Path(__file__).parents[3]
FUNCTION = "scaletest_workers.entry.run"
# A worker that must stay alive for another one beats so.
STEADY = ("--heartbeat", "2")


@pytest.fixture
def queue(redis: Any) -> rq.Queue:
    """Queue `q`, as RQ's client has it."""
    return rq.Queue("q", connection=redis, serializer=JSONSerializer)


def run_rq(*arguments: str) -> str:
    """Run the stock command of RQ; what it prints."""
    result = subprocess.run([RQ, *arguments], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr
    return result.stdout


def ended(job: Job, status: str = "finished") -> None:
    """Wait until a job has this status."""
    eventually(lambda: job.get_status(refresh=True) == status)


def at_rest(queues: Queues) -> None:
    """Wait until nothing runs or waits, and its books balance."""
    eventually(lambda: (state := queues.state("q")).running == 0 and state.waiting == 0)
    check_books(queues)
    assert queues.check("q") == []


# fails as often as it finds fewer marks than its last argument says, then succeeds
FLAKY = 'printf x >> "$1"; test "$(wc -c < "$1")" -gt "$2"'


def flaky(marks: Path, failures: int) -> list[str]:
    """Arguments of a request that fails so many times, and leaves a mark each time."""
    return [FLAKY, "sh", str(marks), str(failures)]


def test_a_workload_that_fails_is_a_failed_job_and_what_depends_on_it_does_not_run(
    client: Client, start: Any, queue: rq.Queue, queues: Queues, tmp_path: Path
) -> None:
    # given a busy worker, a job that fails, and one that depends on it
    start(*STEADY, "--allow-function", "tests", "--", "/bin/sh", "-c", cwd=ROOT)
    requests = [submit(client, "true") for _ in range(50)]
    marks = tmp_path / "marks"
    failing = queue.enqueue(
        FUNCTION,
        ["echo broken >&2; exit 3"],
        on_failure=Callback("tests.integration.functions.note_failure"),
        meta={"marks": str(marks)},
    )
    dependent = queue.enqueue(FUNCTION, ["true"], depends_on=failing)
    also = queue.enqueue(FUNCTION, ["true"], depends_on=rq.job.Dependency(failing, True))
    # expect RQ's registry of failures, its callback, and only the job that allows the failure
    ended(failing, "failed")
    ended(also)
    assert failing.id in queue.failed_job_registry
    assert "WorkloadFailed: failed, exit: " in (failing.latest_result().exc_string or "")
    assert marks.read_text() == "x"
    assert dependent.get_status(refresh=True) == "deferred"
    reply = read_stored_reply(queue.connection, failing.id)
    assert (reply.outcome, reply.reason) == (Outcome.FAILED, Reason.EXIT)
    assert "broken" in reply.error
    assert {reply.ok for reply in wait_for(client, len(requests)).values()} == {True}
    at_rest(queues)
    check_books(queues, submitted=52, succeeded=51, failed=1)


def test_a_time_limit_fails_the_job(start: Any, queue: rq.Queue, redis: Any) -> None:
    start(*STEADY)
    job = queue.enqueue(FUNCTION, ["60"], 0.1)
    ended(job, "failed")
    reply = read_stored_reply(redis, job.id)
    assert (reply.outcome, reply.reason) == (Outcome.TIMED_OUT, Reason.NONE)
    assert "timed out after 0.1 s" in reply.error


def test_rq_retries_a_workload_that_fails_and_requeues_it(
    start: Any, queue: rq.Queue, queues: Queues, url: str, tmp_path: Path
) -> None:
    start(*STEADY, "--", "/bin/sh", "-c")
    # given a job that succeeds at its third try, and one that fails each time
    third = queue.enqueue(FUNCTION, flaky(tmp_path / "third", 2), retry=Retry(max=3))
    never = queue.enqueue(FUNCTION, flaky(tmp_path / "never", 4), retry=Retry(max=3))
    ended(third)
    ended(never, "failed")
    assert (tmp_path / "third").read_text() == "xxx"
    assert (tmp_path / "never").read_text() == "xxxx"
    assert third.return_value(refresh=True)["outcome"] == "succeeded"
    # when it is requeued by RQ's command
    run_rq("requeue", "-u", url, "-S", "json", "--queue", "q", never.id)
    ended(never)
    assert (tmp_path / "never").read_text() == "xxxxx"
    assert never.id not in queue.failed_job_registry
    at_rest(queues)
    check_books(queues, submitted=8, succeeded=2, failed=6)


@pytest.mark.parametrize("arguments", [["0"], ["not a number"]])
def test_a_job_that_rq_ended_does_not_run_again_when_its_worker_dies_then(
    start: Any, queue: rq.Queue, queues: Queues, redis: Any, arguments: list[str]
) -> None:
    # given a job that RQ ended, whose worker died before it could count that
    job = queue.enqueue(FUNCTION, arguments)
    start("--burst", wait=False).wait(60)
    counters = queues.state("q").counters
    redis.zadd("scaletest:leases:q", {f"{job.id}:1:dead": 1})
    redis.hincrby("scaletest:queue:q:counters", "submitted", 1)
    # expect the reaper to count it, as it ended, and not to put it back
    start("--heartbeat", "0.2")
    eventually(lambda: redis.zcard("scaletest:leases:q") == 0)
    check_books(queues, waiting=0, submitted=2, requeued=0)
    name = "failed" if counters.get("failed") else "succeeded"
    assert queues.state("q").counters[name] == 2
