"""The pages while their Redis is away, frozen, or somebody else's: each says in a sentence what is
wrong and what to do, comes back by itself, and keeps no other page waiting.
"""

from __future__ import annotations

import os
import re
import signal
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import EmbeddedServer, Queues, connect
from scaletest.pages.turns import READS
from scaletest.ui.app import make_app
from scaletest.ui.sources import Sources
from tests.conftest import eventually
from tests.integration.test_ui_runs import Site

READING = ("/", "/queues/q", "/live", "/live/none", "/readyz")
NOT_READING = ("/healthz", "/runs", "/style.css")


def plain(page: str) -> str:
    """What a page says, in plain text."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page)).split())


def answer(url: str) -> tuple[int, str]:
    """Status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            return int(response.status), plain(response.read().decode())
    except urllib.error.HTTPError as error:
        return error.code, plain(error.read().decode())


@pytest.mark.parametrize(
    ("login", "database", "reason", "remedy"),
    [
        ("limited:wrong", 0, "rejects the login", "check user and password in the Redis URL"),
        ("limited:s3cret", 0, "has no permissions to", "give this user of Redis the rights"),
        ("default:", 99, "DB index is out of range", "correct the database"),
    ],
)
def test_a_redis_that_refuses_is_told_with_what_to_do(
    own: EmbeddedServer, tmp_path: Path, login: str, database: int, reason: str, remedy: str
) -> None:
    admin: Any = connect(own.url)
    admin.execute_command("ACL", "SETUSER", "limited", "reset", "on", ">s3cret", "+ping")
    address = own.url.removeprefix("redis://").rpartition("/")[0]
    user = "" if login == "default:" else f"{login}@"
    pages = make_app(Sources(tmp_path, f"redis://{user}{address}/{database}")).test_client()
    for path in READING:
        answered = pages.get(path)
        text = plain(answered.text)
        assert answered.status_code == (200 if path == "/live" else 503), path
        assert reason in text and "s3cret" not in text
        assert remedy in text or path == "/readyz"
    for path in NOT_READING:
        assert pages.get(path).status_code == 200


def test_another_database_is_not_called_broken(own: EmbeddedServer, tmp_path: Path) -> None:
    pages = make_app(Sources(tmp_path, own.url.rpartition("/")[0] + "/3")).test_client()
    assert "No queue is declared" in plain(pages.get("/").text)
    assert pages.get("/readyz").status_code == 200


def test_a_redis_that_was_away_at_the_start_is_read_when_it_is_there(
    own: EmbeddedServer, tmp_path: Path
) -> None:
    # given pages that were started before their Redis
    own.process.kill()
    own.process.wait()
    with ExitStack() as stack:
        base = Site(tmp_path, stack).ui("--redis-url", own.url, log="ui")
        status, text = answer(base)
        assert status == 503 and "Redis cannot be read" in text and "What to do: start it" in text
        # when it is started, expect its queues without a word to the pages
        own.start()
        Queues(connect(own.url)).add("late")
        eventually(lambda: "late" in answer(base)[1])
        eventually(lambda: answer(f"{base}/readyz")[0] == 200)


def test_a_frozen_redis_keeps_no_other_page_waiting(own: EmbeddedServer, tmp_path: Path) -> None:
    admin: Any = connect(own.url)
    process = admin.info("server")["process_id"]
    with ExitStack() as stack:
        base = Site(tmp_path, stack).ui("--redis-url", own.url, log="ui")
        assert answer(base)[0] == 200
        os.kill(process, signal.SIGSTOP)
        stack.callback(os.kill, process, signal.SIGCONT)
        # (a busy machine may ask so late that none waits any more, and asks again)
        eventually(lambda: others_are_answered_meanwhile(base))
        os.kill(process, signal.SIGCONT)
        eventually(lambda: answer(base)[0] == 200)


def others_are_answered_meanwhile(base: str) -> bool:
    """Ask for more pages than may wait for a frozen Redis, each of which has an answer; whether
    what needs no Redis was answered while they waited.
    """
    with ThreadPoolExecutor(4 * READS) as browsers:
        waiting = [
            browsers.submit(answer, base + READING[n % len(READING)]) for n in range(4 * READS)
        ]
        for path in NOT_READING:
            assert answer(base + path)[0] == 200
        is_meanwhile = not all(page.done() for page in waiting)
        answers = [page.result() for page in waiting]
    assert {status for status, _ in answers} <= {200, 503}
    assert any("cannot be reached: Timeout" in text for _, text in answers)
    return is_meanwhile
