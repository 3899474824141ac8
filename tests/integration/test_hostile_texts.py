"""Texts that a terminal would obey, from Redis and from runs of somebody else: none of them reaches it."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import tarfile
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import Queues, keys
from scaletest.model.checks import printable
from tests.conftest import call, eventually, program

# The title of the window, colours, clear, an eight-bit control sequence, right to left, another line.
EVIL = "\x1b]0;PWNED\x07\x1b[31m\x1b[2J\x9b31m\u202e\rWORD"
NAME = EVIL + "name"
# What may stand in an argument: an eight-bit control sequence is text there.
QUIET = "\x9b31m\u202eWORD"


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
        ["queue", "list"],
        ["queue", "show", "q"],
        ["queue", "show", "q", "-o", "yaml"],
        ["queue", "show", "q", "-o", "json"],
        ["queue", "check"],
        ["queue", "submit", "nope", "--", "1"],
        ["client", "--queue", "nope", "--listen", "none"],
        ["worker", "--queue", "nope"],
    ],
    ids=" ".join,
)
def test_what_others_wrote_into_redis_commands_no_terminal(hostile: str, line: list[str]) -> None:
    at = line.index("--") if "--" in line else len(line)
    done = call(*line[:at], "--redis-url", hostile, *line[at:])
    assert "Traceback" not in done.stderr
    assert "WORD" in done.stdout + done.stderr
    assert obeyed(done.stdout, done.stderr) == []


def archive(path: Path, name: str, files: dict[str, Any]) -> Path:
    """A run of somebody else, as a file."""
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        for file, data in files.items():
            member = tarfile.TarInfo(f"{name}/{file}")
            text = json.dumps(data).encode()
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return path


PLANS = {
    "validation": {"limit": 2, "scale": 1.8, "seconds": 1.0, "queue": "q", "command": ["echo", QUIET], "kind": EVIL},
    "benchmark": {
        "kind": "benchmark",
        "name": EVIL,
        "document": {},
        "repetitions": 1,
        "permutations": [{}],
        "benchmarks": [],
    },
    "saturation": {"kind": "saturation", "target": EVIL, "client_name": EVIL},
}


@pytest.mark.parametrize("kind", PLANS)
def test_a_run_of_somebody_else_commands_no_terminal(kind: str, tmp_path: Path, monkeypatch: Any) -> None:
    # given an imported run that is full of escapes
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    where = {"schema_version": 1, "began": EVIL, "command_line": ["scaletest", EVIL], "host": EVIL, "processor": EVIL}
    plan = {"schema_version": 1, **PLANS[kind]}
    file = archive(tmp_path / "run.tar.gz", "theirs", {"plan.json": plan, "environment.json": where})
    imported = call("runs", "import", str(file))
    assert imported.returncode == 0, imported.stderr
    # when it is shown in every way, expect its words and no escape
    lines = [["runs", "list"], ["runs", "list", "-o", "yaml"], ["runs", "show", "theirs"], ["runs", "delete", "theirs"]]
    lines += [["report", "theirs", "-t", form] for form in ("text", "md", "csv", "junit", "html", "json")]
    lines += [["bench", "list"], ["bench", "show", "theirs"], ["compare", "theirs", "theirs"]]
    texts = []
    for line in lines:
        done = call(*line)
        assert "Traceback" not in done.stderr, line
        texts += [done.stdout, done.stderr]
    assert sum("WORD" in text for text in texts) > 1
    assert obeyed(*texts) == []


@pytest.mark.parametrize(
    ("name", "entry"),
    [
        (NAME.encode(), b'{"maximum": 0}'),
        (b"\xff\xfe", b"{}"),
        (b"-x", b"{}"),
        (b"x" * 3000, b"{}"),
        (b"bad", b"notjson"),
        (b"bad", b"[1]"),
        (b"bad", b'{"maximum": "x"}'),
        (b"bad", b'{"maximum": 0, "owner": 5}'),
        (b"bad", b'{"note": [1]}'),
        (b"bad", b"\xff"),
    ],
    ids=lambda value: ascii(value)[2:20],
)
def test_an_entry_that_is_no_queue_keeps_nobody_from_others(
    name: bytes, entry: bytes, url: str, redis: Any, queues: Queues, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    # given a foreign entry in the list of queues
    redis.hset(keys.QUEUES, name, entry)
    # when queues are listed, expect ours, and one warning that names the entry and says how to remove it
    listed = call("queue", "list", "-o", "json", "--redis-url", url)
    assert [row["name"] for row in json.loads(listed.stdout)] == ["q"]
    assert listed.stderr.count("is no queue") == 1 and obeyed(listed.stderr) == []
    assert call("queue", "check", "--redis-url", url).returncode == 0
    run = ["validate", "--limit", "1", "--seconds", "0.01", "--step-time", "0.3", "--redis-url", url]
    done = call(*run)
    assert done.returncode in (0, 3, 4) and "Traceback" not in done.stderr, done.stderr
    assert redis.hexists(keys.QUEUES, name)
    # and the words of the warning remove it
    shown = listed.stderr.rstrip().partition("queue remove -- ")[2]
    removed = call("queue", "remove", "--yes", "--redis-url", url, "--", shown.strip("'"))
    assert removed.returncode == 0 and obeyed(removed.stdout) == [], removed.stderr
    assert redis.hkeys(keys.QUEUES) == [b"q"]


def test_a_queue_whose_keys_are_something_else_keeps_nobody_from_others(url: str, redis: Any, queues: Queues) -> None:
    queues.add("a")
    redis.set(keys.rq_queue("a"), EVIL)
    listed = call("queue", "list", "-o", "json", "--redis-url", url)
    assert [row["name"] for row in json.loads(listed.stdout)] == ["q"]
    assert "queue 'a' cannot be read: WRONGTYPE" in listed.stderr
    checked = call("queue", "check", "--redis-url", url)
    assert checked.returncode == 3 and "q: the books balance" in checked.stdout


def test_nothing_is_submitted_to_a_queue_whose_entry_is_foreign(url: str, redis: Any) -> None:
    redis.hset(keys.QUEUES, "bad", '{"maximum": "x"}')
    done = call("queue", "submit", "bad", "--no-wait", "--redis-url", url, "--", "0")
    assert done.returncode == 2
    assert done.stderr.startswith("error: queue 'bad' cannot be read: ")
    assert "scaletest queue add bad" in done.stderr


def test_the_exporter_leaves_foreign_entries_out(hostile: str, start: Any, tmp_path: Path) -> None:
    # given an exporter beside foreign entries
    line = program("exporter", "--listen", "127.0.0.1:0", "--redis-url", hostile)
    log = (tmp_path / "log").open("w+")
    exporter = subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=log)
    try:
        address = eventually(lambda: [word for word in (tmp_path / "log").read_text().split() if "http://" in word])[0]
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
