"""Make a client from the text of a Redis URL: redis, rediss, unix or sentinel. Connects to nothing.

A sentinel URL is sentinel://[USER:PASSWORD@]HOST:PORT[,HOST:PORT...]/SERVICE[/DB], and leads to the
service's present master. User and password are the master's; the sentinels' own are
sentinel_username and sentinel_password in the query. With ssl=true both are spoken to over TLS,
with the ssl_... options that a rediss URL takes.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

import redis
from redis import connection, sentinel

CONNECT_TIMEOUT_S = 5.0
SENTINEL_PORT = 26379


def client_for_url(url: str, options: dict[str, Any]) -> redis.Redis:
    """Return a client for `url` with these options of redis-py. ValueError for an unusable URL."""
    parts = urlsplit(url)
    database = parts.path.strip("/")
    if parts.scheme != "sentinel":
        if parts.scheme in ("redis", "rediss") and database and not database.isdigit():
            # redis-py would use database 0 instead
            raise ValueError(f"{database!r} is not a database number")
        return redis.Redis.from_url(url, **options)
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
        [_address(word) for word in hosts.split(",")],
        sentinel_kwargs={**tls, **for_sentinels, "socket_timeout": CONNECT_TIMEOUT_S},
    )
    return sentinels.master_for(  # type: ignore[no-any-return]
        service,
        username=unquote(user) or None,
        password=unquote(password) or None,
        db=int(database or 0),
        **{**options, **secure, **query},
    )


def hosts_of_url(url: str) -> list[str]:
    """Return the hosts that a URL names; none for a socket."""
    parts = urlsplit(url)
    hosts = [] if parts.scheme == "unix" else parts.netloc.rpartition("@")[2].split(",")
    return [_address(text)[0] for text in hosts]


def _address(text: str) -> tuple[str, int]:
    """Split HOST, HOST:PORT or [IPV6]:PORT of a sentinel."""
    address = urlsplit(f"//{text}")
    if not address.hostname:
        raise ValueError(f"{text!r} is not an address of a sentinel")
    return address.hostname, address.port or SENTINEL_PORT
