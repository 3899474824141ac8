"""Devices of the nodes: those of device plugins, by node and product, and those of dynamic resource allocation.

The parts that read an object are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scaletest.cluster.capacity import NodeCapacity
from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw

# Labels that say what a node's devices are, put there by the vendors' feature discovery.
PRODUCTS = ("nvidia.com/gpu.product", "gpu.intel.com/product", "amd.com/gpu.product-name", "gpu.intel.com/family")
PRODUCT_ATTRIBUTES = ("productName", "model", "product", "type")
# Intel's GPU plugin offered shares of a GPU by these names until version 0.34 (August 2025).
REMOVED = ("gpu.intel.com/millicores", "gpu.intel.com/memory.max", "gpu.intel.com/tiles")


class Devices(NamedTuple):
    """Devices of one resource on one node. usable: the node takes pods."""

    node: str
    product: str
    resource: str
    allocatable: int
    free: int
    usable: bool


class Slice(NamedTuple):
    """Devices of one product in a pool of dynamic resource allocation. node: "" when they are no single node's."""

    driver: str
    pool: str
    node: str
    product: str
    devices: int


class DeviceClass(NamedTuple):
    """resource: the extended resource by which pods may ask for it too, "" when there is none."""

    name: str
    resource: str


def on_nodes(nodes: Iterable[NodeCapacity]) -> list[Devices]:
    """What device plugins offer: resources with a vendor's name before the slash."""
    found = []
    for node in nodes:
        product = next((node.labels[name] for name in PRODUCTS if name in node.labels), "")
        for name, value in sorted(node.allocatable.items()):
            vendor, slash, _ = name.partition("/")
            if slash and not vendor.endswith("kubernetes.io"):
                free = max(0, int(node.free[name]))
                found.append(Devices(node.name, product, name, int(value), free, node.schedulable))
    return found


def slices(cluster: Cluster, version: str) -> list[Slice]:
    """Needs the right to list resource slices."""
    path = f"/apis/resource.k8s.io/{version}/resourceslices"
    return of_slices(Raw(cluster).get(path, "list resource slices", "list resourceslices")["items"])


def of_slices(rows: Iterable[Mapping[str, Any]]) -> list[Slice]:
    """From the objects. Those of an older generation of their pool no longer hold."""
    rows = list(rows)
    newest: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["spec"]["driver"], row["spec"]["pool"]["name"])
        newest[key] = max(newest.get(key, 0), row["spec"]["pool"].get("generation", 0))
    counts: dict[tuple[str, str, str, str], int] = {}
    for row in rows:
        spec = row["spec"]
        key = (spec["driver"], spec["pool"]["name"])
        if spec["pool"].get("generation", 0) == newest[key]:
            for device in spec.get("devices") or ():
                place = (*key, spec.get("nodeName", ""), _product(device))
                counts[place] = counts.get(place, 0) + 1
    return [Slice(*place, count) for place, count in sorted(counts.items())]


def classes(cluster: Cluster, version: str) -> list[DeviceClass]:
    """Needs the right to list device classes."""
    path = f"/apis/resource.k8s.io/{version}/deviceclasses"
    rows = Raw(cluster).get(path, "list device classes", "list deviceclasses")["items"]
    return [DeviceClass(row["metadata"]["name"], row["spec"].get("extendedResourceName", "")) for row in rows]


def removed(name: str, spec: Mapping[str, Any]) -> list[str]:
    """Warnings for a pod that asks for what no device plugin offers any more. name: who asks."""
    asked: set[str] = set()
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        resources = container.get("resources") or {}
        asked |= {*(resources.get("limits") or {}), *(resources.get("requests") or {})}
    names = [one for one in REMOVED if one in asked]
    if not names:
        return []
    return [
        f"{name} asks for {', '.join(names)}, which Intel's GPU plugin offers no more since 0.34 (August 2025): share "
        "the devices (the plugin's -shared-dev-num) and ask for gpu.intel.com/xe or i915, or use a device class"
    ]


def _product(device: Mapping[str, Any]) -> str:
    attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
    short = {name.rpartition("/")[2]: value for name, value in attributes.items()}
    return next((str(short[name].get("string", "")) for name in PRODUCT_ATTRIBUTES if name in short), "")
