"""Open clients and bare connections of one Redis server.

`connect` checks the server at once, `prepare_connection` leaves that to the first call, and
`connect_again` and `own_connection` repeat what a client has. None of them retries a call: that is
up to the caller (retrying.py), so redis-py's own retries are turned off.

A sentinel URL is sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/SERVICE[/DB], and leads to the
service's present master. User and password are the master's; the sentinels' own are
sentinel_username and sentinel_password in the query. With ssl=true both are spoken to over TLS,
with the ssl_... options that a rediss URL takes.
"""

import logging
import re
import socket
from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis import backoff, connection, exceptions, retry, sentinel

from scaletest.broker.redis_errors import explain_redis_errors, is_transient
from scaletest.broker.retrying import Retrying
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.model.masking import mask_passwords

Redis = redis.Redis

logger = logging.getLogger("scaletest.broker")

CONNECT_TIMEOUT_S = 5.0
SENTINEL_PORT = 26379
MINIMUM_VERSION = (6, 2)
# The maxmemory-policy that deletes no keys.
KEEPS_EVERYTHING = "noeviction"
# Warn when this share of the connections that a server allows is in use.
MOST_CONNECTIONS = 0.8
# Socket options by which the kernel notices a dead connection. A live peer's kernel acknowledges
# within TCP_USER_TIMEOUT milliseconds, whatever its processes do.
KEEPALIVE = {
    socket.TCP_KEEPIDLE: 5,
    socket.TCP_KEEPINTVL: 2,
    socket.TCP_KEEPCNT: 3,
    socket.TCP_USER_TIMEOUT: 10_000,
}
# The servers that this process has warned of, and the texts.
_warned: set[tuple[str, str]] = set()


def connect(
    url: str, *, socket_timeout_s: float | None = 30.0, retrying: Retrying | None = None
) -> Redis:
    """Return a client for `url` (redis, rediss, unix, sentinel), checked at once.

    retrying: waits for a server that loads its data, or that accepts connections and breaks them,
    as one that restarts or a proxy before it; not for one that refuses them, which is mostly a
    wrong address.

    Raises Unreachable when it cannot be reached, rejects the login or is not a supported server,
    and InvalidValue for a URL that cannot be read.
    """
    client = prepare_connection(url, socket_timeout_s=socket_timeout_s)

    def check_server() -> None:
        client.ping()  # refused while it loads its data, unlike INFO
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
        _warn_of_limits(client, mask_passwords(url))

    with explain_redis_errors(url):
        try:
            check_server()
        except (exceptions.ConnectionError, exceptions.TimeoutError) as error:
            # redis-py has no class of its own for a connection that was never open
            if retrying is None or "connecting to" in str(error) or not is_transient(error):
                raise
            retrying.run_after(error, check_server)
    return client


def _warn_of_limits(client: Redis, name: str) -> None:
    """Log once what happens when this server's memory or its connections are used up.

    name: the server, fit for messages. Silent where INFO is forbidden.
    """
    try:
        memory: dict[str, Any] = client.info("memory")
        clients: dict[str, Any] = client.info("clients")
    except exceptions.NoPermissionError:
        return
    policy = memory.get("maxmemory_policy", KEEPS_EVERYTHING)
    if policy != KEEPS_EVERYTHING:
        _warn_once(
            "Redis at %s evicts keys when its memory is full (maxmemory-policy %s): requests and"
            f" replies get lost without an error; set maxmemory-policy {KEEPS_EVERYTHING}",
            name,
            policy,
        )
    connected, maximum = clients.get("connected_clients", 0), clients.get("maxclients", 0)
    if connected >= MOST_CONNECTIONS * maximum > 0:
        _warn_once(
            "Redis at %s has %d of at most %d connections: soon it will refuse workers, which need"
            " three each; raise maxclients",
            name,
            connected,
            maximum,
        )


def _warn_once(text: str, name: str, *values: object) -> None:
    if (name, text) not in _warned:
        _warned.add((name, text))
        logger.warning(text, name, *values)


def prepare_connection(url: str, *, socket_timeout_s: float | None = 30.0) -> Redis:
    """Return a client for `url` that connects when it is first used.

    It is for callers that can do without Redis for a while. Raises InvalidValue for a URL that
    cannot be read.
    """
    options: dict[str, Any] = {
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_timeout": socket_timeout_s,
        "retry": retry.Retry(backoff.NoBackoff(), 0),
        "protocol": 2,
    }
    if not url.startswith("unix:"):
        options["socket_keepalive"] = True
        options["socket_keepalive_options"] = KEEPALIVE
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
        login = re.split("[/?#]", url.partition("//")[2], maxsplit=1)[0].rpartition("@")[0]
        if "@" in url and (not login or "[" in login or "]" in login):
            reason = (
                "special characters in its user or password must be percent-encoded, as / by %2F,"
                " ? by %3F, # by %23 and [ by %5B"
            )
        raise InvalidValue(
            f"the Redis URL {mask_passwords(url)!r} cannot be read: {reason}",
            hint=(
                "use redis://HOST:PORT/DB, rediss://HOST:PORT/DB, unix:///PATH or"
                " sentinel://HOST:PORT,.../SERVICE/DB"
            ),
        ) from error
    return client


def connect_again(client: Redis, socket_timeout_s: float) -> Redis:
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
    # an ordinary pool, also where the client has one that blocks, or has arguments of its own
    pool_class: Any = redis.ConnectionPool
    if isinstance(pool, sentinel.SentinelConnectionPool):
        pool_class = sentinel.SentinelConnectionPool
        options |= {"service_name": pool.service_name, "sentinel_manager": pool.sentinel_manager}
    return redis.Redis(connection_pool=pool_class(**options))


def own_connection(client: Redis, socket_timeout_s: float) -> Any:
    """Return a bare connection to the same server, which opens itself when it is used."""
    return connect_again(client, socket_timeout_s).connection_pool.make_connection()


def client_for_url(url: str, options: dict[str, Any]) -> redis.Redis:
    """Return a client for `url` with these options of redis-py. ValueError for an unusable URL."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme != "sentinel":
        if parts.scheme in ("redis", "rediss") and database and not database.isdigit():
            # redis-py would use database 0 instead
            raise ValueError(f"invalid database number {database!r}")
        return redis.Redis.from_url(url, **options)

    # a sentinel URL: split it into addresses, service, logins and options
    login, _, hosts = parts.netloc.rpartition("@")
    service, _, database = database.partition("/")
    if not service:
        raise ValueError("it names no service")
    # redis-py knows the types of options
    query: Any = connection.parse_url(f"redis://?{parts.query}")  # type: ignore[no-untyped-call]
    for_sentinels = {
        name.removeprefix("sentinel_"): query.pop(name)
        for name in list(query)
        if name.startswith("sentinel_")
    }
    secure = {"ssl": True} if str(query.pop("ssl", "false")).lower() in ("1", "true", "yes") else {}
    tls = secure | {name: value for name, value in query.items() if name.startswith("ssl_")}
    user, _, password = login.partition(":")
    sentinels: Any = sentinel.Sentinel(  # type: ignore[no-untyped-call]
        [_split_address(word) for word in hosts.split(",")],
        sentinel_kwargs={**tls, **for_sentinels, "socket_timeout": CONNECT_TIMEOUT_S},
    )
    return sentinels.master_for(  # type: ignore[no-any-return]
        service,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(database or 0),
        **{**options, **secure, **query},
    )


def _split_address(text: str) -> tuple[str, int]:
    """Split HOST, HOST:PORT or [IPV6]:PORT of a sentinel."""
    address = urlsplit(f"//{text}")
    if not address.hostname:
        raise ValueError(f"{text!r} is not an address of a sentinel")
    return address.hostname, address.port or SENTINEL_PORT
