"""Settings of what runs on a real node, each as its program reads it. The reasons are beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PODS = "10.244.0.0/24"
PODS6 = "2001:2:0:1::/64"
DNS = "10.96.0.10"
DOMAIN = "cluster.local"
PAUSE = "localhost/pause:3.10"
CNI = Path("/usr/lib/cni")
DNS_PORT = 5353


def files(folder: Path, name: str, address: str, proxy_kubeconfig: Path, admin_kubeconfig: Path) -> dict[str, str]:
    """Every file below `folder`, by its name there."""
    return {
        "containerd.toml": _containerd(),
        "box/root/etc/cni/net.d/10-pods.conflist": json.dumps(_network(), indent=2),
        "kubelet.json": json.dumps(_kubelet(folder), indent=2),
        "proxy.json": json.dumps(_proxy(name, proxy_kubeconfig), indent=2),
        "resolv.conf": f"nameserver {DNS}\n",
        "Corefile": _names(address, admin_kubeconfig),
    }


def has_ipv6() -> bool:
    """Whether pods get an address of that family too: this machine's kernel has it."""
    return Path("/proc/net/if_inet6").exists()


def _containerd() -> str:
    # a process that has not every right may not make itself less likely to be killed: restrict_oom_score_adj
    return f"""version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  sandbox_image = "{PAUSE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "runc"
"""


def _network() -> dict[str, Any]:
    # a link of its own for each pod: between ports of one bridge, replies of a Service would pass the rules by
    subnets = {PODS: "0.0.0.0/0", **({PODS6: "::/0"} if has_ipv6() else {})}
    addresses = {
        "type": "host-local",
        "ranges": [[{"subnet": subnet}] for subnet in subnets],
        "routes": [{"dst": everywhere} for everywhere in subnets.values()],
    }
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}]}


def _kubelet(folder: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{folder}/front-ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [DNS],
        "clusterDomain": DOMAIN,
        "resolvConf": f"{folder}/resolv.conf",
        "volumePluginDir": f"{folder}/plugins",
        "readOnlyPort": 0,
        # containers of many machines have cgroups of version 1, and no systemd
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        # what is refused to it for lack of rights over the whole machine is logged and goes on
        "featureGates": {"KubeletInUserNamespace": True},
        "makeIPTablesUtilChains": False,
        # a full disk of a developer is no reason to throw away images that cannot be fetched again
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi", "nodefs.available": "0%", "imagefs.available": "0%"},
    }


def _proxy(name: str, kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": name,
        "mode": "nftables",
        "clusterCIDR": PODS,
        # the table's size belongs to the whole machine
        "conntrack": {"maxPerCore": 0},
    }


def _names(address: str, kubeconfig: Path) -> str:
    return f"""{DOMAIN}:{DNS_PORT} in-addr.arpa:{DNS_PORT} {{
  bind {address}
  errors
  kubernetes {DOMAIN} in-addr.arpa {{
    kubeconfig {kubeconfig}
  }}
}}
.:{DNS_PORT} {{
  bind {address}
  template ANY ANY {{
    rcode NXDOMAIN
  }}
}}
"""
