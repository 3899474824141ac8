"""Configuration files of the programs of a real node."""

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


def files(
    folder: Path, name: str, address: str, proxy_kubeconfig: Path, admin_kubeconfig: Path
) -> dict[str, str]:
    """Write the text of every file, by its path below `folder`."""
    return {
        "containerd.toml": _containerd(),
        "box/root/etc/cni/net.d/10-pods.conflist": json.dumps(_network(), indent=2),
        "kubelet.json": json.dumps(_kubelet(folder), indent=2),
        "proxy.json": json.dumps(_proxy(name, proxy_kubeconfig), indent=2),
        "resolv.conf": f"nameserver {DNS}\n",
        "Corefile": _names(address, admin_kubeconfig),
    }


def has_ipv6() -> bool:
    """Check whether this machine's kernel has IPv6, so that pods get such an address too."""
    return Path("/proc/net/if_inet6").exists()


def _containerd() -> str:
    # restrict_oom_score_adj: without all rights of root no process may lower its own OOM score
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
    # each pod has a link of its own: between ports of one bridge, the replies of a Service would
    # not pass the rules that translate its address
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
        "authentication": {
            "anonymous": {"enabled": False},
            "x509": {"clientCAFile": f"{folder}/front-ca.crt"},
        },
        "authorization": {"mode": "Webhook"},
        "clusterDNS": [DNS],
        "clusterDomain": DOMAIN,
        "resolvConf": f"{folder}/resolv.conf",
        "volumePluginDir": f"{folder}/plugins",
        "readOnlyPort": 0,
        # many containers have cgroups of version 1, and no systemd
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "failSwapOn": False,
        # settings that need rights over the whole machine are logged and skipped
        "featureGates": {"KubeletInUserNamespace": True},
        "makeIPTablesUtilChains": False,
        # keep images also on a full disk: the node cannot fetch them again
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {
            "memory.available": "100Mi",
            "nodefs.available": "0%",
            "imagefs.available": "0%",
        },
    }


def _proxy(name: str, kubeconfig: Path) -> dict[str, Any]:
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "hostnameOverride": name,
        "mode": "nftables",
        "clusterCIDR": PODS,
        # the size of the connection table is a setting of the whole machine, so it is left as it is
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
