"""A real control plane on this machine, from the tools that hack/tool builds.

It is etcd, kube-apiserver with the aggregator, controller manager, scheduler, and kwok, which
simulates nodes. Its folder holds its data, keys, logs and kubeconfig.

On fake nodes pods become Running without running anything. With a real node (node.py) all programs
are in the network of that node's box, and pods that do not tolerate fake nodes run there. Every
process ends with `down`, or with the guard of the process that started it.
"""

import json
import os
import secrets
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hack.kubernetes import flags, keys
from hack.kubernetes.box import ADDRESS
from hack.kubernetes.node import NAME, TAINT, RealNode, check_machine
from hack.kubernetes.pools import Pool
from hack.kubernetes.process import alive, end, free_ports, tool
from hack.kubernetes.reader import ObjectReader

START_S = 300.0
SERVICE = "10.96.0.1"
# Users of the API server, as in its token file: name, id, groups.
USERS = {
    "admin": 'admin,admin,"system:masters"',
    "kubelet": f'system:node:{NAME},kubelet,"system:nodes"',
    "proxy": "system:kube-proxy,proxy",
}
# Without leases the controller manager treats kwok's nodes as dead after a minute.
LEASE = "--node-lease-duration-seconds=40"


class CommandFailed(Exception):
    """kubectl failed."""


class ControlPlane:
    """A control plane in a folder of its own, on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kubeconfig = folder / "kubeconfig"
        self._pids = folder / "pids.json"
        self.node = RealNode(folder)
        self._tokens: dict[str, str] = {}
        self._reader: ObjectReader | None = None
        self._children: list[subprocess.Popen[bytes]] = []

    def up(
        self, pools: Sequence[Pool] = (), *, real: bool = False, images: Sequence[Path] = ()
    ) -> None:
        """Start everything and wait until all nodes are ready. Raises NotBuilt, TimeoutError.

        real: add a real node. images: archives to import there.
        """
        if real:
            check_machine()
        for name in ("kubernetes", "etcd", "kwok"):
            tool(name, "")
        self.folder.mkdir(parents=True, exist_ok=True)
        api = self._start_api(real)
        config = f"--kubeconfig={self.kubeconfig}"
        for name, options in (
            ("kube-controller-manager", flags.controllers(self.folder)),
            ("kube-scheduler", ["--leader-elect=false", "--secure-port=0"]),
        ):
            self.start(name, [tool("kubernetes", name), config, *options])
        fake = "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"
        stages = f"--config={self._stages()}"
        self.start(
            "kwok", [tool("kwok", "kwok"), config, "--manage-all-nodes=false", fake, LEASE, stages]
        )
        if real:
            self._start_node(api, images)
        taints = [TAINT] if real else []
        for pool in pools:
            self.apply(pool.objects(taints))
        self._wait_nodes(sum(pool.nodes for pool in pools) + real)

    def _stages(self) -> Path:
        """Write kwok's stages, of which one ends the pods of Jobs: those of benchmarks run on."""
        import yaml  # late: `hack/cluster missing` runs before PyYAML is installed

        stages = list(yaml.safe_load_all(Path(tool("kwok", "stages.yaml")).read_text()))
        for stage in stages:
            if stage["metadata"]["name"] == "pod-complete":
                unless = {
                    "key": '.metadata.labels["scaletest.dev/benchmark"]',
                    "operator": "DoesNotExist",
                }
                stage["spec"]["selector"]["matchExpressions"].append(unless)
        path = self.folder / "stages.yaml"
        path.write_text(yaml.safe_dump_all(stages))
        return path

    def _start_api(self, real: bool) -> int:
        """Start etcd and the API server, in the box of a real node if any; returns its port."""
        client, peer, api = free_ports(3)
        addresses = [ADDRESS, SERVICE] if real else []
        keys.make(self.folder, *addresses)
        self._tokens = {name: secrets.token_hex(16) for name in USERS}
        lines = [f"{token},{USERS[name]}" for name, token in self._tokens.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "port").write_text(str(api))
        if real:
            self.node.box.up()
            forward = [Path(__file__).with_name("forward.py"), api, self.node.box.namespace()]
            self.start("forward", [sys.executable, *map(str, forward)], inside=False)
        at = f"http://127.0.0.1:{client}"
        self.start(
            "etcd", [tool("etcd", "etcd"), *flags.etcd(self.folder, at, f"http://127.0.0.1:{peer}")]
        )
        options = flags.apiserver(self.folder, at, api, ADDRESS if real else None)
        self.start("kube-apiserver", [tool("kubernetes", "kube-apiserver"), *options])
        self._wait_api(api, self._tokens["admin"])
        keys.kubeconfig(self.kubeconfig, api, self._tokens["admin"])
        self._reader = self.reader()
        return api

    def _start_node(self, api: int, images: Sequence[Path]) -> None:
        configs = {"admin": self.kubeconfig}
        for name in ("kubelet", "proxy"):
            configs[name] = self.folder / f"{name}.kubeconfig"
            keys.kubeconfig(configs[name], api, self._tokens[name])
        self.node.start(partial(self.start, inside=False), configs)
        self.node.load(images)
        self.apply(self.node.objects())

    def down(self) -> None:
        """End every process that `up` started, and all their children. Raises TimeoutError."""
        # the node first, without a grace period: open watches would keep the API server alive
        self.node.box.down()
        pids = self._noted()
        # in reverse, so that controllers end before the API server that they write to
        for name in reversed(list(pids)):
            end(pids[name])
        for child in self._children:
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def running(self) -> dict[str, bool]:
        """Map the processes to whether they are alive."""
        return {name: alive(pid) for name, pid in self._noted().items()}

    def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        """Run kubectl and return its output. Raises CommandFailed with its error message."""
        if self._reader and stdin is None and (answer := self._reader(arguments)) is not None:
            return answer
        line = [tool("kubernetes", "kubectl"), f"--kubeconfig={self.kubeconfig}", *arguments]
        done = subprocess.run(line, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CommandFailed(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def reader(self) -> ObjectReader:
        """Build the reader that answers calls without starting kubectl.

        Only after `up`, by the same process.
        """
        port = int((self.folder / "port").read_text())
        return ObjectReader(self.folder, port, self._tokens["admin"])

    def insist(self, *arguments: str, seconds: float = START_S) -> None:
        """Repeat a kubectl call until it succeeds: calls for new kinds fail for a while.

        Raises CommandFailed.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                self.kubectl(*arguments)
                return
            except CommandFailed:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.3)

    def apply(self, objects: Sequence[dict[str, Any]]) -> None:
        """Create or update objects."""
        if objects:
            body = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
            self.kubectl("apply", "--server-side", "-f", "-", stdin=body)

    def start(
        self,
        name: str,
        line: list[str],
        environment: dict[str, str] | None = None,
        *,
        inside: bool = True,
    ) -> None:
        """Start a program that belongs to the cluster, so that `down` ends it. Its log is NAME.log.

        inside: run it in the real node's network, when there is one.
        """
        if inside and self.node.box.running():
            line = [*self.node.box.network(), *line]
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
        """End one program by its name."""
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
