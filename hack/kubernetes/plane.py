"""A real control plane on this machine, from the tools that hack/tool builds: etcd, kube-apiserver with the aggregator,
controller manager, scheduler, and kwok, which plays nodes. Its folder holds its data, keys, logs and kubeconfig.

Nodes are fake: pods become Running without running anything. Every process ends with `down`, or with the guard of who
started it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hack.kubernetes import flags, keys
from hack.kubernetes.pools import Pool
from hack.kubernetes.process import alive, end, free_ports, tool

START_S = 90.0
# Without leases the controller manager takes kwok's nodes for dead after a minute.
LEASE = "--node-lease-duration-seconds=40"


class Refused(Exception):
    """kubectl failed."""


class ControlPlane:
    """In a folder of its own, on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._pids = folder / "pids.json"
        self._children: list[subprocess.Popen[bytes]] = []

    def up(self, pools: Sequence[Pool] = ()) -> None:
        """Start everything and wait until a node of every pool is ready. Raises NotBuilt, TimeoutError."""
        programs = {name: tool("kubernetes", name) for name in flags.PROGRAMS}
        etcd, kwok, stages = tool("etcd", "etcd"), tool("kwok", "kwok"), tool("kwok", "stages.yaml")
        self.folder.mkdir(parents=True, exist_ok=True)
        client, peer, api = free_ports(3)
        keys.make(self.folder)
        token = secrets.token_hex(16)
        (self.folder / "tokens.csv").write_text(f'{token},admin,admin,"system:masters"\n')
        (self.folder / "port").write_text(str(api))
        at = f"http://127.0.0.1:{client}"
        self.start("etcd", [etcd, *flags.etcd(self.folder, at, f"http://127.0.0.1:{peer}")])
        self.start("kube-apiserver", [programs["kube-apiserver"], *flags.apiserver(self.folder, at, api)])
        self._wait_api(api, token)
        self._write_kubeconfig(api, token)
        config = f"--kubeconfig={self.kubeconfig}"
        self.start(
            "kube-controller-manager", [programs["kube-controller-manager"], config, *flags.controllers(self.folder)]
        )
        self.start("kube-scheduler", [programs["kube-scheduler"], config, "--leader-elect=false", "--secure-port=0"])
        self.start("kwok", [kwok, config, "--manage-all-nodes=true", LEASE, f"--config={stages}"])
        self.apply([row for pool in pools for row in pool.objects()])
        self._wait_nodes(sum(pool.nodes for pool in pools))

    def down(self) -> None:
        """End every process that `up` started."""
        pids = self._noted()
        # controllers first: what they would want to write has nobody to take it any more
        for name in reversed(list(pids)):
            end(pids[name])
        for child in self._children:
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> dict[str, bool]:
        """Which of the processes live."""
        return {name: alive(pid) for name, pid in self._noted().items()}

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

    def start(self, name: str, line: list[str], environment: dict[str, str] | None = None) -> None:
        """Start a program that belongs to the cluster: `down` ends it. Its log is NAME.log."""
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                line,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,
            )
        self._children.append(process)
        self._note({**self._noted(), name: process.pid})

    def stop(self, name: str) -> None:
        """End one of them."""
        pids = self._noted()
        if name in pids:
            end(pids.pop(name))
            self._note(pids)

    def _noted(self) -> dict[str, int]:
        return json.loads(self._pids.read_text()) if self._pids.exists() else {}

    def _note(self, pids: dict[str, int]) -> None:
        self._pids.write_text(json.dumps(pids))

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


flags.PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
