"""Limits of a Redis, memory and connections: checked on connecting, with messages of what to do."""

from __future__ import annotations

import ipaddress
import logging
import re
from typing import Any

import redis.exceptions

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
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return True
    return isinstance(error, redis.exceptions.ResponseError) and bool(_FULL.search(str(error)))


def warn_of_limits(client: redis.Redis, name: str, hosts: list[str]) -> None:
    """Log once what happens when the server's memory is full, and when its connections are nearly
    used up.

    name: the server, fit for messages. hosts: where it listens; none for a socket. Silent where
    INFO is forbidden.
    """
    pipe = client.pipeline(transaction=False)
    pipe.info("memory")
    pipe.info("clients")
    answers = pipe.execute(raise_on_error=False)
    # where INFO is forbidden the answer is an error
    memory, clients = map(_section, answers)
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
