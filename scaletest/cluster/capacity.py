"""How many more pods of a template the nodes can take: what is allocatable, less what pods there ask for.

An estimate from above: affinity, spread, quotas and priorities are the scheduler's, which has the last word. The part
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
    """A node's free resources, and all that pods may have, in units (cores, bytes, pods, devices)."""

    name: str
    free: Mapping[str, Decimal]
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    schedulable: bool = True
    allocatable: Mapping[str, Decimal] = field(default_factory=dict)


def quantity(text: str | int) -> Decimal:
    """A Kubernetes quantity as a number: "250m" is 0.25, "1Gi" is 1073741824. 0 for what is none."""
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
    """What a pod asks for: the sum of its containers, or its largest init container; and one pod."""
    total: Counter[str] = Counter()
    for container in spec.get("containers", []):
        for name, value in _asked(container).items():
            total[name] += value  # type: ignore[assignment]
    found = {name: Decimal(value) for name, value in total.items()}
    for container in spec.get("initContainers", []):
        for name, value in _asked(container).items():
            found[name] = max(found.get(name, Decimal(0)), value)
    return {**found, "pods": Decimal(1)}


def limits(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    """What a pod may use at most: the sum of its containers."""
    total: Counter[str] = Counter()
    for container in spec.get("containers", []):
        for name, value in ((container.get("resources") or {}).get("limits") or {}).items():
            total[name] += quantity(value)  # type: ignore[assignment]
    return {name: Decimal(value) for name, value in total.items()}


def room(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> int:
    """How many more pods of this spec fit."""
    wanted = _wanted(spec)
    fitting = 0
    for node in nodes:
        if _admits(spec, node):
            fitting += max(0, min(int(node.free.get(name, Decimal(0)) // value) for name, value in wanted.items()))
    return fitting


def scarcest(spec: Mapping[str, Any], nodes: Iterable[NodeCapacity]) -> str:
    """The resource that ends first, "" when no node admits such a pod at all."""
    admitting = [node for node in nodes if _admits(spec, node)]
    alone = {
        name: sum(max(0, int(node.free.get(name, Decimal(0)) // value)) for node in admitting)
        for name, value in _wanted(spec).items()
    }
    return min(alone, key=lambda name: alone[name]) if admitting else ""


def quota_room(spec: Mapping[str, Any], quotas: Iterable[Mapping[str, Any]]) -> tuple[int, str] | None:
    """How many more pods of this spec the quotas admit, and by which one; None when nothing of them applies.

    quotas: ResourceQuota objects. Those with scopes are left out: whether they apply is the API server's to say.
    """
    wanted, most = requests(spec), limits(spec)
    found: list[tuple[int, str]] = []
    for row in quotas:
        if row["spec"].get("scopes") or row["spec"].get("scopeSelector"):
            continue
        used = row.get("status", {}).get("used", {})
        for key, hard in row["spec"].get("hard", {}).items():
            kind, dot, name = key.partition(".")
            asked = (
                most.get(name) if dot and kind == "limits" else wanted.get(name if dot and kind == "requests" else key)
            )
            if key == "count/pods":
                asked = Decimal(1)
            if asked:
                left = max(Decimal(0), quantity(hard) - quantity(used.get(key, "0")))
                found.append((int(left // asked), f"quota {row['metadata']['name']}: {key}"))
    return min(found, default=None)


def quotas(cluster: Cluster) -> list[dict[str, Any]]:
    """The quotas of the namespace. Needs the right to list resourcequotas."""
    path = f"/api/v1/namespaces/{quote(cluster.namespace)}/resourcequotas"
    found: list[dict[str, Any]] = Raw(cluster).get(path, "list quotas", "list resourcequotas")["items"]
    return found


def nodes(cluster: Cluster) -> list[NodeCapacity]:
    """The nodes with what is free on them. Needs the right to list nodes and the pods of all namespaces."""
    raw = Raw(cluster)
    rows = raw.get("/api/v1/nodes", "list nodes", "list nodes")["items"]
    pods = raw.get("/api/v1/pods", "list all pods", "list pods of all namespaces")["items"]
    used: dict[str, Counter[str]] = {}
    for row in pods:
        if row.get("status", {}).get("phase") not in ("Succeeded", "Failed"):
            node = used.setdefault(row["spec"].get("nodeName", ""), Counter())
            for name, value in requests(row["spec"]).items():
                node[name] += value  # type: ignore[assignment]
    return [_node(row, used.get(row["metadata"]["name"], Counter())) for row in rows]


def _node(row: Mapping[str, Any], used: Mapping[str, Any]) -> NodeCapacity:
    all_of_it = {name: quantity(value) for name, value in row["status"].get("allocatable", {}).items()}
    free = {name: value - used.get(name, 0) for name, value in all_of_it.items()}
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in row["status"].get("conditions", []))
    spec = row.get("spec", {})
    return NodeCapacity(
        row["metadata"]["name"],
        free,
        row["metadata"].get("labels", {}),
        tuple(spec.get("taints", ())),
        ready and not spec.get("unschedulable", False),
        all_of_it,
    )


def _wanted(spec: Mapping[str, Any]) -> dict[str, Decimal]:
    return {name: value for name, value in requests(spec).items() if value}


def _asked(container: Mapping[str, Any]) -> dict[str, Decimal]:
    """A request that is not said is the limit."""
    resources = container.get("resources") or {}
    both = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: quantity(value) for name, value in both.items()}


def _admits(spec: Mapping[str, Any], node: NodeCapacity) -> bool:
    if not node.schedulable:
        return False
    if any(node.labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    tolerations = spec.get("tolerations") or []
    return all(
        any(_tolerates(one, taint) for one in tolerations) for taint in node.taints if taint["effect"] in BLOCKING
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, str]) -> bool:
    if toleration.get("effect") not in (None, "", taint["effect"]):
        return False
    if toleration.get("operator") == "Exists":
        return toleration.get("key") in (None, "", taint["key"])
    return toleration.get("key") == taint["key"] and toleration.get("value", "") == taint.get("value", "")
