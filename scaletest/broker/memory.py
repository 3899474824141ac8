"""A Redis whose memory is full: what it will do then, asked when we connect, and what to say when it is so far."""

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
    "start more workers, drop what waits (scaletest queue purge NAME), or raise maxmemory (the chart: redis.resources)"
)
# In the middle of a text when a pipeline or a script passes the error on.
_FULL = re.compile(r"\bOOM\b")
_warned: set[str] = set()


def is_full(error: BaseException) -> bool:
    """Whether the server refused a command since its memory is full. Nothing of that command was carried out."""
    if isinstance(error, redis.exceptions.OutOfMemoryError):
        return True
    return isinstance(error, redis.exceptions.ResponseError) and bool(_FULL.search(str(error)))


def warn_of_memory(client: redis.Redis, name: str, hosts: list[str]) -> None:
    """Log once what will be lost when the server's memory is full. name: the server, fit for messages.

    hosts: where it listens; none for a socket. Silent where INFO is forbidden: then nothing is known.
    """
    try:
        info: dict[str, Any] = client.info("memory")
    except redis.exceptions.ResponseError:
        return
    warning = memory_warning(info, name, hosts)
    if warning and warning not in _warned:
        _warned.add(warning)
        logger.warning("%s", warning)


def memory_warning(info: dict[str, Any], name: str, hosts: list[str]) -> str:
    """The warning that the memory section of INFO gives cause for; "" when there is none, or nothing is known."""
    policy, maximum = str(info.get("maxmemory_policy", "")), info.get("maxmemory")
    if policy and policy != KEEPS_EVERYTHING:
        return (
            f"Redis at {name} evicts keys when its memory is full (maxmemory-policy {policy}): requests and replies get"
            f" lost without an error; set maxmemory-policy {KEEPS_EVERYTHING}"
        )
    if maximum == 0 and not all(map(_on_this_machine, hosts)):
        return (
            f"Redis at {name} has no maxmemory: in a container the kernel kills it at the container's limit, with all"
            " that waits, and again after each restart; set maxmemory to half of that limit"
        )
    return ""


def _on_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
