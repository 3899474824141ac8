"""Find out what a cluster allows a validation, and what it has for one. Nothing is changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from scaletest.cluster import capacity, discovery, rights
from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.deployment import Deployment, pod_templates
from scaletest.cluster.objects import ObjectClient
from scaletest.model.declared import named_in_documents
from scaletest.model.writing import Written


@dataclass(frozen=True, slots=True)
class RightRow:
    """A right of a validation."""

    right: str
    allowed: bool  # whether we have it
    needed: bool  # whether a validation needs it
    why: Annotated[str, named_in_documents("for")]


@dataclass(frozen=True, slots=True)
class RoomRow:
    """Room for the workers of a Deployment."""

    deployment: str
    room: int | None  # how many fit, those included that are placed; None when unknown
    placed: int
    limited_by: str


@dataclass(frozen=True, slots=True)
class ClusterAllowance(Written):
    """What a validation may do, and what stands in its way."""

    namespace: str
    version: str  # of the API server
    rights: list[RightRow]
    rooms: list[RoomRow]
    warnings: list[str]

    @property
    def lacking(self) -> list[str]:
        """Rights that are needed and missing."""
        return [row.right for row in self.rights if row.needed and not row.allowed]


def read_allowance(cluster: Cluster, deployment: str) -> ClusterAllowance:
    """Look at our rights, and at the room for workers.

    deployment: the only one to look at; "" for all of the namespace.
    """
    needed = (*rights.NEEDED, rights.PROXY, *rights.HOLD)
    if discovery.KEDA in discovery.api_groups(cluster):
        needed += (rights.KEDA, *rights.PAUSE)
    wanted = (*needed, *rights.EXPLAIN, *rights.QUOTA, *rights.LISTED, *rights.CAPACITY)
    lacking = rights.missing_rights(cluster, wanted)
    rooms: list[RoomRow] = []
    warnings: list[str] = []
    if not set(rights.NEEDED) & set(lacking):
        rooms, warnings = _read_rooms(cluster, deployment)
    return ClusterAllowance(
        namespace=cluster.namespace,
        version=ObjectClient(cluster).version(),
        rights=[
            RightRow(str(right), right not in lacking, right in needed, right.why)
            for right in wanted
        ],
        rooms=rooms,
        warnings=warnings,
    )


def _read_rooms(cluster: Cluster, name: str) -> tuple[list[RoomRow], list[str]]:
    """Return the room for the workers of Deployments, and what is unknown about it."""
    if name:
        templates = {name: Deployment(cluster, name).template}
    elif rights.missing_rights(cluster, rights.LISTED):
        return [], [
            "the Deployments were not looked at: we may not list them; give <deployment> NAME"
        ]
    else:
        templates = pod_templates(cluster)
    supply = capacity.Supply.read(cluster)
    rooms = []
    warnings = list(supply.unknown)
    for deployment, template in templates.items():
        spec = template["spec"]
        # of all Deployments only those of workers count
        if name or _has_worker(spec):
            placed = Deployment(cluster, deployment).placed()
            headroom = supply.headroom(spec, placed)
            rooms.append(RoomRow(deployment, headroom.room, placed, headroom.limited_by))
            if headroom.doubt:
                warnings.append(f"deployment {deployment}: {headroom.doubt}")
    return rooms, warnings


def _has_worker(spec: Mapping[str, Any]) -> bool:
    """Return whether a container of the pod runs a worker."""
    for container in spec.get("containers", []):
        command_line = [*(container.get("command") or []), *(container.get("args") or [])]
        if "worker" in command_line[:4]:
            return True
    return False
