"""A real control plane on this machine, from the tools that hack/tool builds: etcd, kube-apiserver with the aggregator,
controller manager, scheduler, and kwok, which plays nodes. Its folder holds its data, keys, logs and kubeconfig.

Nodes are fake: pods become Running without running anything. Every process ends with `down`, or with the guard of who
started it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
START_S = 90.0
# Resource names by which pools are told apart, and what a node of that kind is called in labels.
DEVICES = {
    "nvidia": ("nvidia.com/gpu", {"nvidia.com/gpu.present": "true", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}),
    "mig": ("nvidia.com/mig-1g.10gb", {"nvidia.com/mig.strategy": "mixed"}),
    "intel": ("gpu.intel.com/xe", {"intel.feature.node.kubernetes.io/gpu": "true"}),
    "amd": ("amd.com/gpu", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X"}),
    "plain": ("", {}),
}


class NotBuilt(Exception):
    """A tool is missing."""


class Refused(Exception):
    """kubectl failed."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Nodes of one kind, as in intel=4x2: four with two devices each."""

    kind: str
    nodes: int
    devices: int

    @classmethod
    def parse(cls, text: str) -> Pool:
        """From NAME=NODESxDEVICES."""
        kind, _, sizes = text.partition("=")
        nodes, _, devices = sizes.partition("x")
        if kind not in DEVICES or not nodes.isdigit() or not (devices or "0").isdigit():
            raise SystemExit(f"{text!r} is no pool: give NAME=NODESxDEVICES; NAME is one of {', '.join(DEVICES)}")
        return cls(kind, int(nodes), int(devices or 0))

    def objects(self) -> list[dict[str, Any]]:
        """The nodes, and a ResourceSlice for the devices of each."""
        resource, labels = DEVICES[self.kind]
        rows: list[dict[str, Any]] = []
        for index in range(self.nodes):
            name = f"{self.kind}-{index}"
            size = {"cpu": "32", "memory": "256Gi", "pods": "110"}
            if resource:
                size[resource] = str(self.devices)
            rows.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {
                        "name": name,
                        "annotations": {"kwok.x-k8s.io/node": "fake"},
                        "labels": {"kubernetes.io/hostname": name, "scaletest/pool": self.kind, **labels},
                    },
                    "status": {"allocatable": size, "capacity": size},
                }
            )
            if resource:
                rows.append(_slice(name, resource.split("/")[0], self.devices))
        return rows


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


def tool(name: str, program: str) -> str:
    """The path of a program that was built. Raises NotBuilt with what to do."""
    made = subprocess.run([ROOT / "hack" / "tool", "--path", name], capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotBuilt(made.stderr.strip().replace("\n", ";"))
    return f"{made.stdout.strip()}/{program}"


class ControlPlane:
    """In a folder of its own, on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._pids = folder / "pids.json"
        self._children: list[subprocess.Popen[bytes]] = []

    def up(self, pools: Sequence[Pool] = ()) -> None:
        """Start everything and wait until a node of every pool is ready. Raises NotBuilt, TimeoutError."""
        programs = {name: tool("kubernetes", name) for name in _PROGRAMS}
        etcd, kwok, stages = tool("etcd", "etcd"), tool("kwok", "kwok"), tool("kwok", "stages.yaml")
        self.folder.mkdir(parents=True, exist_ok=True)
        client, peer, api = _ports(3)
        self._keys()
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
        (self.folder / "port").write_text(str(api))
        at = f"http://127.0.0.1:{client}"
        self._start("etcd", [etcd, *_etcd(self.folder, at, f"http://127.0.0.1:{peer}")])
        self._start("kube-apiserver", [programs["kube-apiserver"], *_apiserver(self.folder, at, api)])
        self._wait_api(api, token)
        self._write_kubeconfig(api, token)
        config = f"--kubeconfig={self.kubeconfig}"
        controllers = ["--use-service-account-credentials", f"--service-account-private-key-file={self.folder}/sa.key"]
        controllers += [f"--root-ca-file={self.folder}/apiserver.crt", "--leader-elect=false", "--secure-port=0"]
        controllers += ["--horizontal-pod-autoscaler-sync-period=2s", "--horizontal-pod-autoscaler-tolerance=0.1"]
        self._start("kube-controller-manager", [programs["kube-controller-manager"], config, *controllers])
        self._start("kube-scheduler", [programs["kube-scheduler"], config, "--leader-elect=false", "--secure-port=0"])
        self._start("kwok", [kwok, config, "--manage-all-nodes=true", f"--config={stages}"])
        self.apply([row for pool in pools for row in pool.objects()])
        self._wait_nodes(sum(pool.nodes for pool in pools))

    def down(self) -> None:
        """End every process that `up` started."""
        pids = json.loads(self._pids.read_text()) if self._pids.exists() else {}
        # controllers first: what they would want to write has nobody to take it any more
        for name in reversed(list(pids)):
            _end(pids[name])
        for child in self._children:
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> dict[str, bool]:
        """Which of the processes live."""
        pids = json.loads(self._pids.read_text()) if self._pids.exists() else {}
        return {name: _alive(pid) for name, pid in pids.items()}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """What kubectl printed. Raises Refused with what it said."""
        line = [tool("kubernetes", "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def apply(self, rows: Sequence[dict[str, Any]]) -> None:
        """Create or update objects."""
        if rows:
            body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(rows)})
            self.kubectl("apply", "--server-side", "-f", "-", stdin=body)

    def _start(self, name: str, line: list[str]) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        self._children.append(process)
        pids = json.loads(self._pids.read_text()) if self._pids.exists() else {}
        self._pids.write_text(json.dumps({**pids, name: process.pid}))

    def _keys(self) -> None:
        """A key for service accounts, and an authority and a certificate for the aggregator."""
        run = ["openssl"]
        quiet: dict[str, Any] = {"check": True, "capture_output": True, "cwd": self.folder}
        subprocess.run([*run, "genrsa", "-out", "sa.key", "2048"], **quiet)
        subprocess.run([*run, "rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub"], **quiet)
        for name, subject, signer in (("front-ca", "/CN=front-ca", ""), ("front", "/CN=front", "front-ca")):
            line = [*run, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", subject]
            if signer:
                line += ["-CA", f"{signer}.crt", "-CAkey", f"{signer}.key", "-addext", "extendedKeyUsage=clientAuth"]
            subprocess.run([*line, "-keyout", f"{name}.key", "-out", f"{name}.crt"], **quiet)

    def _wait_api(self, port: int, token: str) -> None:
        deadline = time.monotonic() + START_S
        request = urllib.request.Request(
            f"https://127.0.0.1:{port}/readyz", headers={"Authorization": f"Bearer {token}"}
        )
        while True:
            try:
                authority = ssl.create_default_context(cafile=str(self.folder / "apiserver.crt"))
                with urllib.request.urlopen(request, context=authority, timeout=5) as answer:
                    answer.read()
                    return
            except (OSError, urllib.error.URLError) as error:
                if time.monotonic() > deadline or not all(self.running().values()):
                    end = (self.folder / "kube-apiserver.log").read_text()[-2000:]
                    raise TimeoutError(f"kube-apiserver is not ready: {error}\n{end}") from error
                time.sleep(0.3)

    def _wait_nodes(self, count: int) -> None:
        deadline = time.monotonic() + START_S
        while True:
            lines = self.kubectl("get", "nodes", "--no-headers").splitlines()
            if sum(line.split()[1] == "Ready" for line in lines) >= count:
                return
            if time.monotonic() > deadline:
                raise TimeoutError("nodes are not ready:\n" + "\n".join(lines))
            time.sleep(0.5)

    def _write_kubeconfig(self, port: int, token: str) -> None:
        cluster = {"server": f"https://127.0.0.1:{port}", "certificate-authority": str(self.folder / "apiserver.crt")}
        whole = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "scaletest",
            "clusters": [{"name": "scaletest", "cluster": cluster}],
            "users": [{"name": "admin", "user": {"token": token}}],
            "contexts": [{"name": "scaletest", "context": {"cluster": "scaletest", "user": "admin"}}],
        }
        self.kubeconfig.touch(0o600)
        self.kubeconfig.write_text(json.dumps(whole, indent=2))


_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")


def _etcd(folder: Path, client: str, peer: str) -> list[str]:
    return [
        f"--data-dir={folder}/etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # nothing of it must survive
        "--log-level=warn",
    ]


def _apiserver(folder: Path, etcd: str, port: int) -> list[str]:
    return [
        f"--etcd-servers={etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={folder}",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=10.96.0.0/16",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        f"--token-auth-file={folder}/tokens.csv",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder}/sa.pub",
        f"--service-account-signing-key-file={folder}/sa.key",
        "--enable-aggregator-routing",
        f"--requestheader-client-ca-file={folder}/front-ca.crt",
        "--requestheader-allowed-names=front",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={folder}/front.crt",
        f"--proxy-client-key-file={folder}/front.key",
    ]


def _ports(count: int) -> list[int]:
    """Free ones, as far as one can know."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def _alive(pid: int) -> bool:
    """One that ended and was not waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _end(pid: int) -> None:
    for number, patience_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        if not _alive(pid):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience_s
        while _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="A control plane with fake nodes, for tests.")
    parser.add_argument("action", choices=["up", "down", "status", "kubeconfig"])
    parser.add_argument("--pool", action="append", type=Pool.parse, metavar="NAME=NODESxDEVICES", default=[])
    given = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plane = ControlPlane(cache / "scaletest" / "cluster")
    if given.action == "up":
        if any(plane.running().values()):
            sys.exit("it runs already: hack/cluster down ends it")
        plane.down()
        try:
            plane.up(given.pool or [Pool("plain", 2, 0)])
        except NotBuilt as error:
            sys.exit(f"error: {error}")
        print(f"export KUBECONFIG={plane.kubeconfig}")
    elif given.action == "down":
        plane.down()
    elif given.action == "kubeconfig":
        print(plane.kubeconfig)
    else:
        for name, alive in plane.running().items():
            print(f"{name:24} {'runs' if alive else 'ended'}; log: {plane.folder}/{name}.log")


if __name__ == "__main__":
    main()
