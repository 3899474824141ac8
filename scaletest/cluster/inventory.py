"""What a cluster allows a validation, and what it has for one: rights, metrics, room for workers,
and what workers can observe on nodes. Reads only.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any

from scaletest.cluster import capacity, discovery, pod_requests, rights
from scaletest.cluster.connection import ApiCalls, Cluster
from scaletest.cluster.deployment import Deployment, pod_templates
from scaletest.cluster.objects import PODS, ObjectClient, read_log
from scaletest.model.declared import named_in_documents
from scaletest.model.visibility import Visibility, visibility_gaps
from scaletest.model.writing import Written

MOST_NODES = 50
# Logs that are read for each node, since the beginning of a log may be rotated away.
MOST_PODS = 3
LOG_BYTES = 65536


@dataclass(frozen=True, slots=True)
class NodeRow:
    """What the workers of a node can read to name causes. known: whether a worker's log says it."""

    node: str
    pod: str
    known: bool
    gaps: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class RightRow:
    """A right, whether we have it, whether a validation needs it, and what for."""

    right: str
    allowed: bool
    needed: bool
    why: Annotated[str, named_in_documents("for")]


@dataclass(frozen=True, slots=True)
class RoomRow:
    """How many workers of a Deployment fit, those included that are placed; None when unknown."""

    deployment: str
    room: int | None
    placed: int
    limited_by: str


@dataclass(frozen=True, slots=True)
class ClusterAllowance(Written):
    """What a validation may do, and what stands in its way; None for what we may not know."""

    namespace: str
    version: str
    rights: list[RightRow]
    apis: list[discovery.MetricsApi]
    keda: bool
    dynamic_resource_allocation: str
    rooms: list[RoomRow]
    causes: list[NodeRow] | None
    warnings: list[str]

    @property
    def lacking(self) -> list[str]:
        """Rights that are needed and missing."""
        return [row.right for row in self.rights if row.needed and not row.allowed]


def allowance(cluster: Cluster, deployment: str) -> ClusterAllowance:
    """Look at rights, quotas and Deployments. deployment: of Deployments at this one alone."""
    served = discovery.api_groups(cluster)
    keda = discovery.KEDA in served
    needed = (*rights.NEEDED, rights.PROXY, *rights.HOLD)
    if keda:
        needed += (rights.KEDA, *rights.PAUSE)
    asked = (*(*needed, *rights.EXPLAIN, *rights.QUOTA, *rights.LISTED, *rights.CAPACITY),)
    lacking = rights.missing_rights(cluster, asked)
    rooms: list[RoomRow] = []
    warnings: list[str] = []
    if not set(rights.NEEDED) & set(lacking):
        rooms, warnings = _rooms(cluster, deployment)
    return ClusterAllowance(
        cluster.namespace,
        ObjectClient(cluster).version(),
        [RightRow(str(right), right not in lacking, right in needed, right.why) for right in asked],
        discovery.metrics_apis(cluster, served),
        keda,
        served.get(discovery.ALLOCATION, ""),
        rooms,
        causes(cluster),
        warnings,
    )


def _rooms(cluster: Cluster, name: str) -> tuple[list[RoomRow], list[str]]:
    """Return the room for the workers of every Deployment, and warnings about what Deployments ask
    for.

    name: of one Deployment, which alone is looked at; "" for all.
    """
    if name:
        asked = {name: Deployment(cluster, name).template}
    elif rights.missing_rights(cluster, rights.LISTED):
        return [], [
            "the Deployments were not looked at: we may not list them; give <deployment> NAME"
        ]
    else:
        asked = pod_templates(cluster)
    supply = capacity.Supply.read(cluster)
    rooms = []
    warnings = list(supply.unknown)
    for deployment, template in asked.items():
        spec, who = template["spec"], f"deployment {deployment}"
        warnings += pod_requests.warn_of_removed(who, spec)
        if without_causes(spec):
            warnings.append(f"{who}: its workers have <no_causes>, so no run names a cause")
        if name or worker_container(spec):
            placed = Deployment(cluster, deployment).placed()
            free = supply.headroom(spec, placed)
            rooms.append(RoomRow(deployment, free.room, placed, free.scarce or free.by))
            if free.doubt:
                warnings.append(f"{who}: {free.doubt}")
    return rooms, warnings


def causes(cluster: Cluster) -> list[NodeRow] | None:
    """Return what workers of the namespace can read on each node for causes, as each logged it at
    its start, sorted by node; None when we may not know. Nothing is started in the cluster.
    """
    if rights.missing_rights(cluster, rights.VIEWS):
        return None
    raw = ApiCalls(cluster)
    workers: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for pod in raw.objects(
        PODS.path(cluster.namespace), PODS.plural, fieldSelector="status.phase=Running"
    ):
        container = worker_container(pod["spec"])
        if container and pod["spec"].get("nodeName"):
            workers[pod["spec"]["nodeName"]].append((pod["metadata"]["name"], container["name"]))
    return [
        _node_row(raw, cluster.namespace, node, workers[node])
        for node in sorted(workers)[:MOST_NODES]
    ]


def _node_row(
    raw: ApiCalls, namespace: str, node: str, workers: Sequence[tuple[str, str]]
) -> NodeRow:
    for pod, container in workers[:MOST_PODS]:
        status, text = read_log(raw, namespace, pod, container=container, limitBytes=str(LOG_BYTES))
        for line in text.splitlines() if status == 200 else ():
            if (view := Visibility.from_line(line)) is not None:
                return NodeRow(node, pod, True, visibility_gaps(view))
    return NodeRow(node, workers[0][0], False, [])


def worker_container(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container that runs a worker, empty when none does."""
    return next(
        (
            container
            for container in spec.get("containers", [])
            if "worker" in _command_line(container)[:4]
        ),
        {},
    )


def without_causes(spec: Mapping[str, Any]) -> bool:
    """Return whether the workers of a pod have the option not to sample causes."""
    # what follows a -- is the workload's command line
    own_words = takewhile(lambda word: word != "--", _command_line(worker_container(spec)))
    return "--no-causes" in own_words


def _command_line(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]
