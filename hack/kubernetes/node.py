"""A real node in a box: containerd, kubelet, kube-proxy and CoreDNS.

The programs come from Debian's packages and hack/tool.

The node is called `real`. Fake nodes beside it are tainted, so that pods come to the real one
unless they tolerate `kwok.x-k8s.io/node=fake`. Volumes are static folders below the cluster's own,
for one claim each, with the default storage class `local`. The node has no access to other
networks: names outside the cluster are unknown, and images must be imported.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from hack.kubernetes import settings
from hack.kubernetes.box import ADDRESS, Box
from hack.kubernetes.process import NotBuilt, tool

NAME = "real"
VOLUMES = 16
START_S = 120.0
# Programs that are needed, and the Debian packages that have them.
NEEDED = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    str(settings.CNI / "ptp"): "containernetworking-plugins",
    "nft": "nftables",
    "ip": "iproute2",
    "nsenter": "util-linux",
}
TAINT = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}


def missing_packages() -> list[str]:
    """List the Debian packages that this machine lacks for a real node."""
    return sorted({package for name, package in NEEDED.items() if not shutil.which(name)})


def check_machine() -> None:
    """Raise NotBuilt when this machine cannot have a real node."""
    if os.geteuid():
        raise NotBuilt("a real node needs root")
    if missing := missing_packages():
        raise NotBuilt(
            f"a real node needs more Debian packages; apt-get install {' '.join(missing)}"
        )
    for name in ("kubelet", "kube-proxy"):
        tool("kubernetes", name)
    tool("coredns", "coredns")


class RealNode:
    """The real node of a cluster's folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.box = Box(folder / "box")

    def start(self, run: Callable[[str, list[str]], None], kubeconfigs: dict[str, Path]) -> None:
        """Start the node's programs with `run`. kubeconfigs: by user. Raises TimeoutError."""
        for name, text in settings.files(
            self._folder, NAME, ADDRESS, kubeconfigs["proxy"], kubeconfigs["admin"]
        ).items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        inside, network = self.box.inside(), self.box.network()
        run("containerd", [*inside, "containerd", f"--config={self._folder}/containerd.toml"])
        _wait(lambda: not self.ctr("version").returncode, "containerd does not answer")
        kubelet = [tool("kubernetes", "kubelet"), f"--kubeconfig={kubeconfigs['kubelet']}"]
        kubelet += [
            f"--config={self._folder}/kubelet.json",
            f"--hostname-override={NAME}",
            f"--node-ip={ADDRESS}",
        ]
        kubelet += [f"--node-labels=scaletest/pool={NAME}"]
        run("kubelet", [*inside, *kubelet])
        run(
            "kube-proxy",
            [*network, tool("kubernetes", "kube-proxy"), f"--config={self._folder}/proxy.json"],
        )
        run("coredns", [*network, tool("coredns", "coredns"), f"-conf={self._folder}/Corefile"])

    def ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run containerd's own client, in the namespace of the kubelet's images."""
        line = [*self.box.inside(), "ctr", "--namespace=k8s.io", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    def load(self, archives: Iterable[Path]) -> None:
        """Import images. Raises ValueError with containerd's message."""
        for archive in archives:
            done = self.ctr("images", "import", str(archive))
            if done.returncode:
                raise ValueError(f"{archive} cannot be imported: {done.stderr.strip()}")

    def objects(self) -> list[dict[str, Any]]:
        """Build the volumes, their storage class, and the Service of the DNS."""
        (self._folder / "volumes").mkdir(exist_ok=True)
        storage = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {
                "name": "local",
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
            },
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        return [storage, *(self._volume(index) for index in range(VOLUMES)), *_names()]

    def _volume(self, index: int) -> dict[str, Any]:
        path = self._folder / "volumes" / str(index)
        path.mkdir(exist_ok=True)
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"local-{index}"},
            "spec": {
                "capacity": {"storage": "10Gi"},
                # many pods may share a folder, since all of them are on this node
                "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "local",
                "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }


def _names() -> list[dict[str, Any]]:
    """Build a Service whose endpoint is not a pod, since CoreDNS runs as a process of the node."""
    meta = {"name": "kube-dns", "namespace": "kube-system"}
    ports = [(f"dns-{kind.lower()}", kind) for kind in ("UDP", "TCP")]
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": meta,
            "spec": {
                "clusterIP": settings.DNS,
                "ports": [
                    {"name": name, "port": 53, "protocol": kind, "targetPort": settings.DNS_PORT}
                    for name, kind in ports
                ],
            },
        },
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {**meta, "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": [
                {"name": name, "port": settings.DNS_PORT, "protocol": kind} for name, kind in ports
            ],
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        },
    ]


def _wait(ready: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + START_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.2)
