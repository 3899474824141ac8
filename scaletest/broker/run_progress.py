"""Runs in progress in Redis: published by the commands that measure them, read by pages elsewhere.

All of it is bounded and expires by itself. A Redis that is away, full or slow costs the run
nothing: what could not be published is left out, and tried again later.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import REDIS_ERRORS, Redis
from scaletest.model.errors import InvalidValue
from scaletest.model.run_progress import RunProgress

logger = logging.getLogger("scaletest.broker")

# Seconds.
EXPIRES_S, INDEX_EXPIRES_S = 30, 60
TIMEOUT_S, RETRY_S = 2.0, 10.0
MOST_RUNS = 100
MOST_PROGRESS_BYTES, MOST_REPORT_BYTES = 64 * 1024, 512 * 1024


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A run in progress. age_s: since it was last told of."""

    progress: RunProgress
    age_s: float


class RunPublisher:
    """Publishes one run, by a client of its own. Not for several threads at once."""

    def __init__(self, redis: Redis, run: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._redis = redis
        self._run, self._clock = run, clock
        self._next_try_s = clock()

    def publish(self, progress: str, report: str = "") -> None:
        """Store the progress and the report, both JSON; "" where there is no report. A document
        that is too large is left out.
        """
        if self._clock() < self._next_try_s:
            return
        try:
            self._store(progress, report)
        except (*REDIS_ERRORS, OSError) as error:
            self._next_try_s = self._clock() + RETRY_S
            logger.debug("the progress of run %s is not published: %s", self._run, error)

    def close(self) -> None:
        """Let go of the connection; what was published expires."""
        with suppress(*REDIS_ERRORS, OSError):
            self._redis.close()

    def _store(self, progress: str, report: str) -> None:
        now = _now_s(self._redis)
        pipe = self._redis.pipeline(transaction=False)
        pipe.zadd(keys.RUNS_IN_PROGRESS, {self._run: now})
        pipe.zremrangebyscore(keys.RUNS_IN_PROGRESS, "-inf", now - EXPIRES_S)
        pipe.zremrangebyrank(keys.RUNS_IN_PROGRESS, 0, -MOST_RUNS - 1)
        pipe.expire(keys.RUNS_IN_PROGRESS, INDEX_EXPIRES_S)
        for key, text, most in (
            (keys.progress(self._run), progress, MOST_PROGRESS_BYTES),
            (keys.report(self._run), report, MOST_REPORT_BYTES),
        ):
            content = text.encode("utf-8", "replace")
            if 0 < len(content) <= most:
                pipe.set(key, content, ex=EXPIRES_S)
        pipe.execute()


def published(redis: Redis) -> list[PublishedRun]:
    """The runs in progress, the one told of last first. What is none is left out."""
    now = _now_s(redis)
    rows: Any = redis.zrevrange(keys.RUNS_IN_PROGRESS, 0, MOST_RUNS - 1, withscores=True)
    ages = {name.decode("utf-8", "replace"): max(0.0, now - at_s) for name, at_s in rows}
    runs = [_published(redis, name, age_s) for name, age_s in ages.items()]
    return [run for run in runs if run is not None]


def published_run(redis: Redis, name: str) -> PublishedRun | None:
    """The run in progress of that name; None when there is none."""
    at_s: Any = redis.zscore(keys.RUNS_IN_PROGRESS, name)
    if at_s is None:
        return None
    now = _now_s(redis)
    return _published(redis, name, max(0.0, now - at_s))


def published_report(redis: Redis, name: str) -> bytes:
    """The report so far of a run in progress, as JSON that its reader checks; b"" without one."""
    return _bounded(redis, keys.report(name), MOST_REPORT_BYTES)


def _published(redis: Redis, name: str, age_s: float) -> PublishedRun | None:
    content = _bounded(redis, keys.progress(name), MOST_PROGRESS_BYTES)
    try:
        progress = RunProgress.from_json(content)
    except InvalidValue as error:
        logger.debug("what is published of run %r is none: %s", name, error)
        return None
    # a page asks for a run by this name
    return PublishedRun(progress, age_s) if progress.run == name else None


def _bounded(redis: Redis, key: str, most: int) -> bytes:
    """The content of a key; b"" when it is missing, too long, or no string."""
    try:
        content: Any = redis.getrange(key, 0, most)
    except ResponseError:  # another type of key
        return b""
    return content if isinstance(content, bytes) and len(content) <= most else b""


def _now_s(redis: Redis) -> int:
    """The time of Redis, in whole seconds."""
    answer: Any = redis.time()
    return int(answer[0])
