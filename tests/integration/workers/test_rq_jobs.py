"""Jobs that RQ's own client enqueues are RQ's, whatever our worker runs for them: retries,
dependencies, callbacks, registries and schedules, beside requests of our own.
"""

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import rq
import rq.cron
from redis import WatchError
from rq.job import Callback, Job, Retry
from rq.repeat import Repeat
from rq.scheduler import RQScheduler
from rq.serializers import JSONSerializer

from scaletest.broker import Client, Queues, connect
from scaletest.broker.jobs import read_stored_reply
from scaletest.model import Outcome, Reason
from scaletest_workers.scheduling import Scheduling
from scaletest_workers.worker import Worker, rq_serving
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


def test_a_job_that_rq_retries_at_once_is_not_put_back_as_well(
    start: Any, queue: rq.Queue, queues: Queues, redis: Any, tmp_path: Path
) -> None:
    # given a job that RQ put back, whose worker died before it could count the failure
    marks = tmp_path / "marks"
    queues.pause("q")
    job = queue.enqueue(FUNCTION, [f"printf x >> {marks}"], retry=Retry(max=1))
    redis.zadd("scaletest:leases:q", {f"{job.id}:1:dead": 1})
    redis.hincrby("scaletest:queue:q:counters", "submitted", 1)
    # when a worker reaps before it takes anything
    start("--heartbeat", "0.2", "--", "/bin/sh", "-c")
    eventually(lambda: redis.zcard("scaletest:leases:q") == 0)
    assert queue.job_ids == [job.id]
    queues.resume("q")
    ended(job)
    at_rest(queues)
    assert marks.read_text() == "x"
    check_books(queues, submitted=2, succeeded=1, failed=1, requeued=0)


# -- RQ's scheduler
# --------------------------------------------------------------------------------------------------


def lock_of(redis: Any) -> str:
    """Who has the lock of the queue's scheduler."""
    return (redis.get(RQScheduler.get_locking_key("q")) or b"").decode()


def test_a_delayed_job_runs_soon_after_its_time_beside_a_busy_worker(
    client: Client, start: Any, queue: rq.Queue, queues: Queues
) -> None:
    start(*STEADY, "--with-scheduler")
    warm = queue.enqueue_in(timedelta(0), FUNCTION, ["0"])
    ended(warm)  # the scheduler has its lock, and RQ's modules are loaded
    requests = [submit(client, "0.05") for _ in range(60)]
    due = datetime.now(UTC) + timedelta(seconds=2)
    by_delay = queue.enqueue_in(timedelta(seconds=2), FUNCTION, ["0"])
    by_time = queue.enqueue_at(due, FUNCTION, ["0"])
    for job in (by_delay, by_time):
        eventually(lambda job=job: job.get_status(refresh=True) != "scheduled")
        # the only time that a test asserts: RQ's scheduler looks once a second
        enqueued = Job.fetch(job.id, queue.connection, JSONSerializer).enqueued_at
        assert -1 < (enqueued - due).total_seconds() < 1.2
        ended(job)
    assert {reply.ok for reply in wait_for(client, len(requests)).values()} == {True}
    at_rest(queues)
    check_books(queues, succeeded=63)


def test_retries_with_intervals_and_repeats_run_as_often_as_they_should(
    start: Any, queue: rq.Queue, queues: Queues, tmp_path: Path
) -> None:
    start(*STEADY, "--with-scheduler", "--", "/bin/sh", "-c")
    third = queue.enqueue(
        FUNCTION, flaky(tmp_path / "third", 2), retry=Retry(max=3, interval=[1, 1, 30])
    )
    marks = tmp_path / "repeated"
    repeated = queue.enqueue(FUNCTION, [f"printf x >> {marks}"], repeat=Repeat(3, interval=1))
    eventually(lambda: marks.exists() and marks.read_text() == "xxxx")
    ended(third)
    ended(repeated)
    assert (tmp_path / "third").read_text() == "xxx"
    assert len(queue.scheduled_job_registry) == 0
    at_rest(queues)
    check_books(queues, submitted=7, succeeded=5, failed=2)


def test_one_of_several_workers_schedules_and_another_goes_on_when_it_is_killed(
    start: Any, queue: rq.Queue, redis: Any
) -> None:
    names = {f"w{number}": None for number in range(2)}
    options = ("--heartbeat", "0.4", "--with-scheduler", "--name")
    processes = {name: start(*options, name) for name in names}
    holder = eventually(lambda: lock_of(redis)).removeprefix("worker:")
    processes[holder].kill()
    job = queue.enqueue_in(timedelta(seconds=1), FUNCTION, ["0"])
    ended(job)
    (other,) = set(names) - {holder}
    assert lock_of(redis) == f"worker:{other}"
    # a worker that is stopped gives the lock back
    processes[other].terminate()
    assert processes[other].wait(60) == 0
    assert lock_of(redis) == ""


def test_a_scheduler_that_lost_its_lock_while_it_was_frozen_enqueues_nothing(
    redis: Any, queue: rq.Queue, url: str
) -> None:
    # given a worker's scheduler that has read what is due
    worker = Worker(["q"], connection=connect(url), serving=rq_serving({}))
    scheduling = Scheduling(worker)
    scheduling._step()
    assert lock_of(redis) == f"worker:{worker.name}"
    job = queue.enqueue_in(timedelta(0), FUNCTION, ["0"])
    scheduler = scheduling._scheduler
    redis.set(RQScheduler.get_locking_key("q"), "another")
    with pytest.raises(WatchError):
        scheduler.enqueue_scheduled_jobs()
    assert redis.llen("rq:queue:q") == 0
    assert job.id in queue.scheduled_job_registry
    # expect it to work again once the lock is free
    scheduling._step()
    assert lock_of(redis) == "another"
    redis.delete(RQScheduler.get_locking_key("q"))
    scheduling._step()
    assert queue.job_ids == [job.id]
    scheduling.stop()
    assert lock_of(redis) == ""


def test_a_pickled_job_and_one_that_cannot_be_read_are_refused_with_a_remedy(
    start: Any, queue: rq.Queue, queues: Queues, redis: Any
) -> None:
    pickled = rq.Queue("q", connection=redis).enqueue_in(timedelta(0), print, "never")
    broken = queue.enqueue_in(timedelta(0), FUNCTION, ["0"])
    redis.hset(f"rq:job:{broken.id}", "created_at", "no time")
    well = queue.enqueue_in(timedelta(0), FUNCTION, ["0"])
    start(*STEADY, "--with-scheduler")
    ended(well)
    eventually(lambda: queues.state("q").counters.get("poison") == 2)
    reply = read_stored_reply(redis, pickled.id)
    assert reply.reason is Reason.POISON
    assert "a pickle, which a worker never loads (enqueue it with serializer=JSON" in reply.error
    at_rest(queues)


CRON = """
from functools import partial
import rq.cron
from rq.serializers import JSONSerializer
from scaletest_workers.entry import run

rq.cron.Queue = partial(rq.Queue, serializer=JSONSerializer)
rq.cron.register(run, queue_name="q", args=(["0"],), cron="* * * * *")
"""


def test_cron_jobs_run_each_minute_of_a_clock_that_the_test_sets(
    start: Any, queue: rq.Queue, queues: Queues, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given RQ's cron scheduler with the configuration of the guide
    start(*STEADY)
    guide = (ROOT / "docs/how-to/rq.md").read_text()
    assert CRON.strip() in guide
    (tmp_path / "jobs.py").write_text(CRON)
    monkeypatch.setattr(rq.cron, "Queue", rq.Queue)  # what the configuration sets goes afterwards
    clock = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
    monkeypatch.setattr(rq.cron, "now", lambda: clock)
    cron = rq.cron.CronScheduler(queue.connection)
    cron.load_config_from_file(str(tmp_path / "jobs.py"))
    # when five minutes pass
    enqueued = 0
    for _ in range(10):
        clock += timedelta(seconds=30)
        enqueued += len(cron.enqueue_jobs())
    # expect a job for each
    assert enqueued == 5
    eventually(lambda: queues.state("q").counters.get("succeeded") == 5)
    at_rest(queues)
