"""Requests of scaletest.Client that run later, again, or not to their end."""

import subprocess
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import rq
from rq import Retry
from rq.serializers import JSONSerializer

import scaletest
from scaletest.broker import Queues
from scaletest.broker.client import Client
from tests.conftest import Gate, check_books, eventually
from tests.integration.workers.test_rq_jobs import at_rest, flaky

Start = Callable[..., "subprocess.Popen[bytes]"]
# A worker that must stay alive for another one beats so.
SHELL = ("--heartbeat", "2", "--with-scheduler", "--", "/bin/sh", "-c")


def test_a_request_is_retried_with_intervals_and_its_reply_says_how_often(
    url: str, start: Start, queues: Queues, tmp_path: Path
) -> None:
    start(*SHELL)
    with scaletest.Client(url) as client:
        third = client.submit("q", *flaky(tmp_path / "third", 2), retry=Retry(3, interval=[1, 1]))
        never = client.submit("q", "echo broken >&2; exit 3", retry=Retry(2))
        late = client.submit("q", "sleep 60", time_limit=0.1, retry=Retry(1))
        replies = client.map("q", [["exit 1"], ["true"]], retry=Retry(1, interval=1), delay=0.5)
        by_map = {reply.arguments: (reply.ok, reply.attempts) for reply in replies}
        assert (third.result(240).ok, third.result().attempts) == (True, 3)
        assert (tmp_path / "third").read_text() == "xxx"
        assert (never.result(240).outcome, never.result().attempts) == ("failed", 3)
        assert "broken" in never.result().error
        assert (late.result(240).outcome, late.result().attempts) == ("timed_out", 2)
        assert by_map == {("exit 1",): (False, 2), ("true",): (True, 1)}
    at_rest(queues)
    check_books(queues, submitted=11, succeeded=2, failed=7, timed_out=2)


def test_a_kept_request_is_retried_by_rq(
    url: str, start: Start, queues: Queues, tmp_path: Path
) -> None:
    start(*SHELL)
    with scaletest.Client(url) as client:
        third = client.submit(
            "q", *flaky(tmp_path / "third", 2), keep=True, retry=Retry(3, interval=1), delay=1
        )
        never = client.submit("q", "exit 3", keep=True, retry=Retry(1))
        assert client.result(third, timeout=240).ok
        assert client.result(third).attempts == 3
        reply = client.result(never, timeout=240)
        assert (reply.outcome, reply.reason, reply.attempts) == ("failed", "exit", 2)
    at_rest(queues)
    check_books(queues, submitted=5, succeeded=1, failed=4)


def test_a_delayed_request_waits_for_a_scheduler_and_the_log_says_so(
    url: str, start: Start, queues: Queues, redis: Any, caplog: pytest.LogCaptureFixture
) -> None:
    start("--heartbeat", "2")
    with scaletest.Client(url) as client:
        future = client.submit("q", 0, delay=0.1)
        also = client.submit("q", 0, delay=0.1)
        assert caplog.text.count("start one of its workers with --with-scheduler") == 1
        check_books(queues, submitted=0, waiting=0)
        assert redis.zcard("rq:scheduled:q") == 2
        start("--heartbeat", "2", "--with-scheduler")
        assert (future.result(240).ok, also.result(240).ok) == (True, True)
    at_rest(queues)
    check_books(queues, submitted=2, succeeded=2)


def test_retries_survive_a_worker_that_dies_with_the_request(
    url: str, start: Start, queues: Queues, gate: Gate, tmp_path: Path
) -> None:
    # given a request whose second attempt is lost with its worker
    marks = tmp_path / "marks"
    script = f'printf x >> {marks}; test "$(wc -c < {marks})" -gt 1 && {" ".join(gate.command)}'
    options = ("--heartbeat", "0.4", "--max-attempts", "2", "--with-scheduler")
    doomed = start(*options, "--", "/bin/sh", "-c")
    with scaletest.Client(url) as client:
        future = client.submit("q", script, retry=Retry(1, interval=1))
        eventually(lambda: gate.reached)
        doomed.kill()
        start(*options, "--", "/bin/sh", "-c")
        gate.open()
        reply = future.result(240)
    # expect the attempt that failed not to count as lost
    assert (reply.ok, reply.attempts) == (True, 3)
    at_rest(queues)
    check_books(queues, submitted=2, succeeded=1, failed=1, requeued=1, lost=0)


def test_to_cancel_ends_what_runs_and_takes_back_what_is_scheduled(
    url: str, start: Start, queues: Queues, redis: Any, gate: Gate
) -> None:
    start(*SHELL)
    with scaletest.Client(url) as client:
        running = client.submit("q", " ".join(gate.command), retry=Retry(3))
        delayed = client.submit("q", "true", delay=3600)
        eventually(lambda: gate.reached)
        assert (running.cancel(), delayed.cancel()) == (True, True)
        # the gate is closed: only a stop ends it
        eventually(lambda: queues.state("q").running == 0)
        assert client.run("q", "true").ok
    at_rest(queues)
    check_books(queues, submitted=2, succeeded=1, failed=1)
    assert redis.keys("rq:job:*") == []
    assert redis.zcard("rq:scheduled:q") == 0


def test_other_ends_of_a_client_do_not_stop_what_runs(
    url: str, client: Client, start: Start, queues: Queues, gate: Gate
) -> None:
    start("--heartbeat", "2", "--", *gate.command)
    with pytest.raises(ValueError, match="enough"), scaletest.Client(url) as other:
        other.submit("q", retry=Retry(3))
        eventually(lambda: gate.reached)
        raise ValueError("enough")
    assert queues.state("q").running == 1
    gate.open()
    eventually(lambda: queues.state("q").running == 0)
    check_books(queues, waiting=0, submitted=1, succeeded=1)


def test_a_stock_worker_retries_our_requests(
    url: str, client: Client, queues: Queues, redis: Any, tmp_path: Path
) -> None:
    # given a worker of RQ's own, with the shell as its workload
    environment = {"SCALETEST_WORKER_COMMAND": "/bin/sh -c", "PATH": "/usr/bin:/bin"}
    line = [str(Path(rq.__file__).parents[4] / "bin" / "rq"), "worker", "-u", url, "-S", "json"]
    with scaletest.Client(url) as own:
        future = own.submit("q", *flaky(tmp_path / "marks", 1), retry=Retry(2))
        subprocess.run([*line, "--burst", "q"], env=environment, check=True, capture_output=True)
        assert future.result(60).ok
    assert (tmp_path / "marks").read_text() == "xx"
    check_books(queues, submitted=1, succeeded=1)


def test_removing_a_queue_answers_what_is_scheduled(url: str, queues: Queues, redis: Any) -> None:
    with scaletest.Client(url) as client:
        future = client.submit("q", delay=3600)
        rq.Queue("q", connection=redis, serializer=JSONSerializer).enqueue_in(
            timedelta(hours=1), print
        )
        queues.remove("q")
        assert future.result(60).outcome == "purged"
    assert redis.keys("rq:job:*") == redis.keys("rq:scheduled:*") == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delay": -1}, "delay"),
        ({"retry": Retry(10**10)}, "retries"),
    ],
)
def test_a_wrong_schedule_is_refused(
    url: str, queues: Queues, options: dict[str, Any], message: str
) -> None:
    with scaletest.Client(url) as client, pytest.raises(scaletest.InvalidValue, match=message):
        client.submit("q", **options)
