"""The last failures of a queue on a real Redis: every way to fail, what costs nothing, and what
people and programs see.
"""

import json
import signal
from collections.abc import Callable
from typing import Any

import pytest
from rq import Queue

from scaletest.broker import Client, Queues
from scaletest.broker.failures import FailedRequest, last_failures
from scaletest.model import Request
from tests.conftest import call_here, eventually, wait_for

SHELL = ("--null-output", "--", "/bin/sh", "-c")


def ids_of(client: Client, *requests: tuple[str, float]) -> list[str]:
    """Submit requests of these arguments and time limits; their ids, when all have replies."""
    sent = [Request(client.new_id(), "q", (line,), limit_s) for line, limit_s in requests]
    client.submit(sent)
    wait_for(client, len(sent))
    return [request.id for request in sent]


def by_id(redis: Any) -> dict[str, FailedRequest]:
    return {row.id: row for row in last_failures(redis, "q")}


def test_every_way_to_fail_is_kept_and_success_is_not(
    client: Client, start: Any, redis: Any, queues: Queues
) -> None:
    start(*SHELL)
    code, killed, late, good = ids_of(
        client,
        ("echo cannot open /dev/dri/renderD128 >&2; exit 3", 0.0),
        ("kill -9 $$", 0.0),
        ("sleep 60", 0.05),
        ("true", 0.0),
    )
    rows = by_id(redis)
    assert set(rows) == {code, killed, late}
    assert good not in rows
    assert (rows[code].outcome, rows[code].reason, rows[code].exit_code) == ("failed", "exit", 3)
    assert "cannot open /dev/dri/renderD128" in rows[code].error
    assert "cannot open <path>" in rows[code].pattern
    assert (rows[killed].reason, rows[killed].exit_code) == ("signal", -signal.SIGKILL)
    assert rows[late].outcome == "timed_out"
    assert all(row.node and row.at_s > 1.6e9 and row.attempt == 1 for row in rows.values())
    # and none of those that are purged
    queues.pause("q")
    client.submit([Request(client.new_id(), "q", ("true",))])
    queues.purge("q")
    assert set(by_id(redis)) == set(rows)


def test_a_request_that_its_workers_lose_is_kept_with_their_node(
    client: Client, start: Any, redis: Any
) -> None:
    # given requests that kill their worker
    line = ("--heartbeat", "0.4", "--max-attempts", "1", *SHELL)
    victim = start("--name", "victim", *line)
    client.submit([request := Request(client.new_id(), "q", ("kill -9 $PPID; sleep 60",))])
    # (which may take a while, and the other worker shall not take it)
    victim.wait(60)
    start("--name", "reaper", "--heartbeat", "0.4", "--max-attempts", "1", *SHELL)
    row = eventually(lambda: by_id(redis).get(request.id))
    assert (row.outcome, row.reason, row.error) == ("failed", "lost", "lost 1 times, by victim")
    assert row.node


def test_a_job_of_somebody_else_is_kept_when_it_is_refused_or_fails(
    start: Any, redis: Any, queues: Queues
) -> None:
    start("--allow-function", "json")
    foreign = Queue("q", connection=redis, serializer="rq.serializers.JSONSerializer")
    refused = foreign.enqueue("os.getcwd")
    raising = foreign.enqueue("json.loads", "{")
    rows = eventually(lambda: len(kept_rows := by_id(redis)) == 2 and kept_rows)
    assert (rows[refused.id].reason, rows[raising.id].reason) == ("poison", "")
    assert "'os.getcwd' is not allowed" in rows[refused.id].error
    assert "failed registry" in rows[raising.id].error
    assert queues.state("q").counters["failed"] == 2


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_queue_is_shown_with_its_failures_in_groups(
    client: Client, start: Callable[..., Any], url: str, form: str
) -> None:
    start(*SHELL)
    texts = [f"[AVHWDeviceContext @ 0x55d0c3a1b{number:03x}] Failed" for number in range(7)]
    texts.append("\\033[31m</script>")
    ids_of(client, *[(f"printf '{text}' >&2; exit 4", 0.0) for text in texts])
    shown = call_here("queue", "--redis-url", url, "show", "q", "--format", form)
    assert shown.returncode == 0
    assert "\x1b" not in shown.stdout
    if form == "json":
        groups = json.loads(shown.stdout)["failures"]
        assert [group["count"] for group in groups] == [7, 1]
        assert groups[0]["pattern"].endswith("[AVHWDeviceContext @ <address>] Failed")
    else:
        assert "the last 8 failures, until " in shown.stdout
        assert "    7 times: " in shown.stdout
