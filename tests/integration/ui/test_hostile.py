"""The pages over a Redis, and over runs, in which somebody wrote whatever they like: every page
answers, soon and short, and shows texts as text.
"""

import json
import random
import struct
import zlib
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py
from flask.testing import FlaskClient
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from scaletest.broker import Queues, keys
from scaletest.exporter.app import make_app as make_exporter
from scaletest.exporter.view import ViewReader
from scaletest.model.checks import escape_unprintable
from scaletest.model.desired_workers import Targets
from scaletest.ui.app import make_app
from scaletest.ui.reading import QueueReader
from scaletest.ui.sources import Sources
from tests.unit.queue_pages import HOSTILE

# A seed cannot be made simpler.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
real = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=25,
    phases=PHASES,
)
FAR_FUTURE = 9e18
MOST_BYTES = 1_000_000
PAGES = (
    "/",
    "/queues/q",
    "/runs",
    "/readyz",
)
SCRAPES = ("/metrics", "/api/v1/queues")

TEXTS: tuple[str | bytes, ...] = (
    *("0", "-1", "nan", "inf", "1e999", "9" * 25, "9" * 400, "9" * 5000, "1_0", "\u0661"),
    *("", HOSTILE, "\x1b]0;x\x07", "\u202e\u2066", "a\x00b", "x" * 200_000, "[" * 100_000),
    *('{"a":' * 5000, "::", "../../etc/passwd", "a/b?c#d%00", "busy", "idle", "r-1:1:abc"),
    *("r-1:1:" + "9" * 30, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59.999999-14:00"),
    *(b"\xff\xfe\x00", b"\xed\xa0\x80", b"\x80" * 40),
)
SCORES = (0.0, -1.0, FAR_FUTURE, float("inf"), float("-inf"), 1.8e9, 1e308)
SINGLE = (None, True, False, 0, -1, 10**30, 1e308, 0.5, float("nan"), float("inf"))
Command = tuple[Any, ...]


class Hostile(random.Random):
    """Chooses what to write."""

    def text(self, usual: str | bytes = "") -> str | bytes:
        """A text of any kind, now and then the usual one."""
        if usual and self.random() < 0.5:
            return usual
        if self.random() < 0.7:
            return self.choice(TEXTS)
        return "".join(map(chr, self.choices(range(0x3000), k=self.randrange(40))))

    def value(self, depth: int = 0) -> Any:
        """A value of JSON of any type."""
        if self.random() < 0.4:
            return self.choice(SINGLE)
        if depth > 3 or self.random() < 0.5:
            return bytes_of(self.text()).decode("latin-1")
        inner = [self.value(depth + 1) for _ in range(self.randrange(4))]
        return self.choice([inner, {str(place): value for place, value in enumerate(inner)}])

    def changed(self, document: Any) -> Any:
        """The document with another value at a place."""
        if isinstance(document, dict) and document:
            key = self.choice(sorted(document))
            return {**document, key: self.changed(document[key])}
        if isinstance(document, list) and document:
            place = self.randrange(len(document))
            return [*document[:place], self.changed(document[place]), *document[place + 1 :]]
        return self.value()


def bytes_of(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def of_another_type(hostile: Hostile) -> list[Command]:
    """A key of ours as any type."""
    name = hostile.choice(["q", "run", "r-1", "w"])
    of_name = (keys.counters, keys.ended, keys.slots, keys.paused, keys.leases)
    more = (keys.workers, keys.suspects, keys.samples, keys.failures)
    named = [key(name) for key in (*of_name, *more, keys.rq_queue, keys.rq_job, keys.rq_worker)]
    single = [keys.QUEUES, keys.CLIENTS, keys.STANDSTILL]
    key, text, score = hostile.choice(named + single), hostile.text(), hostile.choice(SCORES)
    written = [
        ("SET", key, text),
        ("RPUSH", key, text),
        ("HSET", key, text, text),
        ("SADD", key, text),
        ("ZADD", key, score, text),
        ("XADD", key, "*", text, text),
    ]
    return [("DEL", key), hostile.choice(written)]


def a_worker(hostile: Hostile) -> list[Command]:
    name = bytes_of(hostile.text(b"w"))
    fields = ("state", "answer", "pod", "node", "device")
    row = {field: hostile.text() for field in fields if hostile.random() < 0.5}
    row = {"state": "busy", "answer": "r-1:1:1800000000000000", **row}
    return [
        ("ZADD", keys.workers("q"), FAR_FUTURE, name),
        ("HSET", keys.rq_worker("").encode() + name, *chain.from_iterable(row.items())),
        ("SADD", keys.suspects("q"), hostile.text()),
    ]


def an_entry(hostile: Hostile) -> list[Command]:
    entry = json.dumps({"maximum": hostile.value(), "note": hostile.value()})
    return [("HSET", keys.QUEUES, hostile.text("q"), hostile.text(entry))]


def counts(hostile: Hostile) -> list[Command]:
    ended = [b"\x7f" * 16_000, struct.pack(">q", -1) * 2000, b"\x00" * 20_000]
    slots = [struct.pack("<dd", 1.8e8, 5), struct.pack("<dd", float("nan"), 5), "180000000\nn\np"]
    place, slot = hostile.choice(["a1", "at2", "5"]), hostile.choice([*slots, hostile.text()])
    return [
        ("HSET", keys.counters("q"), hostile.text("failed"), hostile.text()),
        ("SET", keys.ended("q"), hostile.choice([*ended, hostile.text()])),
        ("HSET", keys.slots("q"), place, slot),
    ]


def a_failure(hostile: Hostile) -> list[Command]:
    row = {"at_us": "1800000000000000", "id": "a-1", "outcome": "failed", "attempts": "1"}
    wrong = hostile.choice([*row, "error"])
    odd = ("node", "device", "pod", "reason", "error", "exit_code", wrong)
    row.update({name: hostile.text() for name in odd})
    return [("XADD", keys.failures("q"), "*", *chain.from_iterable(row.items()))]


def a_sample(hostile: Hostile) -> list[Command]:
    figures = {
        "device:d": {name: hostile.value() for name in ("busy", "memory_used", "memory_total")},
        "pressure": {"cpu_some": hostile.value()},
        "cpu": {"cores": hostile.value(), "user": hostile.value()},
        "memory": {"available": hostile.value()},
    }
    row = {
        "node": hostile.value(),
        "worker": "w",
        "span_s": 1.0,
        "resources": figures,
        "sources": {},
    }
    packed = zlib.compress(json.dumps(row).encode())
    return [("XADD", keys.samples("q"), "*", "s", hostile.text(packed))]


def a_job(hostile: Hostile) -> list[Command]:
    job = {name: hostile.text() for name in ("origin", "status", "enqueued_us")}
    return [
        ("RPUSH", keys.rq_queue("q"), hostile.text("r-1")),
        ("HSET", keys.rq_job("r-1"), *chain.from_iterable(job.items())),
        ("ZADD", keys.leases("q"), FAR_FUTURE, hostile.text("r-1:1:w")),
    ]


WRITERS = (of_another_type, a_worker, an_entry, counts, a_failure, a_sample, a_job)


@pytest.fixture
def pages(url: str, tmp_path: Path) -> Callable[[], FlaskClient]:
    """The pages, with nothing remembered from an earlier reading."""
    app = make_app(Sources(tmp_path, url))

    def fresh() -> FlaskClient:
        app.extensions["queues"] = QueueReader(url)
        return app.test_client()

    return fresh


@pytest.fixture
def scrapes(url: str) -> FlaskClient:
    return make_exporter(ViewReader(url, Targets()).read, lambda: True).test_client()


def is_harmless(text: str) -> bool:
    """Whether a page has no element of a foreign text, and nothing that a terminal obeys."""
    # \u202f stands between the thousands of large numbers
    return (
        "<img" not in text
        and "<script>" not in text
        and escape_unprintable(text, keep="\n\u202f") == text
    )


@real
@given(seed=st.integers(0, 2**32))
def test_every_page_answers_whatever_is_in_redis(
    seed: int,
    redis: Any,
    pages: Callable[[], FlaskClient],
    scrapes: FlaskClient,
) -> None:
    hostile = Hostile(seed)
    redis.flushall()
    for name in ("q", "other"):
        Queues(redis).add(name)
    for write in hostile.choices(WRITERS, k=hostile.randrange(1, 5)):
        for command in write(hostile):
            # an earlier one may have left another type there
            with suppress(redis_py.exceptions.ResponseError):
                redis.execute_command(*command)
    client = pages()
    for answerer, paths in ((client, PAGES), (scrapes, SCRAPES)):
        for path in paths:
            answer = answerer.get(path)
            assert answer.status_code in (200, 302, 404, 503), (path, answer.text)
            assert "this is a bug" not in answer.text
            assert len(answer.data) < MOST_BYTES, path
            if answerer is client:
                assert is_harmless(answer.text), path
