"""Find out what a cluster allows a validation, and what it has for one. Nothing is changed."""

from dataclasses import dataclass
from typing import Annotated

from scaletest.cluster import capacity, discovery, rights
from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.deployment import Deployment
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
    room: RoomRow | None  # None when no Deployment was asked about
    warnings: list[str]

    @property
    def lacking(self) -> list[str]:
        """Rights that are needed and missing."""
        return [row.right for row in self.rights if row.needed and not row.allowed]


def read_allowance(cluster: Cluster, deployment: str) -> ClusterAllowance:
    """Look at our rights, and at the room for the workers of a Deployment, "" for none."""
    needed = (*rights.NEEDED, rights.PROXY, *rights.HOLD)
    if rights.KEDA.group in discovery.api_groups(cluster):
        needed += (rights.KEDA, *rights.PAUSE)
    wanted = (*needed, *rights.EXPLAIN, *rights.QUOTA, *rights.CAPACITY)
    lacking = rights.missing_rights(cluster, wanted)
    room: RoomRow | None = None
    warnings: list[str] = []
    if deployment and not set(rights.NEEDED) & set(lacking):
        supply = capacity.Supply.read(cluster)
        found = Deployment(cluster, deployment)
        placed = found.placed()
        headroom = supply.headroom(found.template["spec"], placed)
        room = RoomRow(deployment, headroom.room, placed, headroom.limited_by)
        warnings = [*supply.unknown, *filter(None, [headroom.doubt])]
    return ClusterAllowance(
        namespace=cluster.namespace,
        version=ObjectClient(cluster).version(),
        rights=[
            RightRow(str(right), right not in lacking, right in needed, right.why)
            for right in wanted
        ],
        room=room,
        warnings=warnings,
    )
