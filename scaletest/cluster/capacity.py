"""Room on the nodes for more pods of a template: allocatable less requested, devices, and quotas.

It is an upper bound: the scheduler also applies affinity, spread, quotas and priorities. Functions
that compute and that read objects are pure.

Devices of device plugins are resources like any other. Those of dynamic resource allocation only
the scheduler can count.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from scaletest.cluster import rights
from scaletest.cluster.connection import Cluster, Raw
from scaletest.cluster.objects import NODES, PODS, QUOTAS

# Kubernetes's suffixes of quantities; a longer one comes before its own end.
SUFFIXES = {
    **{f"{prefix}i": Decimal(1024**power) for power, prefix in enumerate("KMGTPE", 1)},
    **{prefix: Decimal(1000**power) for power, prefix in enumerate("kMGTPE", 1)},
    "m": Decimal("1e-3"),
    "u": Decimal("1e-6"),
    "n": Decimal("1e-9"),
    "": Decimal(1),
}
BLOCKING = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeCapacity:
    """Free and allocatable resources of a node, in units (cores, bytes, pods, devices)."""

    name: str
    free: Mapping[str, Decimal]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    schedulable: bool = True
    allocatable: Mapping[str, Decimal] = field(default_factory=dict)


def quantity(text: str | int) -> Decimal:
    """A Kubernetes quantity as a number: "250m" is 0.25, "1Gi" is 2**30; 0 for other text."""
    number = str(text)
    suffix = next(filter(number.endswith, SUFFIXES))
    try:
        return Decimal(number.removesuffix(suffix)) * SUFFIXES[suffix]
    except InvalidOperation:
        return Decimal(0)


def requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a pod: the sum of its containers, or its largest init container; and one pod."""
    largest = _sums(map(container_requests, spec.get("containers", [])))
    for container in spec.get("initContainers", []):
        for name, amount in container_requests(container).items():
            largest[name] = max(largest.get(name, Decimal(0)), amount)
    return {**largest, "pods": Decimal(1)}


def limits(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Limits of a pod: the sum of its containers."""
    resources = [container.get("resources") or {} for container in spec.get("containers", [])]
    return _sums(_quantities(amounts.get("limits") or {}) for amounts in resources)


def _sums(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    total: dict[str, Decimal] = defaultdict(Decimal)
    for part in parts:
        for name, amount in part.items():
            total[name] += amount
    return total


def _quantities(texts: Mapping[str, str | int]) -> dict[str, Decimal]:
    return {name: quantity(text) for name, text in texts.items()}


def room(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> int:
    """Number of further pods of this spec that fit on the nodes."""
    return sum(min(_fitting(spec, node).values()) for node in nodes if _admits(spec, node))


def scarcest(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> str:
    """The resource that runs out first, "" when no node admits such a pod at all."""
    fitting: Counter[str] = Counter()
    for node in nodes:
        if _admits(spec, node):
            fitting.update(_fitting(spec, node))
    return min(fitting, key=fitting.__getitem__, default="")


def _fitting(spec: Mapping[str, Any], node: NodeCapacity) -> dict[str, int]:
    """For how many further pods each resource that they request suffices on a node."""
    return {
        name: max(0, int(node.free.get(name, Decimal(0)) // amount))
        for name, amount in requests(spec).items()
        if amount
    }


def quota_room(
    spec: Mapping[str, Any], quotas: Iterable[Mapping[str, Any]]
) -> tuple[int, str] | None:
    """Number of further pods of this spec that the quotas admit, and the quota that ends it.

    None when no quota applies. quotas: ResourceQuota objects; those with scopes are left out, since
    only the API server knows whether they apply.
    """
    wanted, most = requests(spec), limits(spec)
    rooms: list[tuple[int, str]] = []
    for quota in quotas:
        if quota["spec"].get("scopes") or quota["spec"].get("scopeSelector"):
            continue
        used = quota.get("status", {}).get("used", {})
        for key, hard in quota["spec"].get("hard", {}).items():
            amount = _counted_by(key, wanted, most)
            if amount:
                left = max(Decimal(0), quantity(hard) - quantity(used.get(key, "0")))
                rooms.append((int(left // amount), f"quota {quota['metadata']['name']}: {key}"))
    return min(rooms, default=None)


def _counted_by(
    key: str, requests: Mapping[str, Decimal], limits: Mapping[str, Decimal]
) -> Decimal | None:
    """The amount that one pod adds to a key of a quota; None or 0 when it adds nothing."""
    if key == "count/pods":
        return Decimal(1)
    prefix, _, name = key.partition(".")
    if name and prefix == "limits":
        return limits.get(name)
    return requests.get(name if name and prefix == "requests" else key)


def nodes(cluster: Cluster) -> list[NodeCapacity]:
    """The nodes with what is free on them.

    Needs the right to list nodes and the pods of all namespaces.
    """
    raw = Raw(cluster)
    nodes = raw.objects(NODES.path(""), NODES.plural)
    pods = raw.get(PODS.path(""), "list all pods", "list pods of all namespaces")["items"]
    used: dict[str, list[dict[str, Decimal]]] = defaultdict(list)
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            used[pod["spec"].get("nodeName", "")].append(requests(pod["spec"]))
    return [_capacity(node, _sums(used[node["metadata"]["name"]])) for node in nodes]


def _capacity(node: Mapping[str, Any], used: Mapping[str, Decimal]) -> NodeCapacity:
    allocatable = _quantities(node["status"].get("allocatable", {}))
    free = {name: amount - used.get(name, 0) for name, amount in allocatable.items()}
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node["status"].get("conditions", [])
    )
    spec = node.get("spec", {})
    return NodeCapacity(
        node["metadata"]["name"],
        free,
        node["metadata"].get("labels", {}),
        tuple(spec.get("taints", ())),
        ready and not spec.get("unschedulable", False),
        allocatable,
    )


def container_requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a container; as in Kubernetes, a limit without a request is also the request."""
    resources = container.get("resources") or {}
    return _quantities({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _admits(spec: Mapping[str, Any], node: NodeCapacity) -> bool:
    if not node.schedulable or not (spec.get("nodeSelector") or {}).items() <= node.labels.items():
        return False
    blocking = [taint for taint in node.taints if taint["effect"] in BLOCKING]
    tolerations = spec.get("tolerations") or []
    return all(any(_tolerates(each, taint) for each in tolerations) for taint in blocking)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get(
        "value", ""
    )


# Intel's GPU plugin offered shares of a GPU by these names until version 0.34 (August 2025).
REMOVED = ("gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles")


def removed(name: str, spec: Mapping[str, Any]) -> list[str]:
    """Warnings for a pod that requests resources which no device plugin offers any more.

    name: of what the pod belongs to, for the text.
    """
    requested = _sums(
        map(container_requests, [*spec.get("initContainers", []), *spec.get("containers", [])])
    )
    names = [resource for resource in REMOVED if resource in requested]
    if not names:
        return []
    return [
        f"{name} requests {', '.join(names)}, which Intel's GPU plugin no longer offers since 0.34"
        " (August 2025): share the devices (-shared-dev-num of the plugin) and request"
        " gpu.intel.com/xe or i915, or use a device class"
    ]


@dataclass(frozen=True, slots=True)
class Supply:
    """What a cluster has for pods of a namespace; None for what we have no right to read.

    quotas: ResourceQuota objects. unknown: why something is unknown.
    """

    nodes: Sequence[NodeCapacity] | None
    quotas: Sequence[Mapping[str, Any]] | None
    unknown: tuple[str, ...]

    @classmethod
    def read(cls, cluster: Cluster) -> Supply:
        """Read what we may."""
        free, quotas = None, None
        unknown = []
        if lacking := rights.missing(cluster, rights.CAPACITY):
            unknown.append(f"capacity is unknown: we may not {', '.join(map(str, lacking))}")
        else:
            free = nodes(cluster)
        if lacking := rights.missing(cluster, rights.QUOTA):
            unknown.append(f"quotas are unknown: we may not {lacking[0]}")
        else:
            quotas = Raw(cluster).objects(QUOTAS.path(cluster.namespace), QUOTAS.plural)
        return cls(free, quotas, tuple(unknown))

    def headroom(self, spec: Mapping[str, Any], have: int) -> Headroom:
        """How many pods of this spec fit, with those that are placed already."""
        on_nodes = None if self.nodes is None else have + room(spec, self.nodes)
        quota = quota_room(spec, self.quotas or ())
        doubt = ""
        if spec.get("resourceClaims"):
            doubt = (
                "whether there are enough devices is unknown: only the scheduler can count resource"
                " claims"
            )
        if quota and (on_nodes is None or have + quota[0] < on_nodes):
            return Headroom(have + quota[0], quota[1], "", doubt)
        if self.nodes is None or on_nodes is None:
            return Headroom(None, "", "", doubt)
        return Headroom(on_nodes, "the nodes", scarcest(spec, self.nodes), doubt)


@dataclass(frozen=True, slots=True)
class Headroom:
    """Room for pods.

    room: pods that fit in all, None when unknown. by: what limits it, the nodes or a quota.
    scarce: the resource that runs out first on the nodes, where they limit it. doubt: what could
    not be counted, "" for nothing.
    """

    room: int | None
    by: str
    scarce: str
    doubt: str
