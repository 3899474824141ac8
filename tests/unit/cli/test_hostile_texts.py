"""Texts that a terminal would obey, from Redis and from runs of somebody else: none of them reaches
it.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from scaletest.benchmarks.documents.result import BenchmarkResult
from scaletest.broker import Queues, keys
from scaletest.cli.main import run
from scaletest.lifecycle.records import Stamp
from scaletest.model.checks import escape_unprintable
from scaletest.model.errors import InvalidValue
from tests.unit.virtual_redis import VirtualRedis

# The title of the window, colours, clear, an eight-bit control sequence, right to left, another
# line.
EVIL = "\x1b]0;PWNED\x07\x1b[31m\x1b[2J\x9b31m\u202e\rWORD"
NAME = EVIL + "name"
# What may stand in an argument: an eight-bit control sequence is text there.
QUIET = "\x9b31m\u202eWORD"


def obeyed(*texts: str) -> list[str]:
    """What a terminal would obey in these texts."""
    return [text for text in texts if escape_unprintable(text, keep="\n\t") != text]


class Done(NamedTuple):
    """What a command of the program said, and its exit code."""

    code: int
    out: str
    err: str


Program = Callable[..., Done]


@pytest.fixture
def program(
    redis: VirtualRedis, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Program:
    """Runs a command of the program in this process, with a Redis in it."""
    for name in ("queue", "client"):
        monkeypatch.setattr(f"scaletest.cli.{name}.connect", lambda *_, **__: redis)

    def call(*arguments: str) -> Done:
        # each command is a process of its own, which says everything once
        monkeypatch.setattr("scaletest.broker.queues._logged", set())
        code = run(list(arguments))
        out, err = capsys.readouterr()
        # lines of CSV end so
        return Done(code, out.replace("\r\n", "\n"), err)

    return call


@pytest.fixture
def hostile(redis: VirtualRedis, queues: Queues) -> None:
    """A queue of ours whose neighbours wrote whatever they like."""
    redis.hset(keys.QUEUES, "q", json.dumps({"maximum": 0, "note": EVIL + "note"}))
    redis.hset(keys.QUEUES, NAME, '{"maximum": 0}')
    redis.zadd(keys.workers("q"), {EVIL + "worker": 9e18})
    redis.sadd(keys.suspects("q"), EVIL + "suspect")
    redis.hset(keys.counters("q"), EVIL + "counter", 3)
    failure = dict.fromkeys(("node", "device", "pod", "reason", "error"), EVIL + "error")
    redis.xadd(keys.failures("q"), {**failure, "at_us": "1", "id": "a-1", "outcome": "failed"})


@pytest.mark.parametrize(
    "line",
    [
        ["queue", "list"],
        ["queue", "show", "q"],
        ["queue", "show", "q", "--format", "yaml"],
        ["queue", "show", "q", "--format", "json"],
        ["queue", "check"],
        ["queue", "submit", "nope", "--", "1"],
        ["client", "--queue", "nope", "--listen", "none"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("hostile")
def test_foreign_text_in_redis_sends_no_escape_codes_to_the_terminal(
    program: Program, line: list[str]
) -> None:
    done = program(*line)
    assert "Traceback" not in done.err
    assert "WORD" in done.out + done.err
    assert obeyed(done.out, done.err) == []


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
def test_an_invalid_queue_entry_does_not_hide_other_queues(
    name: bytes, entry: bytes, redis: VirtualRedis, queues: Queues, program: Program
) -> None:
    # given a foreign entry in the list of queues
    redis.hset(keys.QUEUES, name, entry)
    # when queues are listed, expect ours, and one warning that names the entry
    listed = program("queue", "list", "--format", "json")
    assert [row["name"] for row in json.loads(listed.out)] == ["q"]
    assert listed.err.count("is not a queue") == 1 and obeyed(listed.err) == []
    assert program("queue", "check").code == 0
    assert redis.hexists(keys.QUEUES, name)


def test_a_queue_with_foreign_keys_does_not_hide_other_queues(
    redis: VirtualRedis, queues: Queues, program: Program
) -> None:
    queues.add("a")
    redis.set(keys.rq_queue("a"), EVIL)
    listed = program("queue", "list", "--format", "json")
    assert [row["name"] for row in json.loads(listed.out)] == ["q"]
    assert "queue 'a' cannot be read: WRONGTYPE" in listed.err
    checked = program("queue", "check")
    assert checked.code == 3 and "q: the books balance" in checked.out


def test_nothing_is_submitted_to_a_queue_whose_entry_is_foreign(
    redis: VirtualRedis, program: Program
) -> None:
    redis.hset(keys.QUEUES, "bad", '{"maximum": "x"}')
    done = program("queue", "submit", "bad", "--no-wait", "--", "0")
    assert done.code == 2
    assert done.err.startswith("error: queue 'bad' cannot be read: ")
    assert "scaletest queue add bad" in done.err


def put_run(home: Path, name: str, files: dict[str, Any]) -> None:
    """A run of somebody else, among those of this user."""
    folder = home / "scaletest" / "runs" / name
    folder.mkdir(parents=True)
    for file, data in files.items():
        (folder / file).write_text(json.dumps(data), "utf-8")


PLANS = {
    "validation": {
        "limit": 2,
        "scale": 1.8,
        "seconds": 1.0,
        "queue": "q",
        "command": ["echo", QUIET],
    },
    "benchmark": {
        "kind": "benchmark",
        "name": EVIL,
        "document": {},
        "repetitions": 1,
        "permutations": [{}],
        "benchmarks": [],
    },
    "saturation": {"kind": "saturation", "target": EVIL},
}


def test_a_run_of_an_unknown_type_is_refused_and_its_type_sends_no_escape_codes(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    plan = {"schema_version": 1, **PLANS["validation"], "kind": EVIL}
    put_run(tmp_path, "theirs", {"plan.json": plan})
    refused = program("report", "theirs")
    assert refused.code == 2
    assert "there is no run type" in refused.err and "\x1b" not in refused.err


@pytest.mark.parametrize("kind", PLANS)
def test_a_foreign_run_sends_no_escape_codes_to_the_terminal(
    kind: str, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a run that is full of escapes
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    where = {
        "schema_version": 1,
        "began": EVIL,
        "command_line": ["scaletest", EVIL],
        "host": EVIL,
        "processor": EVIL,
    }
    plan = {"schema_version": 1, **PLANS[kind]}
    put_run(tmp_path, "theirs", {"plan.json": plan, "environment.json": where})
    # when it is shown in every way, expect its words and no escape
    lines = [
        ["runs", "list"],
        ["runs", "list", "--format", "yaml"],
        ["runs", "delete", "theirs"],
    ]
    lines += [
        ["report", "theirs", "--format", form]
        for form in ("text", "md", "csv", "junit", "html", "json")
    ]
    lines += [["compare", "theirs", "theirs"]]
    texts = []
    for line in lines:
        done = program(*line)
        assert "Traceback" not in done.err, line
        texts += [done.out, done.err]
    assert sum("WORD" in text for text in texts) > 1
    assert obeyed(*texts) == []


def test_values_that_nobody_measured_are_refused_when_they_are_read() -> None:
    with pytest.raises(InvalidValue, match=r"watch_s in a stamp is 1e\+30 s"):
        Stamp.from_dict({"watch_s": 1e30})
    with pytest.raises(InvalidValue, match="in the benchmark's result is"):
        BenchmarkResult.from_dict({"name": "n", "phase": "Completed", "headlines": {"x": "fast"}})
