"""Open clients and bare connections of one Redis server.

`connect` checks the server at once, `prepare` leaves that to the first call, and `twin` and
`own_connection` repeat what a client has. None of them retries a call: that is up to the caller
(retrying.py), so redis-py's own retries are turned off.
"""

import logging
import re
import socket
import time
from typing import Any

import redis
from redis import backoff, exceptions, retry, sentinel

from scaletest.broker.redis_errors import explained, transient
from scaletest.broker.redis_url import CONNECT_TIMEOUT_S, client_for_url, hosts_of_url
from scaletest.broker.retrying import Retrying
from scaletest.broker.server_limits import warn_of_limits
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.masking import masked

Redis = redis.Redis

logger = logging.getLogger("scaletest.broker")

MINIMUM_VERSION = (6, 2)
# A server that loads its data refuses all calls: so often, and this far apart, it is asked again.
LOADING_LOOKS = 60
LOADING_LOOK_S = 1.0
# Socket options by which the kernel notices a dead connection, where it has them. A live peer's
# kernel acknowledges within TCP_USER_TIMEOUT milliseconds, whatever its processes do.
KEEPALIVE = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3, "TCP_USER_TIMEOUT": 10_000}


def connect(
    url: str, *, socket_timeout_s: float | None = 30.0, retrying: Retrying | None = None
) -> Redis:
    """Return a client for `url` (redis, rediss, unix, sentinel), checked at once; waits while the
    server loads its data.

    retrying: waits for a server that accepts connections and breaks them, as one that restarts or a
    proxy before it; not for one that refuses them, which is mostly a wrong address.

    Raises Unreachable when it cannot be reached, rejects the login or is not a supported server,
    and InvalidValue for a URL that cannot be read.
    """
    client = prepare(url, socket_timeout_s=socket_timeout_s)

    def check() -> None:
        # raise Unreachable for a server that is too old or a cluster, once it has loaded
        # its data
        for _ in range(LOADING_LOOKS):
            try:
                client.ping()
                break
            except exceptions.BusyLoadingError:
                logger.warning("Redis is loading its data, waiting")
                time.sleep(LOADING_LOOK_S)
        info: dict[str, Any] = client.info("server")
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
        warn_of_limits(client, masked(url), hosts_of_url(url))

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
    """Return a client for `url` that connects when it is first used, for callers that can do
    without Redis for a while.

    Raises InvalidValue for a URL that cannot be read.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "retry": retry.Retry(backoff.NoBackoff(), 0),
        "protocol": 2,
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True
        options["socket_keepalive_options"] = {
            getattr(socket, name): value
            for name, value in KEEPALIVE.items()
            if hasattr(socket, name)
        }
    try:
        client = client_for_url(url, options)
        # an unknown option would raise only when the first connection is made
        pool: Any = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    # redis-py has an error of its own for a wrong ssl_cert_reqs
    except (ValueError, TypeError, exceptions.RedisError) as error:
        reason = str(error)
        # an unescaped sign in a password cuts the URL at a wrong place, and the error's text would
        # show a part of the password; urlsplit would take brackets for those of an IPv6 address
        authority = re.split("[/?#]", url.partition("//")[2], maxsplit=1)[0]
        login = authority.rpartition("@")[0]
        if "@" in url and (not login or "[" in login or "]" in login):
            reason = (
                "a sign in its user or password must be percent-encoded, as / by %2F, ? by %3F,"
                " # by %23 and [ by %5B"
            )
        raise InvalidValue(
            f"the Redis URL {masked(url)!r} cannot be read: {reason}",
            hint=(
                "use redis://HOST:PORT/DB, rediss://HOST:PORT/DB, unix:///PATH or"
                " sentinel://HOST:PORT,.../SERVICE/DB"
            ),
        ) from error
    return client


def twin(client: Redis, socket_timeout_s: float) -> Redis:
    """Return another client for the same server with a pool of its own."""
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
    """Return a bare connection to the same server, which opens itself when it is used."""
    pool: Any = twin(client, socket_timeout_s).connection_pool
    return pool.make_connection()
