"""How far a plan can grow: what nodes and quotas have room for, or why that is unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.cluster import capacity, devices, rights
from scaletest.cluster.capacity import NodeCapacity
from scaletest.cluster.connection import Cluster


@dataclass(frozen=True, slots=True)
class Headroom:
    """room: pods that fit in all, None when unknown. by: what ends it. doubts: what was not counted, and why."""

    room: int | None
    by: str
    doubts: tuple[str, ...]


def headroom(cluster: Cluster, spec: Mapping[str, Any], have: int = 0, who: str = "the plan") -> Headroom:
    """For pods of this spec, of which `have` are placed already. Without a right to read, what it is for is a doubt."""
    doubts = devices.removed(who, spec)
    if spec.get("resourceClaims"):
        doubts.append("whether there are devices enough is unknown: resource claims are the scheduler's to count")
    rooms: list[tuple[int, str]] = []
    found = read_nodes(cluster)
    if isinstance(found, str):
        doubts.append(f"capacity is unknown: {found}")
    else:
        rooms.append((have + capacity.room(spec, found), "the nodes"))
    lacking = rights.missing(cluster, rights.QUOTA)
    if lacking:
        doubts.append(f"quotas are unknown: we may not {lacking[0]}")
    else:
        quota = capacity.quota_room(spec, capacity.quotas(cluster))
        rooms += [(have + quota[0], quota[1])] if quota else []
    if isinstance(found, str) and not rooms:
        return Headroom(None, "", tuple(doubts))
    room, by = min(rooms)
    return Headroom(room, by, tuple(doubts))


def read_nodes(cluster: Cluster) -> Sequence[NodeCapacity] | str:
    """The nodes, or why they are unknown."""
    lacking = rights.missing(cluster, rights.CAPACITY)
    return f"we may not {', '.join(map(str, lacking))}" if lacking else capacity.nodes(cluster)
