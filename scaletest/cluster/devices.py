"""Devices of the nodes: of device plugins, by node and product, and of dynamic resource allocation.

Functions that read objects are pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from scaletest.cluster.capacity import NodeCapacity
from scaletest.cluster.connection import Cluster
from scaletest.cluster.raw import Raw

# Labels with the product name of a node's devices, set by the vendors' feature discovery.
PRODUCTS = (
    "nvidia.com/gpu.product",
    "gpu.intel.com/product",
    "amd.com/gpu.product-name",
    "gpu.intel.com/family",
)
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
    """Devices of one product in a pool of dynamic resource allocation.

    node: "" when they do not belong to a single node.
    """

    driver: str
    pool: str
    node: str
    product: str
    devices: int


class DeviceClass(NamedTuple):
    """A device class. resource: the extended resource that requests it too, "" without one."""

    name: str
    resource: str


def on_nodes(nodes: Iterable[NodeCapacity]) -> list[Devices]:
    """Devices of device plugins: resources with a vendor's name before the slash."""
    devices = []
    for node in nodes:
        product = next((node.labels[name] for name in PRODUCTS if name in node.labels), "")
        for name, count in sorted(node.allocatable.items()):
            vendor, slash, _ = name.partition("/")
            if slash and not vendor.endswith("kubernetes.io"):
                free = max(0, int(node.free[name]))
                devices.append(
                    Devices(node.name, product, name, int(count), free, node.schedulable)
                )
    return devices


def slices(cluster: Cluster, version: str) -> list[Slice]:
    """Device counts of all resource slices. Needs the right to list resourceslices."""
    path = f"/apis/resource.k8s.io/{version}/resourceslices"
    return of_slices(Raw(cluster).get(path, "list resource slices", "list resourceslices")["items"])


def of_slices(objects: Iterable[Mapping[str, Any]]) -> list[Slice]:
    """Device counts of ResourceSlice objects.

    An older generation of a pool is obsolete, so it does not count.
    """
    specs = [slice_object["spec"] for slice_object in objects]
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = (spec["driver"], spec["pool"]["name"])
        newest[key] = max(newest.get(key, 0), spec["pool"].get("generation", 0))
    counts: dict[tuple[str, str, str, str], int] = {}
    for spec in specs:
        key = (spec["driver"], spec["pool"]["name"])
        if spec["pool"].get("generation", 0) == newest[key]:
            for device in spec.get("devices") or ():
                place = (*key, spec.get("nodeName", ""), _product(device))
                counts[place] = counts.get(place, 0) + 1
    return [Slice(*place, count) for place, count in sorted(counts.items())]


def classes(cluster: Cluster, version: str) -> list[DeviceClass]:
    """All device classes. Needs the right to list deviceclasses."""
    path = f"/apis/resource.k8s.io/{version}/deviceclasses"
    objects = Raw(cluster).get(path, "list device classes", "list deviceclasses")["items"]
    return [
        DeviceClass(
            device_class["metadata"]["name"], device_class["spec"].get("extendedResourceName", "")
        )
        for device_class in objects
    ]


def removed(name: str, spec: Mapping[str, Any]) -> list[str]:
    """Warnings for a pod that requests resources which no device plugin offers any more.

    name: of what the pod belongs to, for the text.
    """
    requested: set[str] = set()
    for container in [*spec.get("initContainers", []), *spec.get("containers", [])]:
        resources = container.get("resources") or {}
        requested |= {*(resources.get("limits") or {}), *(resources.get("requests") or {})}
    names = [resource for resource in REMOVED if resource in requested]
    if not names:
        return []
    return [
        f"{name} requests {', '.join(names)}, which Intel's GPU plugin no longer offers since 0.34"
        " (August 2025): share the devices (-shared-dev-num of the plugin) and request"
        " gpu.intel.com/xe or i915, or use a device class"
    ]


def _product(device: Mapping[str, Any]) -> str:
    attributes = device.get("attributes") or (device.get("basic") or {}).get("attributes") or {}
    short = {name.rpartition("/")[2]: attribute for name, attribute in attributes.items()}
    return next(
        (str(short[name].get("string", "")) for name in PRODUCT_ATTRIBUTES if name in short), ""
    )
