"""The modules below hack/tools, and what hack/tool leaves out of the programs that it builds of
them.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
TOOLS = ROOT / "hack/tools"
# Go compiles a package once for all of these, as long as they agree on its version and on those of
# what it imports.
ALIKE = ("coredns", "etcd", "helm4", "keda", "kubeconform", "kubernetes", "kwok")
# etcd's server needs its own release of these; Kubernetes uses a newer client.
ETCD = "go.etcd.io/etcd/"


def versions(tool: str) -> dict[str, str]:
    """The version of each module that a tool's go.mod names, after its replacements."""
    text = (TOOLS / tool / "go.mod").read_text()
    required = re.findall(r"^(?:require )?\t?(\S+) (v\S+)(?: // indirect)?$", text, re.MULTILINE)
    replaced = re.findall(r"^\t(\S+) => \S+ (v\S+)$", text, re.MULTILINE)
    assert required
    return {
        **dict(required),
        **{name: version for name, version in replaced if name in dict(required)},
    }


def test_tools_of_the_cluster_tier_agree_on_the_versions_of_what_they_share() -> None:
    chosen: dict[str, dict[str, list[str]]] = {}
    for tool in ALIKE:
        for module, version in versions(tool).items():
            if not (tool == "etcd" and module.startswith(ETCD)):
                chosen.setdefault(module, {}).setdefault(version, []).append(tool)
    (users,) = chosen["google.golang.org/grpc"].values()
    assert {"etcd", "keda", "kubernetes"} <= set(users)
    assert {module: tools for module, tools in chosen.items() if len(tools) > 1} == {}
