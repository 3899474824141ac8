"""Headroom of a plan: how many of its pods fit on the nodes and into the quotas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.cluster import capacity, devices, rights
from scaletest.cluster.capacity import NodeCapacity
from scaletest.cluster.connection import Cluster


@dataclass(frozen=True, slots=True)
class Headroom:
    """room: pods that fit in all, None when unknown. by: what limits it.

    doubts: what could not be counted, and why.
    """

    room: int | None
    by: str
    doubts: tuple[str, ...]


def headroom(
    cluster: Cluster, spec: Mapping[str, Any], have: int = 0, who: str = "the plan"
) -> Headroom:
    """Headroom for pods of this spec. A limit that we have no right to read becomes a doubt.

    have: pods that are placed already. who: name of the plan, for the text of doubts.
    """
    doubts = devices.removed(who, spec)
    if spec.get("resourceClaims"):
        doubts.append(
            "whether there are enough devices is unknown: only the scheduler can count resource"
            " claims"
        )
    rooms: list[tuple[int, str]] = []
    nodes = read_nodes(cluster)
    if isinstance(nodes, str):
        doubts.append(f"capacity is unknown: {nodes}")
    else:
        rooms.append((have + capacity.room(spec, nodes), "the nodes"))
    lacking = rights.missing(cluster, rights.QUOTA)
    if lacking:
        doubts.append(f"quotas are unknown: we may not {lacking[0]}")
    else:
        quota = capacity.quota_room(spec, capacity.quotas(cluster))
        if quota:
            rooms.append((have + quota[0], quota[1]))
    if isinstance(nodes, str) and not rooms:
        return Headroom(None, "", tuple(doubts))
    room, by = min(rooms)
    return Headroom(room, by, tuple(doubts))


def read_nodes(cluster: Cluster) -> Sequence[NodeCapacity] | str:
    """The nodes, or why they are unknown."""
    lacking = rights.missing(cluster, rights.CAPACITY)
    if lacking:
        return f"we may not {', '.join(map(str, lacking))}"
    return capacity.nodes(cluster)
