"""Connect to Redis, check its limits, and retry calls while it is away.

Errors of connecting say what their reader can do, as do those of its limits, memory and
connections. Nothing but `Retrying` retries: the caller decides (a command line gives up at once, a
worker never does). It backs off exponentially with jitter, and logs its begin and its end.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import SplitResult, unquote, urlsplit

import redis
from redis import backoff, connection, exceptions, retry, sentinel

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.masking import masked

logger = logging.getLogger("scaletest.broker")

KEEPS_EVERYTHING = "noeviction"
FULL = "Redis takes no more: its memory is full"
REMEDY = (
    "start more workers, drop what waits (scaletest queue purge NAME), or raise maxmemory (the"
    " chart: redis.resources)"
)
# In the middle of a text when a pipeline or a script passes the error on.
_FULL = re.compile(r"\bOOM\b")
_warned: set[str] = set()
# Warn when this share of the connections that a server allows is in use.
MOST_CONNECTIONS = 0.8
# For requests, for heartbeats, and for commands of RQ's tools.
CONNECTIONS_A_WORKER = 3


def is_full(error: BaseException) -> bool:
    """Whether the server rejected a command, without any effect, because its memory is full."""
    return isinstance(error, exceptions.OutOfMemoryError) or (
        isinstance(error, exceptions.ResponseError) and bool(_FULL.search(str(error)))
    )


def warn_of_limits(client: redis.Redis, name: str, hosts: list[str]) -> None:
    """Log once what happens when the server's memory is full, and when its connections are nearly
    used up.

    name: the server, fit for messages. hosts: where it listens; none for a socket. Silent where
    INFO is forbidden.
    """
    pipe = client.pipeline(transaction=False)
    pipe.info("memory")
    pipe.info("clients")
    # where INFO is forbidden the answer is an error
    memory, clients = map(_section, pipe.execute(raise_on_error=False))
    for key, warning in (
        (f"memory {name}", memory_warning(memory, name, hosts)),
        (f"connections {name}", connections_warning(clients, name)),
    ):
        if warning and key not in _warned:
            _warned.add(key)
            logger.warning("%s", warning)


def _section(answer: Any) -> dict[str, Any]:
    return answer if isinstance(answer, dict) else {}


def connections_warning(info: dict[str, Any], name: str) -> str:
    """The warning about the clients section of INFO; "" without a reason or without figures."""
    connected, maximum = int(info.get("connected_clients", 0)), int(info.get("maxclients", 0))
    if not maximum or connected < MOST_CONNECTIONS * maximum:
        return ""
    return (
        f"Redis at {name} has {connected} of at most {maximum} connections: soon it will refuse"
        f" workers, which need {CONNECTIONS_A_WORKER} each; raise maxclients"
    )


def memory_warning(info: dict[str, Any], name: str, hosts: list[str]) -> str:
    """The warning about the memory section of INFO; "" without a reason or without figures."""
    policy, maximum = str(info.get("maxmemory_policy", "")), info.get("maxmemory")
    if policy and policy != KEEPS_EVERYTHING:
        return (
            f"Redis at {name} evicts keys when its memory is full (maxmemory-policy {policy}):"
            " requests and replies get lost without an error; set maxmemory-policy"
            f" {KEEPS_EVERYTHING}"
        )
    if maximum == 0 and not all(map(_on_this_machine, hosts)):
        return (
            f"Redis at {name} has no maxmemory: in a container the kernel kills it at the"
            " container's limit, with all that waits, and again after each restart; set maxmemory"
            " to half of that limit"
        )
    return ""


def _on_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


Redis = redis.Redis

CONNECT_TIMEOUT_S = 5.0
# A live peer's kernel acknowledges within this time, whatever its processes do.
SILENT_CONNECTION_MS = 10_000
LOADING_LOOKS = 60
LOADING_LOOK_S = 1.0
MINIMUM_VERSION = (6, 2)
# Errors of a broken, restarting, full or read-only server: they pass, so the call may be repeated.
TRANSIENT = (
    exceptions.ConnectionError,
    exceptions.TimeoutError,
    exceptions.BusyLoadingError,
    exceptions.ReadOnlyError,
    exceptions.OutOfMemoryError,
    exceptions.TryAgainError,
    exceptions.MasterDownError,
    OSError,
)
REDIS_ERRORS = (exceptions.RedisError,)
# Refusals that waiting does not end. They are ConnectionErrors in redis-py, hence checked first.
LOGIN_REFUSED = (exceptions.AuthenticationError, exceptions.AuthorizationError)
REFUSED = (*LOGIN_REFUSED, exceptions.NoPermissionError)
# Error codes stand in the middle of a text when a pipeline or a script passes the error on.
_PASSING = re.compile(
    r"\b(BUSY|LOADING|OOM|READONLY|MASTERDOWN|TRYAGAIN|UNKILLABLE|MISCONF|NOREPLICAS|UNBLOCKED)\b"
)


def transient(error: BaseException) -> bool:
    """Whether to wait and try the same again."""
    passes = isinstance(error, TRANSIENT) or (
        isinstance(error, exceptions.ResponseError) and bool(_PASSING.search(str(error)))
    )
    return passes and not isinstance(error, REFUSED)


@contextmanager
def outage_excused(excused: bool = True) -> Iterator[None]:
    """Drop transient errors, where they are excused."""
    try:
        yield
    except Exception as error:
        if not (excused and transient(error)):
            raise


def connect(
    url: str, *, socket_timeout_s: float | None = 30.0, retrying: Retrying | None = None
) -> Redis:
    """A client for `url` (redis, rediss, unix, sentinel), checked at once; waits while the server
    loads its data.

    retrying: waits for a server that accepts connections and breaks them, as one that restarts or a
    proxy before it; not for one that refuses them, which is mostly a wrong address.

    Raises Unreachable when it cannot be reached, rejects the login or is not a supported server,
    and InvalidValue for a URL that cannot be read.
    """
    client = prepare(url, socket_timeout_s=socket_timeout_s)

    def check() -> None:
        _check_server(client)
        warn_of_limits(client, masked(url), _hosts(url))

    with explained(url):
        try:
            check()
        except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
            # redis-py has no class of its own for a connection that was never open
            if retrying is None or "connecting to" in str(error) or not transient(error):
                raise
            retrying.after(error, check)
    return client


def prepare(url: str, *, socket_timeout_s: float | None = 30.0) -> Redis:
    """A client for `url` that connects when it is first used, for callers that can do without Redis
    for a while.

    Raises InvalidValue for a URL that cannot be read.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "retry": retry.Retry(backoff.NoBackoff(), 0),
        "protocol": 2,
    }
    if not url.startswith("unix:"):
        options |= {"socket_keepalive": True, "socket_keepalive_options": _keepalive_options()}
    try:
        client = _from_url(url, options)
        # an unknown option would raise only when the first connection is made
        pool: Any = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    # redis-py has an error of its own for a wrong ssl_cert_reqs
    except (ValueError, TypeError, exceptions.RedisError) as error:
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
    # not by urlsplit, which takes brackets for those of an IPv6 address
    authority = re.split("[/?#]", url.partition("//")[2], maxsplit=1)[0]
    login = authority.rpartition("@")[0]
    if "@" in url and (not login or "[" in login or "]" in login):
        return (
            "a sign in its user or password must be percent-encoded, as / by %2F, ? by %3F, # by"
            " %23 and [ by %5B"
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
    # redis-py knows the types of options
    query: Any = connection.parse_url(f"redis://?{parts.query}")  # type: ignore[no-untyped-call]
    own = {
        name.removeprefix("sentinel_"): query.pop(name)
        for name in list(query)
        if name.startswith("sentinel_")
    }
    secure = {"ssl": True} if str(query.pop("ssl", "false")).lower() in ("1", "true", "yes") else {}
    tls = secure | {name: value for name, value in query.items() if name.startswith("ssl_")}
    user, _, password = login.partition(":")
    sentinels: Any = sentinel.Sentinel(  # type: ignore[no-untyped-call]
        [_address(word) for word in hosts.split(",")],
        sentinel_kwargs={**tls, **own, "socket_timeout": CONNECT_TIMEOUT_S},
    )
    return sentinels.master_for(  # type: ignore[no-any-return]
        service,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(database or 0),
        **{**options, **secure, **query},
    )


def _address(text: str) -> tuple[str, int]:
    """HOST, HOST:PORT or [IPV6]:PORT of a sentinel."""
    address = urlsplit(f"//{text}")
    if not address.hostname:
        raise ValueError(f"{text!r} is not an address of a sentinel")
    return address.hostname, address.port or 26379


def _hosts(url: str) -> list[str]:
    """The hosts that a URL names; none for a socket."""
    parts = urlsplit(url)
    hosts = [] if parts.scheme == "unix" else parts.netloc.rpartition("@")[2].split(",")
    return [_address(text)[0] for text in hosts]


def twin(client: Redis, socket_timeout_s: float) -> Redis:
    """Another client for the same server with a pool of its own, and no retries of redis-py's."""
    pool: Any = client.connection_pool
    options = {
        name: value
        for name, value in pool.connection_kwargs.items()
        if not name.startswith("maint_") and name not in ("event_dispatcher", "connection_pool")
    }
    connect_s = options.get("socket_connect_timeout") or socket_timeout_s
    options |= {
        "socket_timeout": socket_timeout_s,
        "socket_connect_timeout": min(connect_s, socket_timeout_s),
        "retry": retry.Retry(backoff.NoBackoff(), 0),
        "connection_class": pool.connection_class,
    }
    # whatever pool the caller has: one that blocks, or has arguments of its own, is not repeated
    kind: Any = redis.ConnectionPool
    if isinstance(pool, sentinel.SentinelConnectionPool):
        kind = sentinel.SentinelConnectionPool
        options |= {"service_name": pool.service_name, "sentinel_manager": pool.sentinel_manager}
    return redis.Redis(connection_pool=kind(**options))


def own_connection(client: Redis, socket_timeout_s: float) -> Any:
    """A bare connection to the same server, which opens itself when it is used."""
    pool: Any = twin(client, socket_timeout_s).connection_pool
    return pool.make_connection()


@contextmanager
def explained(url: str) -> Iterator[None]:
    """Turn redis-py's connection errors into one line that names the server and what to do."""
    try:
        yield
    except LOGIN_REFUSED as error:
        raise Unreachable(
            f"Redis at {masked(url)} rejects the login: {error}",
            hint="check user and password in the Redis URL",
        ) from error
    except (exceptions.RedisError, OSError) as error:
        if is_full(error):
            raise Unreachable(f"{FULL}: {masked(url)}", hint=REMEDY) from error
        if isinstance(error, exceptions.ResponseError) and not transient(error):
            raise Unreachable(
                f"Redis at {masked(url)} answers with an error: {error}", hint=_remedy(str(error))
            ) from error
        raise Unreachable(
            f"Redis at {masked(url)} cannot be reached: {error}",
            hint="start it, or correct <redis_url> (SCALETEST_REDIS_URL)",
        ) from error


def _remedy(message: str) -> str:
    if "DB index" in message:
        return "correct the database, the number at the end of the Redis URL"
    if "permission" in message or "ACL failure" in message:
        return "give this user of Redis the rights that the users of the chart have (redis.users)"
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
        except exceptions.BusyLoadingError:
            logger.warning("Redis is loading its data, waiting")
            time.sleep(LOADING_LOOK_S)
    return client.info("server")


T = TypeVar("T")

FIRST_DELAY_S = 0.05
LONGEST_DELAY_S = 2.0


def longer(delay_s: float) -> float:
    """Return the pause before the next try, after a pause of `delay_s`; the first after 0."""
    return min(LONGEST_DELAY_S, max(FIRST_DELAY_S, 2 * delay_s))


class Retrying:
    """Runs calls until Redis answers; ends with the last error when `sleep` returns true."""

    def __init__(
        self,
        who: str,
        *,
        patience_s: float | None = None,
        sleep: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._who = who
        self._patience_s = patience_s
        self._sleep = sleep or threading.Event().wait
        self._clock = clock
        self._chance = chance

    def run(self, call: Callable[[], T]) -> T:
        """The call's result. Raises at once unless transient; Unreachable when patience ends."""
        try:
            return call()
        except Exception as error:
            if not transient(error):
                raise
            return self.after(error, call)

    def after(self, error: Exception, call: Callable[[], T]) -> T:
        """The call's result, where a first try has failed already with the transient `error`."""
        began = self._clock()
        delay = longer(0.0)
        trouble = FULL if is_full(error) else f"Redis is away ({cut(str(error), 200)})"
        logger.warning("%s: %s, trying again", self._who, trouble)
        while True:
            if self._patience_s is not None and self._clock() - began >= self._patience_s:
                raise _given_up(error, self._clock() - began) from error
            # full jitter, as many clients come back at once
            if self._sleep(delay * (0.5 + 0.5 * self._chance())):
                raise error
            delay = longer(delay)
            try:
                result = call()
                logger.warning("%s: Redis is back after %.1f s", self._who, self._clock() - began)
                return result
            except Exception as problem:
                if not transient(problem):
                    raise
                error = problem


def _given_up(error: Exception, waited_s: float) -> Unreachable:
    if is_full(error):
        return Unreachable(f"{FULL}; we waited {waited_s:.0f} s", hint=REMEDY)
    return Unreachable(
        f"Redis was away for {waited_s:.0f} s: {error}", hint="start it again, then run again"
    )
