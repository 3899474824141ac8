"""One real node in a box: containerd, kubelet, kube-proxy and CoreDNS, from Debian's packages and hack/tool.

The node is called `real`. Fake nodes beside it are tainted, so that pods come here unless they tolerate
`kwok.x-k8s.io/node=fake`. Volumes are folders below the cluster's own, behind the default storage class `local`: static
ones, for one claim each. There is no way out of the node: names outside the cluster are unknown, images are imported.
"""

from __future__ import annotations

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
START_S = 30.0
# What is called, and the Debian package that has it.
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
    """What Debian has and this machine has not."""
    return sorted({package for name, package in NEEDED.items() if not shutil.which(name)})


def check() -> None:
    """Raises NotBuilt when this machine cannot have a real node."""
    if os.geteuid():
        raise NotBuilt("a real node needs root")
    if missing := missing_packages():
        raise NotBuilt(f"a real node needs Debian's packages; apt-get install {' '.join(missing)}")
    for name in ("kubelet", "kube-proxy"):
        tool("kubernetes", name)
    tool("coredns", "coredns")


class RealNode:
    """In a box of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.box = Box(folder / "box")

    def start(self, run: Callable[[str, list[str]], None], kubeconfigs: dict[str, Path]) -> None:
        """Start everything with `run`, given who is who. Raises TimeoutError."""
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
        kubelet += [f"--config={self._folder}/kubelet.json", f"--hostname-override={NAME}", f"--node-ip={ADDRESS}"]
        kubelet += [f"--node-labels=scaletest/pool={NAME}"]
        run("kubelet", [*inside, *kubelet])
        run("kube-proxy", [*network, tool("kubernetes", "kube-proxy"), f"--config={self._folder}/proxy.json"])
        run("coredns", [*network, tool("coredns", "coredns"), f"-conf={self._folder}/Corefile"])

    def ctr(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """containerd's own client, in the kubelet's namespace of images."""
        line = [*self.box.inside(), "ctr", "--namespace=k8s.io", *arguments]
        return subprocess.run(line, capture_output=True, text=True, check=False)

    def load(self, archives: Iterable[Path]) -> None:
        """Import images. Raises ValueError with what containerd said."""
        for archive in archives:
            done = self.ctr("images", "import", str(archive))
            if done.returncode:
                raise ValueError(f"{archive} cannot be imported: {done.stderr.strip()}")

    def objects(self) -> list[dict[str, Any]]:
        """Volumes and their class, and a Service for names."""
        (self._folder / "volumes").mkdir(exist_ok=True)
        storage = {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
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
                # all of a folder's users are on this one node
                "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "local",
                "local": {"path": str(path)},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
            },
        }


def _names() -> list[dict[str, Any]]:
    """A Service whose end is no pod: CoreDNS runs as a process of the node."""
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
            "ports": [{"name": name, "port": settings.DNS_PORT, "protocol": kind} for name, kind in ports],
            "endpoints": [{"addresses": [ADDRESS], "conditions": {"ready": True}}],
        },
    ]


def _wait(ready: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + START_S
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(otherwise)
        time.sleep(0.2)
