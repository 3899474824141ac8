"""Pools of fake nodes: names, devices and taints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

# By kind of pool: the resource name of its devices, and the labels of its nodes.
DEVICES = {
    "nvidia": (
        "nvidia.com/gpu",
        {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
    ),
    "mig": ("nvidia.com/mig-1g.10gb", {"nvidia.com/mig.strategy": "mixed"}),
    "intel": ("gpu.intel.com/xe", {"intel.feature.node.kubernetes.io/gpu": "true"}),
    "amd": ("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}),
    "plain": ("", {}),
}


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind, as in intel=4x2: four with two devices each."""

    kind: str
    nodes: int
    devices: int

    @classmethod
    def parse(cls, text: str) -> Pool:
        """Parse NAME=NODESxDEVICES. Raises SystemExit."""
        kind, _, sizes = text.partition("=")
        nodes, _, devices = sizes.partition("x")
        if kind not in DEVICES or not nodes.isdigit() or not (devices or "0").isdigit():
            names = ", ".join(DEVICES)
            raise SystemExit(
                f"{text!r} is not a pool: give NAME=NODESxDEVICES; NAME is one of {names}"
            )
        return cls(kind, int(nodes), int(devices or 0))

    def objects(self, taints: Sequence[dict[str, str]] = ()) -> list[dict[str, Any]]:
        """Build the nodes, and a ResourceSlice for the devices of each."""
        resource, labels = DEVICES[self.kind]
        objects: list[dict[str, Any]] = []
        for index in range(self.nodes):
            name = f"{self.kind}-{index}"
            size = {"cpu": "32", "memory": "256Gi", "pods": "110"}
            if resource:
                size[resource] = str(self.devices)
            objects.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": name,
                        "annotations": {"kwok.x-k8s.io/node": "fake"},
                        "labels": {
                            "kubernetes.io/hostname": name,
                            "scaletest/pool": self.kind,
                            **labels,
                        },
                    },
                    "spec": {"taints": list(taints)},
                    "status": {"allocatable": size, "capacity": size},
                }
            )
            if resource:
                objects.append(_slice(name, resource.split("/")[0], self.devices))
        return objects


def _slice(node: str, driver: str, devices: int) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-devices"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"device-{index}"} for index in range(devices)],
        },
    }
