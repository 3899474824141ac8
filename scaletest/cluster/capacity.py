"""Room on the nodes for more pods of a template: allocatable less requested resources.

It is an upper bound: the scheduler also applies affinity, spread, quotas and priorities. The part
that computes is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any
from urllib.parse import quote

from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw

SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
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
    text = str(text)
    try:
        for suffix, power in BINARY.items():
            if text.endswith(suffix):
                return Decimal(text[:-2]) * Decimal(1024**power)
        if text[-1:].isalpha() and text[-1] in SUFFIXES:
            return Decimal(text[:-1]).scaleb(SUFFIXES[text[-1]])
        return Decimal(text)
    except InvalidOperation:
        return Decimal(0)


def requests(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a pod: the sum of its containers, or its largest init container; and one pod."""
    total: Counter[str] = Counter()
    for container in spec.get("containers", []):
        for name, amount in _container_requests(container).items():
            total[name] += amount  # type: ignore[assignment]
    largest = {name: Decimal(amount) for name, amount in total.items()}
    for container in spec.get("initContainers", []):
        for name, amount in _container_requests(container).items():
            largest[name] = max(largest.get(name, Decimal(0)), amount)
    return {**largest, "pods": Decimal(1)}


def limits(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """Limits of a pod: the sum of its containers."""
    total: Counter[str] = Counter()
    for container in spec.get("containers", []):
        for name, amount in ((container.get("resources") or {}).get("limits") or {}).items():
            total[name] += quantity(amount)  # type: ignore[assignment]
    return {name: Decimal(amount) for name, amount in total.items()}


def room(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> int:
    """Number of further pods of this spec that fit on the nodes."""
    wanted = _wanted(spec)
    fitting = 0
    for node in nodes:
        if _admits(spec, node):
            counts = [
                int(node.free.get(name, Decimal(0)) // amount) for name, amount in wanted.items()
            ]
            fitting += max(0, min(counts))
    return fitting


def scarcest(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> str:
    """The resource that runs out first, "" when no node admits such a pod at all."""
    admitting = [node for node in nodes if _admits(spec, node)]
    if not admitting:
        return ""
    fitting: Counter[str] = Counter()
    for name, amount in _wanted(spec).items():
        for node in admitting:
            fitting[name] += max(0, int(node.free.get(name, Decimal(0)) // amount))
    return min(fitting, key=lambda name: fitting[name])


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


def quotas(cluster: Cluster) -> list[dict[str, Any]]:
    """The quotas of the namespace. Needs the right to list resourcequotas."""
    path = f"/api/v1/namespaces/{quote(cluster.namespace)}/resourcequotas"
    objects: list[dict[str, Any]] = Raw(cluster).get(path, "list quotas", "list resourcequotas")[
        "items"
    ]
    return objects


def nodes(cluster: Cluster) -> list[NodeCapacity]:
    """The nodes with what is free on them.

    Needs the right to list nodes and the pods of all namespaces.
    """
    raw = Raw(cluster)
    nodes = raw.get("/api/v1/nodes", "list nodes", "list nodes")["items"]
    pods = raw.get("/api/v1/pods", "list all pods", "list pods of all namespaces")["items"]
    used: dict[str, Counter[str]] = {}
    for pod in pods:
        if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            total = used.setdefault(pod["spec"].get("nodeName", ""), Counter())
            for name, amount in requests(pod["spec"]).items():
                total[name] += amount  # type: ignore[assignment]
    return [_capacity(node, used.get(node["metadata"]["name"], Counter())) for node in nodes]


def _capacity(node: Mapping[str, Any], used: Mapping[str, Any]) -> NodeCapacity:
    allocatable = {
        name: quantity(text) for name, text in node["status"].get("allocatable", {}).items()
    }
    free = {name: amount - used.get(name, 0) for name, amount in allocatable.items()}
    conditions = node["status"].get("conditions", [])
    ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions
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


def _wanted(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    return {name: amount for name, amount in requests(spec).items() if amount}


def _container_requests(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """Requests of a container; as in Kubernetes, a limit without a request is also the request."""
    resources = container.get("resources") or {}
    both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(text) for name, text in both.items()}


def _admits(spec: Mapping[str, Any], node: NodeCapacity) -> bool:
    if not node.schedulable:
        return False
    selector = spec.get("nodeSelector") or {}
    if any(node.labels.get(key) != label for key, label in selector.items()):
        return False
    tolerations = spec.get("tolerations") or []
    blocking = [taint for taint in node.taints if taint["effect"] in BLOCKING]
    return all(_tolerated(taint, tolerations) for taint in blocking)


def _tolerated(taint: Mapping[str, str], tolerations: Iterable[Mapping[str, Any]]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get(
        "value", ""
    )
