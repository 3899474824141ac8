"""Find out what a cluster allows a validation, and what it has for one. Nothing is changed."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Annotated, Any

from scaletest.cluster import capacity, discovery, pod_requests, rights
from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.deployment import Deployment, pod_templates
from scaletest.cluster.objects import ObjectClient, read_log
from scaletest.cluster.resources import PODS
from scaletest.model.declared import named_in_documents
from scaletest.model.visibility import Visibility, visibility_gaps
from scaletest.model.writing import Written


@dataclass(frozen=True, slots=True)
class NodeRow:
    """What the workers of a node can read to name causes."""

    node: str
    pod: str  # the worker whose log says it
    known: bool  # whether any log says it
    gaps: list[dict[str, str]]  # what cannot be read, and how to change that


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
    apis: list[discovery.MetricsApi]
    keda: bool
    dynamic_resource_allocation: str  # the version of its API, "" without one
    rooms: list[RoomRow]
    causes: list[NodeRow] | None  # None when we may not know
    warnings: list[str]

    @property
    def lacking(self) -> list[str]:
        """Rights that are needed and missing."""
        return [row.right for row in self.rights if row.needed and not row.allowed]


def allowance(cluster: Cluster, deployment: str) -> ClusterAllowance:
    """Look at rights, metrics, Deployments, room for workers, and what they can observe.

    deployment: the only one to look at; "" for all of the namespace.
    """
    served = discovery.api_groups(cluster)
    keda = discovery.KEDA in served
    needed = (*rights.NEEDED, rights.PROXY, *rights.HOLD)
    if keda:
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
        apis=discovery.metrics_apis(cluster, served),
        keda=keda,
        dynamic_resource_allocation=served.get("resource.k8s.io", ""),
        rooms=rooms,
        causes=causes(cluster),
        warnings=warnings,
    )


def _read_rooms(cluster: Cluster, name: str) -> tuple[list[RoomRow], list[str]]:
    """Return the room for the workers of Deployments, and warnings about what these ask for."""
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
        spec, title = template["spec"], f"deployment {deployment}"
        warnings += pod_requests.warn_of_removed(title, spec)
        if without_causes(spec):
            warnings.append(f"{title}: its workers have <no_causes>, so no run names a cause")
        # of all Deployments only those of workers count
        if name or worker_container(spec):
            placed = Deployment(cluster, deployment).placed()
            headroom = supply.headroom(spec, placed)
            limit = headroom.scarce or headroom.by
            rooms.append(RoomRow(deployment, headroom.room, placed, limit))
            if headroom.doubt:
                warnings.append(f"{title}: {headroom.doubt}")
    return rooms, warnings


def causes(cluster: Cluster) -> list[NodeRow] | None:
    """Return what workers of the namespace can read on each node for causes, sorted by node.

    Each worker logged it at its start; nothing is started in the cluster. None when we may not read
    the logs.
    """
    if rights.missing_rights(cluster, rights.VIEWS):
        return None
    api = ApiCalls(cluster)
    workers: dict[str, list[tuple[str, str]]] = defaultdict(list)  # pods and containers by node
    for pod in api.objects(
        PODS.path(cluster.namespace), PODS.plural, fieldSelector="status.phase=Running"
    ):
        container = worker_container(pod["spec"])
        if container and pod["spec"].get("nodeName"):
            workers[pod["spec"]["nodeName"]].append((pod["metadata"]["name"], container["name"]))
    # of 50 nodes at most
    return [_node_row(api, cluster.namespace, node, workers[node]) for node in sorted(workers)[:50]]


def _node_row(
    api: ApiCalls, namespace: str, node: str, workers: Sequence[tuple[str, str]]
) -> NodeRow:
    """Read the logs of the workers of a node until one of them says what they can read."""
    # more than one log, since the beginning of one may be rotated away
    for pod, container in workers[:3]:
        status, text = read_log(api, namespace, pod, container=container, limitBytes="65536")
        for line in text.splitlines() if status == 200 else ():
            visibility = Visibility.from_line(line)
            if visibility is not None:
                return NodeRow(node, pod, True, visibility_gaps(visibility))
    return NodeRow(node, workers[0][0], False, [])


def worker_container(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the container that runs a worker, empty when none does."""
    containers: list[Mapping[str, Any]] = spec.get("containers", [])
    return next((found for found in containers if "worker" in _command_line(found)[:4]), {})


def without_causes(spec: Mapping[str, Any]) -> bool:
    """Return whether the workers of a pod have the option not to sample causes."""
    # what follows a -- is the workload's command line
    own_words = takewhile(lambda word: word != "--", _command_line(worker_container(spec)))
    return "--no-causes" in own_words


def _command_line(container: Mapping[str, Any]) -> list[str]:
    return [*(container.get("command") or []), *(container.get("args") or [])]
