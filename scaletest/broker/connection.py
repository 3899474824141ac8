"""Connect to Redis: from a URL to a client, with errors that a user can act on.

Nothing here retries: the caller decides (a command line gives up at once, a worker never does).
"""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import redis
import redis.backoff
import redis.connection
import redis.exceptions
import redis.retry
import redis.sentinel

from scaletest.broker import memory
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.secrets import masked

Redis = redis.Redis

logger = logging.getLogger("scaletest.broker")

CONNECT_TIMEOUT_S = 5.0
# A live peer's kernel acknowledges within this time, whatever its processes do.
SILENT_CONNECTION_MS = 10_000
LOADING_LOOKS = 60
LOADING_LOOK_S = 1.0
MINIMUM_VERSION = (6, 2)
# Errors of a broken, restarting, full or read-only server: they pass, so the call may be repeated.
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
# Refusals that waiting does not end. They are ConnectionErrors in redis-py, hence checked first.
REFUSED = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.NoPermissionError,
)
# Error codes stand in the middle of a text when a pipeline or a script passes the error on.
_PASSING = re.compile(
    r"\b(BUSY|LOADING|OOM|READONLY|MASTERDOWN|TRYAGAIN|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b"
)


def transient(error: BaseException) -> bool:
    """Whether to wait and try the same again."""
    if isinstance(error, REFUSED):
        return False
    if isinstance(error, TRANSIENT):
        return True
    return isinstance(error, redis.exceptions.ResponseError) and bool(_PASSING.search(str(error)))


def connect(url: str, *, socket_timeout_s: float | None = 30.0) -> Redis:
    """A client for `url` (redis, rediss, unix, sentinel), checked at once; waits while the server
    loads its data.

    Raises Unreachable when it cannot be reached, rejects the login or is not a supported server,
    and InvalidValue for a URL that cannot be read.
    """
    client = prepare(url, socket_timeout_s=socket_timeout_s)
    with explained(url):
        _check_server(client)
        memory.warn_of_limits(client, masked(url), _hosts(url))
    return client


def prepare(url: str, *, socket_timeout_s: float | None = 30.0) -> Redis:
    """A client for `url` that connects when it is first used, for callers that can do without Redis
    for a while.

    Raises InvalidValue for a URL that cannot be read.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "retry": redis.retry.Retry(redis.backoff.NoBackoff(), 0),
        "protocol": 2,
    }
    if not url.startswith("unix:"):
        options |= {"socket_keepalive": True, "socket_keepalive_options": _keepalive_options()}
    try:
        client = _from_url(url, options)
        # an unknown option would raise only when the first connection is made
        pool: Any = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError) as error:
        raise InvalidValue(
            f"the Redis URL {masked(url)!r} cannot be read: {_why(url, error)}",
            hint=(
                "use redis://HOST:PORT/DB, rediss://HOST:PORT/DB, unix:///PATH or"
                " sentinel://HOST:PORT,.../SERVICE/DB"
            ),
        ) from error
    return client


def _why(url: str, error: Exception) -> str:
    """Why a URL cannot be read, without parts of a password that was parsed as something else."""
    if "@" in url and "@" not in urlsplit(url).netloc:
        return (
            "a sign in its user or password must be percent-encoded, as / by %2F, ? by %3F and #"
            " by %23"
        )
    return str(error)


def _keepalive_options() -> dict[int, int]:
    """Socket options by which the kernel notices a dead connection, where it has them."""
    wanted = {
        "TCP_KEEPIDLE": 5,
        "TCP_KEEPINTVL": 2,
        "TCP_KEEPCNT": 3,
        "TCP_USER_TIMEOUT": SILENT_CONNECTION_MS,
    }
    return {getattr(socket, name): value for name, value in wanted.items() if hasattr(socket, name)}


def _from_url(url: str, options: dict[str, Any]) -> Redis:
    parts = urlsplit(url)
    if parts.scheme == "sentinel":
        return _from_sentinels(parts, options)
    database = parts.path.strip("/")
    if parts.scheme in ("redis", "rediss") and database and not database.isdigit():
        # redis-py would use database 0 instead
        raise ValueError(f"{database!r} is not a database number")
    return redis.Redis.from_url(url, **options)


def _from_sentinels(parts: SplitResult, options: dict[str, Any]) -> Redis:
    """sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/SERVICE[/DB]: the service's present
    master.

    User and password are the master's; the sentinels' own are sentinel_username and
    sentinel_password in the query. With ssl=true both are spoken to over TLS, with the ssl_...
    options that a rediss URL takes.
    """
    login, _, hosts = parts.netloc.rpartition("@")
    service, _, database = parts.path.strip("/").partition("/")
    if not service:
        raise ValueError("it names no service")
    read: Any = redis.connection.parse_url  # it knows the types of options
    query: dict[str, Any] = read(f"redis://?{parts.query}")
    own = {
        name.removeprefix("sentinel_"): query.pop(name)
        for name in list(query)
        if name.startswith("sentinel_")
    }
    secure = {"ssl": True} if str(query.pop("ssl", "false")).lower() in ("1", "true", "yes") else {}
    tls = secure | {name: value for name, value in query.items() if name.startswith("ssl_")}
    user, _, password = login.partition(":")
    make: Any = redis.sentinel.Sentinel
    addresses = [_address(word) for word in hosts.split(",")]
    sentinel = make(addresses, sentinel_kwargs={**tls, **own, "socket_timeout": CONNECT_TIMEOUT_S})
    master: Redis = sentinel.master_for(
        service,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(database or 0),
        **{**options, **secure, **query},
    )
    return master


def _address(text: str) -> tuple[str, int]:
    """HOST, HOST:PORT or [IPV6]:PORT of a sentinel."""
    address = urlsplit(f"//{text}")
    if not address.hostname:
        raise ValueError(f"{text!r} is not an address of a sentinel")
    return address.hostname, address.port or 26379


def _hosts(url: str) -> list[str]:
    """The hosts that a URL names; none for a socket."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        return []
    return [_address(text)[0] for text in parts.netloc.rpartition("@")[2].split(",")]


def twin(client: Redis, socket_timeout_s: float) -> Redis:
    """Another client for the same server with a pool of its own, and no retries of redis-py's."""
    pool: Any = client.connection_pool
    options = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if not name.startswith("maint_")
    }
    options.pop("event_dispatcher", None)
    connect_s = min(options.get("socket_connect_timeout") or socket_timeout_s, socket_timeout_s)
    options |= {"socket_timeout": socket_timeout_s, "socket_connect_timeout": connect_s}
    options["retry"] = redis.retry.Retry(redis.backoff.NoBackoff(), 0)
    if isinstance(pool, redis.sentinel.SentinelConnectionPool):
        options.pop("connection_pool", None)
        make: Any = redis.sentinel.SentinelConnectionPool
        new_pool = make(
            pool.service_name,
            pool.sentinel_manager,
            connection_class=pool.connection_class,
            **options,
        )
    else:
        new_pool = redis.ConnectionPool(connection_class=pool.connection_class, **options)
    return redis.Redis(connection_pool=new_pool)


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn redis-py's connection errors into one line that names the server and what to do."""
    try:
        yield
    except REFUSED as error:
        raise Unreachable(
            f"Redis at {masked(url)} rejects the login: {error}",
            hint="check user and password in the Redis URL",
        ) from error
    except (redis.exceptions.RedisError, OSError) as error:
        if memory.is_full(error):
            raise Unreachable(f"{memory.FULL}: {masked(url)}", hint=memory.REMEDY) from error
        if isinstance(error, redis.exceptions.ResponseError) and not transient(error):
            raise Unreachable(
                f"Redis at {masked(url)} answers with an error: {error}", hint=_remedy(str(error))
            ) from error
        raise Unreachable(
            f"Redis at {masked(url)} cannot be reached: {error}",
            hint="start it, or correct --redis-url (SCALETEST_REDIS_URL)",
        ) from error


def _remedy(message: str) -> str:
    if "DB index" in message:
        return "correct the database, the number at the end of the Redis URL"
    if "unknown command" in message.lower():
        return (
            "correct the Redis URL: it names a server of another type, such as Redis instead of"
            " Sentinel"
        )
    return "look at what its keys hold"


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
            "this is a Redis Cluster, which cannot run scripts over several keys",
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
