"""Device presets: files, resources, groups and variables of each vendor's devices. Data only.

Resource names are those of the vendors' Kubernetes device plugins. Groups own the device nodes on
common distributions; group numbers differ between hosts, so presets have only names.
"""

from dataclasses import dataclass

from scaletest.model import checks


@dataclass(frozen=True, slots=True)
class Preset:
    """How devices of one vendor are found, requested from Kubernetes, and chosen by a program."""

    name: str
    device_glob: str
    # PCI vendor id as sysfs writes it; devices of others that match the pattern are left out
    vendor: str
    resources: tuple[str, ...]  # Kubernetes resources that a pod can request, the usual one first
    groups: tuple[str, ...]  # one of them owns the device nodes
    visible: str  # the environment variable that restricts the vendor's libraries to one device
    # further variables that make those libraries number devices by PCI address, as scaletest does
    order: tuple[tuple[str, str], ...] = ()


PRESETS = {
    "intel": Preset(
        "intel",
        device_glob="/dev/dri/renderD*",
        vendor="0x8086",
        resources=("gpu.intel.com/i915", "gpu.intel.com/xe"),
        groups=("render", "video"),
        visible="ZE_AFFINITY_MASK",
        order=(("ZE_ENABLE_PCI_ID_DEVICE_ORDER", "1"),),
    ),
    "nvidia": Preset(
        "nvidia",
        device_glob="/dev/nvidia[0-9]*",
        vendor="0x10de",
        resources=("nvidia.com/gpu",),
        groups=("video",),
        visible="CUDA_VISIBLE_DEVICES",
        order=(("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),),
    ),
    "amd": Preset(
        "amd",
        device_glob="/dev/dri/renderD*",
        vendor="0x1002",
        resources=("amd.com/gpu",),
        groups=("render", "video"),
        visible="ROCR_VISIBLE_DEVICES",
    ),
}


def preset_of(name: str) -> Preset:
    """Return the preset with this name; InvalidValue lists the known names."""
    return PRESETS[checks.one_of(name, PRESETS, "preset")]
