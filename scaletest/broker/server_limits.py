"""Warn of a server that will run out of memory or of connections."""

import ipaddress
import logging
from contextlib import suppress
from typing import Any

import redis

logger = logging.getLogger("scaletest.broker")

# The maxmemory-policy that deletes no keys.
KEEPS_EVERYTHING = "noeviction"
# Warn when this share of the connections that a server allows is in use.
MOST_CONNECTIONS = 0.8
# For requests, for heartbeats, and for commands of RQ's tools.
CONNECTIONS_A_WORKER = 3
# What this process has warned of already.
_warned: set[str] = set()


def warn_of_limits(client: redis.Redis, name: str, hosts: list[str]) -> None:
    """Log once what happens when the server's memory or its connections are used up.

    name: the server, fit for messages. hosts: where it listens; none for a socket. Silent where
    INFO is forbidden.
    """
    pipe = client.pipeline(transaction=False)
    pipe.info("memory")
    pipe.info("clients")
    # where INFO is forbidden the answer is an error instead of a section
    memory, clients = (
        answer if isinstance(answer, dict) else {} for answer in pipe.execute(raise_on_error=False)
    )
    for key, warning in (
        (f"memory {name}", memory_warning(memory, name, hosts)),
        (f"connections {name}", connections_warning(clients, name)),
    ):
        if warning and key not in _warned:
            _warned.add(key)
            logger.warning("%s", warning)


def connections_warning(info: dict[str, Any], name: str) -> str:
    """Return the warning about the clients section of INFO; "" without a reason or figures."""
    connected, maximum = int(info.get("connected_clients", 0)), int(info.get("maxclients", 0))
    if not maximum or connected < MOST_CONNECTIONS * maximum:
        return ""
    return (
        f"Redis at {name} has {connected} of at most {maximum} connections: soon it will refuse"
        f" workers, which need {CONNECTIONS_A_WORKER} each; raise maxclients"
    )


def memory_warning(info: dict[str, Any], name: str, hosts: list[str]) -> str:
    """Return the warning about the memory section of INFO; "" without a reason or figures."""
    policy, maximum = str(info.get("maxmemory_policy", "")), info.get("maxmemory")
    if policy and policy != KEEPS_EVERYTHING:
        return (
            f"Redis at {name} evicts keys when its memory is full (maxmemory-policy {policy}):"
            " requests and replies get lost without an error; set maxmemory-policy"
            f" {KEEPS_EVERYTHING}"
        )
    if maximum == 0 and not all(map(_is_on_this_machine, hosts)):
        return (
            f"Redis at {name} has no maxmemory: in a container the kernel kills it at the"
            " container's limit, with all that waits, and again after each restart; set maxmemory"
            " to half of that limit"
        )
    return ""


def _is_on_this_machine(host: str) -> bool:
    with suppress(ValueError):  # a name, not an address
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"
