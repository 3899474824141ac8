"""One way to a Redis: from a URL to a connected client, with errors that a user can act on.

Nothing here retries: who calls decides (a command line gives up at once, a worker never does).
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import redis
import redis.backoff
import redis.exceptions
import redis.retry

from scaletest.model.errors import InvalidValue, Unreachable

Redis = redis.Redis

logger = logging.getLogger("scaletest.broker")

CONNECT_TIMEOUT_S = 5.0
LOADING_LOOKS = 60
LOADING_LOOK_S = 1.0
MINIMUM_VERSION = (6, 2)
# What a broken, restarting, overloaded or read-only server answers; all of it passes, so all of it may be tried again.
TRANSIENT = (
    redis.exceptions.ConnectionError,
    redis.exceptions.TimeoutError,
    redis.exceptions.BusyLoadingError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.TryAgainError,
    redis.exceptions.MasterDownError,
    OSError,
)
REDIS_ERRORS = (redis.exceptions.RedisError,)
# Refusals that no waiting mends. They are ConnectionErrors in redis-py, hence looked at first.
REFUSED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
# In the middle of a text when a pipeline or a script passes the error on.
_PASSING = re.compile(r"\b(BUSY|LOADING|OOM|READONLY|MASTERDOWN|TRYAGAIN|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b")


def transient(error: BaseException) -> bool:
    """Whether waiting and trying the same again is right."""
    if isinstance(error, REFUSED):
        return False
    if isinstance(error, TRANSIENT):
        return True
    return isinstance(error, redis.exceptions.ResponseError) and bool(_PASSING.search(str(error)))


def masked(url: str) -> str:
    """The URL without its password, fit for messages."""
    return re.sub(r"//([^:@/]*):.*@", r"//\1:***@", url)


def connect(url: str, *, socket_timeout_s: float | None = 30.0) -> Redis:
    """A client for `url` (redis://, rediss://, unix://), which is asked at once; a loading server is waited for.

    Raises Unreachable when it cannot be reached, refuses us, or is no server that we can work with, and InvalidValue
    for a URL that cannot be read.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        "protocol": 2,
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True
    try:
        _check_url(url)
        client = redis.Redis.from_url(url, **options)
        with explained(url):
            _check_server(client)
    except (ValueError, TypeError) as error:
        raise InvalidValue(
            f"the Redis URL {masked(url)!r} cannot be read: {error}",
            hint="use redis://HOST:PORT/DB, rediss://HOST:PORT/DB or unix:///PATH",
        ) from error
    return client


def _check_url(url: str) -> None:
    """redis-py takes any path that is no number for database 0, which is not the one that was named."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme in ("redis", "rediss") and database and not database.isdigit():
        raise ValueError(f"{database!r} is no database number")


def twin(client: Redis, socket_timeout_s: float) -> Redis:
    """Another client for the same server with a pool of its own, and no retries of redis-py's."""
    pool: Any = client.connection_pool
    options = {name: value for name, value in pool.connection_kwargs.items() if not name.startswith("maint_")}
    options.pop("event_dispatcher", None)
    options |= {"socket_timeout": socket_timeout_s, "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0)}
    return redis.Redis(connection_pool=redis.ConnectionPool(connection_class=pool.connection_class, **options))


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn redis-py's connection errors into one line that names the server and what to do."""
    try:
        yield
    except REFUSED as error:
        raise Unreachable(
            f"Redis at {masked(url)} refuses us: {error}", hint="check user and password in the Redis URL"
        ) from error
    except (redis.exceptions.RedisError, OSError) as error:
        raise Unreachable(
            f"Redis at {masked(url)} cannot be reached: {error}",
            hint="start it, or correct --redis-url (SCALETEST_REDIS_URL)",
        ) from error


def _check_server(client: Redis) -> None:
    info: dict[str, Any] = _when_loaded(client)
    version = tuple(int(part) for part in str(info.get("redis_version", "0.0")).split(".")[:2])
    if version < MINIMUM_VERSION:
        raise Unreachable(
            f"the server speaks Redis {info.get('redis_version')}, which is too old",
            hint="use Redis 6.2 or newer, or Valkey",
        )
    if info.get("redis_mode") == "cluster":
        raise Unreachable(
            "this is a Redis Cluster, which cannot run our scripts over several keys",
            hint="use one Redis; Sentinel gives it a standby",
        )


def _when_loaded(client: Redis) -> dict[str, Any]:
    """The server's description, once it has read its data; a minute at most."""
    for _ in range(LOADING_LOOKS):
        try:
            client.ping()
            return client.info("server")
        except redis.exceptions.BusyLoadingError:
            logger.warning("Redis is loading its data, waiting")
            time.sleep(LOADING_LOOK_S)
    return client.info("server")
