"""Presets: what belongs to one kind of device, so that nobody has to look it up. Data only; rooms read what they need.

Resource names are those of the vendors' Kubernetes device plugins. Groups are those that own the device nodes on common
distributions; group numbers differ between hosts, so only names are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.model.errors import InvalidValue

# Which device a worker gets a slot of: the first with a free one, the least used, the most used.
POLICIES = ("first", "balanced", "packed")


@dataclass(frozen=True, slots=True)
class Preset:
    """One kind of device.

    vendor: PCI vendor id as sysfs writes it; devices of other vendors that match the pattern are left out.
    resources: what a pod asks for, the usual one first. groups: one of them owns the device nodes.
    visible: the environment variable by which a vendor's libraries are restricted to one device.
    order: further variables that make those libraries count devices as we do, by PCI address.
    """

    name: str
    device_glob: str
    vendor: str
    resources: tuple[str, ...]
    groups: tuple[str, ...]
    visible: str
    order: tuple[tuple[str, str], ...] = ()


PRESETS = {
    "intel": Preset(
        "intel",
        "/dev/dri/renderD*",
        "0x8086",
        ("gpu.intel.com/i915", "gpu.intel.com/xe"),
        ("render", "video"),
        "ZE_AFFINITY_MASK",
        (("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1"),),
    ),
    "nvidia": Preset(
        "nvidia",
        "/dev/nvidia[0-9]*",
        "0x10de",
        ("nvidia.com/gpu",),
        ("video",),
        "CUDA_VISIBLE_DEVICES",
        (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),),
    ),
    "amd": Preset(
        "amd",
        "/dev/dri/renderD*",
        "0x1002",
        ("amd.com/gpu",),
        ("render", "video"),
        "ROCR_VISIBLE_DEVICES",
    ),
}


def preset(name: str) -> Preset:
    """The preset of this name; InvalidValue lists the known ones."""
    if name not in PRESETS:
        raise InvalidValue(f"unknown preset {name!r}", hint=f"use one of: {', '.join(PRESETS)}")
    return PRESETS[name]
