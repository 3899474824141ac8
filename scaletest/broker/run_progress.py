"""Runs in progress in Redis: told by the commands that measure them, read by pages elsewhere.

Whatever is told expires by itself.
"""

from typing import Any

from redis.exceptions import ResponseError

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.model.errors import InvalidValue
from scaletest.model.run_progress import RunProgress

EXPIRES_S = 30
# What is read at most: any client may write to Redis.
MOST_RUNS = 100
MOST_BYTES = 64 * 1024


def publish_progress(redis: Redis, progress: RunProgress) -> None:
    """Tell how far a run is. It is forgotten unless it is told again within EXPIRES_S."""
    seconds, _ = redis.time()
    now = int(seconds)
    pipe = redis.pipeline(transaction=False)
    pipe.zadd(keys.RUNS_IN_PROGRESS, {progress.run: now})
    pipe.zremrangebyscore(keys.RUNS_IN_PROGRESS, "-inf", now - EXPIRES_S)
    pipe.expire(keys.RUNS_IN_PROGRESS, EXPIRES_S)
    pipe.set(keys.progress(progress.run), progress.to_json(), ex=EXPIRES_S)
    pipe.execute()


def read_published(redis: Redis) -> list[RunProgress]:
    """Return the runs in progress, the one told of last first; what is none is left out."""
    members: Any = redis.zrevrange(keys.RUNS_IN_PROGRESS, 0, MOST_RUNS - 1)
    runs = []
    for member in members:
        name = member.decode("utf-8", "replace")
        try:
            content: Any = redis.getrange(keys.progress(name), 0, MOST_BYTES)
            progress = RunProgress.from_json(content)
        except (ResponseError, InvalidValue):  # a ResponseError for another type of key
            continue
        # a page asks for a run by this name
        if progress.run == name:
            runs.append(progress)
    return runs
