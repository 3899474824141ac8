"""Count how many more pods of a template the nodes and the quotas of a cluster have room for.

It is an upper bound: the scheduler also applies affinity, spread and priorities. Devices of device
plugins are resources like any other. Those of dynamic resource allocation only the scheduler can
count.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, NamedTuple, Self

from scaletest.cluster import rights
from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.pod_requests import (
    parse_quantities,
    parse_quantity,
    pod_limits,
    pod_requests,
    sum_amounts,
)
from scaletest.cluster.resources import NODES, PODS, QUOTAS


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """What is free on a node, in units (cores, bytes, pods, devices), and which pods it takes."""

    name: str
    free: Mapping[str, Decimal]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    schedulable: bool = True


class QuotaRoom(NamedTuple):
    """How many further pods the quotas admit, and what ends it: a quota and its key."""

    pods: int
    limited_by: str


def quota_room(spec: Mapping[str, Any], quotas: Iterable[Mapping[str, Any]]) -> QuotaRoom | None:
    """Count the further pods of this spec that the quotas admit; None when no quota applies.

    quotas: ResourceQuota objects.
    """
    requests = pod_requests(spec)
    # what one pod adds to each key of a quota; a bare name stands for the request
    amounts = {
        **requests,
        **{f"requests.{name}": amount for name, amount in requests.items()},
        **{f"limits.{name}": amount for name, amount in pod_limits(spec).items()},
        "count/pods": Decimal(1),
    }
    rooms = []
    for quota in quotas:
        if quota["spec"].get("scopes") or quota["spec"].get("scopeSelector"):
            continue  # only the API server knows whether it applies
        used = quota.get("status", {}).get("used", {})
        for key, hard in quota["spec"].get("hard", {}).items():
            if amounts.get(key):
                left = max(Decimal(0), parse_quantity(hard) - parse_quantity(used.get(key, "0")))
                title = f"quota {quota['metadata']['name']}: {key}"
                rooms.append(QuotaRoom(int(left // amounts[key]), title))
    return min(rooms, default=None)


def read_nodes(cluster: Cluster) -> list[NodeCapacity]:
    """Read the nodes with what is free on them.

    Needs the right to list nodes and the pods of all namespaces.
    """
    api = ApiCalls(cluster)
    nodes = api.list_objects(NODES.path(""), NODES.plural)
    requests: dict[str, list[dict[str, Decimal]]] = defaultdict(list)
    for pod in api.get(PODS.path(""), "list all pods", "list pods of all namespaces")["items"]:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            requests[pod["spec"].get("nodeName", "")].append(pod_requests(pod["spec"]))
    capacities = []
    for node in nodes:
        meta, spec, status = node["metadata"], node.get("spec", {}), node["status"]
        allocatable = parse_quantities(status.get("allocatable", {}))
        taken = sum_amounts(requests[meta["name"]])
        ready = any(
            condition["type"] == "Ready" and condition["status"] == "True"
            for condition in status.get("conditions", [])
        )
        capacities.append(
            NodeCapacity(
                name=meta["name"],
                free={name: amount - taken.get(name, 0) for name, amount in allocatable.items()},
                labels=meta.get("labels", {}),
                taints=tuple(spec.get("taints", ())),
                schedulable=ready and not spec.get("unschedulable", False),
            )
        )
    return capacities


def _admits(spec: Mapping[str, Any], node: NodeCapacity) -> bool:
    """Return whether the scheduler may place a pod on a node, by node selector and taints."""
    if not node.schedulable or not (spec.get("nodeSelector") or {}).items() <= node.labels.items():
        return False
    tolerations = spec.get("tolerations") or []
    return all(
        any(_tolerates(toleration, taint) for toleration in tolerations)
        for taint in node.taints
        if taint["effect"] in ("NoSchedule", "NoExecute")  # PreferNoSchedule keeps no pod away
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])  # no key stands for every one
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get(
        "value", ""
    )


@dataclass(frozen=True, slots=True)
class Headroom:
    """Room for pods."""

    room: int | None  # pods that fit in all, None when unknown
    limited_by: str  # a quota, or the nodes with the resource that runs out first on them
    doubt: str  # what could not be counted, "" for nothing


@dataclass(frozen=True, slots=True)
class Supply:
    """What a cluster has for pods of a namespace; None for what we have no right to read."""

    nodes: Sequence[NodeCapacity] | None
    quotas: Sequence[Mapping[str, Any]] | None  # ResourceQuota objects
    unknown: tuple[str, ...]  # why something is unknown

    @classmethod
    def read(cls, cluster: Cluster) -> Self:
        """Read what we have the right to read."""
        nodes, quotas = None, None
        unknown = []
        if lacking := rights.missing_rights(cluster, rights.CAPACITY):
            unknown.append(f"capacity is unknown: we may not {', '.join(map(str, lacking))}")
        else:
            nodes = read_nodes(cluster)
        if lacking := rights.missing_rights(cluster, rights.QUOTA):
            unknown.append(f"quotas are unknown: we may not {lacking[0]}")
        else:
            quotas = ApiCalls(cluster).list_objects(QUOTAS.path(cluster.namespace), QUOTAS.plural)
        return cls(nodes, quotas, tuple(unknown))

    def headroom(self, spec: Mapping[str, Any], placed: int) -> Headroom:
        """Return how many pods of this spec fit, with those that are placed already."""
        doubt = ""
        if spec.get("resourceClaims"):
            doubt = (
                "whether there are enough devices is unknown: only the scheduler can count resource"
                " claims"
            )
        # for how many further pods each resource suffices, on the nodes that admit such a pod
        requests = pod_requests(spec)
        pods_by_resource: Counter[str] = Counter()
        on_nodes = placed
        for node in self.nodes or ():
            if _admits(spec, node):
                fitting = {
                    name: max(0, int(node.free.get(name, Decimal(0)) // amount))
                    for name, amount in requests.items()
                    if amount
                }
                pods_by_resource.update(fitting)
                on_nodes += min(fitting.values())
        quota = quota_room(spec, self.quotas or ())
        if quota and (self.nodes is None or placed + quota.pods < on_nodes):
            return Headroom(placed + quota.pods, quota.limited_by, doubt)
        if self.nodes is None:
            return Headroom(None, "", doubt)
        limited_by = "the nodes"
        if pods_by_resource:
            limited_by += f" ({min(pods_by_resource, key=pods_by_resource.__getitem__)})"
        return Headroom(on_nodes, limited_by, doubt)
