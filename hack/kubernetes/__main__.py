"""The command hack/cluster."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path

from hack.kubernetes import ControlPlane, NotBuilt, Pool, Refused
from hack.kubernetes.adapter import Adapter
from hack.kubernetes.controllers import JobSets, PyTorchJobs
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.node import missing_packages
from hack.kubernetes.pods import Pods
from hack.kubernetes.policies import Policies


def main() -> None:
    given = _arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plane = ControlPlane(cache / "scaletest" / "cluster")
    if given.action == "up":
        _up(plane, given)
    elif given.action == "pods":
        _pods(plane, given.namespace)
    elif given.action == "load":
        plane.node.load(given.image)
    elif given.action == "down":
        plane.down()
    elif given.action == "kubeconfig":
        print(plane.kubeconfig)
    elif given.action == "missing":
        for package in missing_packages():
            print(package)
    else:
        for name, alive in plane.running().items():
            print(f"{name:24} {'runs' if alive else 'ended'}; log: {plane.folder}/{name}.log")


def _up(plane: ControlPlane, given: argparse.Namespace) -> None:
    if any(plane.running().values()):
        sys.exit("it runs already: hack/cluster down ends it")
    plane.down()  # what a killed one left
    pools = given.pool or ([] if given.real else [Pool("plain", 2, 0)])
    try:
        plane.up(pools, real=given.real, images=given.image)
        if given.keda:
            Keda(plane, Names(plane.folder)).up()
        if given.adapter:
            Adapter(plane, Names(plane.folder)).up()
        for kind in (JobSets, PyTorchJobs) if given.controllers else ():
            kind(plane).up()
        if given.policies:
            Policies(plane).up()
    except NotBuilt as error:
        sys.exit(f"error: {error}")
    except (TimeoutError, ValueError, Refused) as error:
        sys.exit(f"error: {error}\n  logs: {plane.folder}/*.log; hack/cluster down removes what was started")
    print(f"export KUBECONFIG={plane.kubeconfig}")


def _pods(plane: ControlPlane, namespace: str) -> None:
    names = Names(plane.folder)
    adapter = Adapter(plane, names)
    with Pods(plane, names, namespace) as pods:
        for service in pods.get("services")["items"]:
            name = service["metadata"]["name"]
            print(f"{name:32} {names.address(namespace, name)}", flush=True)
            if name.endswith("-exporter") and plane.running().get("prometheus"):
                adapter.scrape(namespace, name)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="A control plane and its nodes, for tests.")
    parser.add_argument("action", choices=["up", "pods", "load", "down", "status", "kubeconfig", "missing"])
    parser.add_argument("namespace", nargs="?", default="default", help="of pods")
    parser.add_argument("--pool", action="append", type=Pool.parse, metavar="NAME=NODESxDEVICES", default=[])
    parser.add_argument("--real", action="store_true", help="also a real node, which runs its pods; needs root")
    parser.add_argument("--image", action="append", type=Path, metavar="ARCHIVE", default=[], help="import it there")
    # only one can answer for external.metrics.k8s.io
    scalers = parser.add_mutually_exclusive_group()
    scalers.add_argument("--keda", action="store_true", help="KEDA beside it")
    scalers.add_argument("--adapter", action="store_true", help="prometheus-adapter over Debian's Prometheus beside it")
    parser.add_argument("--controllers", action="store_true", help="JobSet's and PyTorchJob's beside it")
    parser.add_argument("--policies", action="store_true", help="enforce NetworkPolicies on the real node")
    given = parser.parse_args()
    if given.real and given.controllers:
        parser.error("--controllers answer on this machine's loopback, which a real node's API server does not see")
    if given.policies and not given.real:
        parser.error("--policies needs --real: pods on fake nodes have no network")
    return given


if __name__ == "__main__":
    main()
