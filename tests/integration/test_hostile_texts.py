"""Texts in Redis that a terminal would obey: none of them reaches it through a program."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Queues, keys
from scaletest.model.checks import printable
from tests.conftest import call, eventually, program

# The title of the window, colours, clear, an eight-bit control sequence, right to left, another
# line.
EVIL = "\x1b]0;PWNED\x07\x1b[31m\x1b[2J\x9b31m\u202e\rWORD"
NAME = EVIL + "name"


def obeyed(*texts: str) -> list[str]:
    """What a terminal would obey in these texts."""
    return [text for text in texts if printable(text, keep="\n\t") != text]


@pytest.fixture
def hostile(url: str, redis: Any, queues: Queues) -> str:
    """A queue of ours whose neighbours wrote whatever they like."""
    redis.hset(keys.QUEUES, "q", json.dumps({"maximum": 0, "note": EVIL + "note"}))
    redis.hset(keys.QUEUES, NAME, '{"maximum": 0}')
    redis.zadd(keys.workers("q"), {EVIL + "worker": 9e18})
    redis.sadd(keys.suspects("q"), EVIL + "suspect")
    redis.hset(keys.counters("q"), EVIL + "counter", 3)
    return url


@pytest.mark.parametrize(
    "line",
    [
        # more of them: tests/unit/test_hostile_texts.py
        ["queue", "--redis-url", "URL", "show", "q"],
        ["client", "--queue", "nope", "--listen", "none"],
        ["worker", "--queue", "nope"],
    ],
    ids=" ".join,
)
def test_control_characters_in_redis_are_escaped_on_the_terminal(
    hostile: str, line: list[str]
) -> None:
    places = [] if "--redis-url" in line else ["--redis-url", hostile]
    done = call(*(hostile if word == "URL" else word for word in line), *places)
    assert "Traceback" not in done.stderr
    assert "WORD" in done.stdout + done.stderr
    assert obeyed(done.stdout, done.stderr) == []


def test_the_exporter_leaves_foreign_entries_out(hostile: str, start: Any, tmp_path: Path) -> None:
    # given an exporter beside foreign entries
    line = program("exporter", "--listen", "127.0.0.1:0", "--redis-url", hostile)
    log = (tmp_path / "log").open("w+")
    exporter = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=log)
    try:
        address = eventually(
            lambda: [word for word in (tmp_path / "log").read_text().split() if "http://" in word]
        )[0]
        # when it is scraped
        with urllib.request.urlopen(f"{address.rstrip('/')}/metrics") as answer:
            text = answer.read().decode()
    finally:
        exporter.terminate()
        exporter.wait(60)
        log.close()
    # expect the metrics of our queue, and that one entry was left out
    assert 'queue="q"' in text
    assert "scaletest_queues_unreadable 1.0" in text
    assert obeyed((tmp_path / "log").read_text(), text) == []
