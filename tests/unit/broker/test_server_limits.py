"""Warnings of a server that will run out of memory or of connections."""

from typing import Any

import pytest

from scaletest.broker.server_limits import connections_warning, memory_warning

EVICTING = {"maxmemory_policy": "allkeys-lru", "maxmemory": 1 << 30}
UNLIMITED = {"maxmemory_policy": "noeviction", "maxmemory": 0}
LIMITED = {"maxmemory_policy": "noeviction", "maxmemory": 1 << 30}


@pytest.mark.parametrize(
    ("info", "hosts", "warning"),
    [
        (EVICTING, ["redis"], "maxmemory-policy allkeys-lru"),
        (EVICTING, [], "maxmemory-policy allkeys-lru"),
        (UNLIMITED, ["redis"], "no maxmemory"),
        (UNLIMITED, ["127.0.0.1", "10.0.0.1"], "no maxmemory"),
        # on the machine of whoever looks, or when nothing is known, nothing is said
        (UNLIMITED, ["localhost"], ""),
        (UNLIMITED, ["::1"], ""),
        (UNLIMITED, [], ""),
        (LIMITED, ["redis"], ""),
        ({}, ["redis"], ""),
    ],
)
def test_a_memory_warning_is_given_only_for_a_risky_setting(
    info: dict[str, Any], hosts: list[str], warning: str
) -> None:
    text = memory_warning(info, "redis://host", hosts)
    assert warning in text and bool(text) == bool(warning)


@pytest.mark.parametrize(
    ("info", "warns"),
    [
        ({"connected_clients": 8000, "maxclients": 10000}, True),
        ({"connected_clients": 7999, "maxclients": 10000}, False),
        ({"connected_clients": 9999}, False),
        ({}, False),
    ],
)
def test_a_redis_with_nearly_all_connections_in_use_gives_a_warning(
    info: dict[str, Any], warns: bool
) -> None:
    text = connections_warning(info, "redis://host")
    assert bool(text) == warns
    assert not warns or "8000 of at most 10000 connections" in text
