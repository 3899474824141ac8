"""The command hack/cluster."""

import argparse
import contextlib
import os
import signal
import sys
from pathlib import Path

from hack.kubernetes import CommandFailed, ControlPlane, NotBuilt, Pool
from hack.kubernetes.adapter import Adapter
from hack.kubernetes.keda import Keda
from hack.kubernetes.names import Names
from hack.kubernetes.node import missing_packages
from hack.kubernetes.pods import Pods
from hack.kubernetes.policies import Policies


def main() -> None:
    options = _arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plane = ControlPlane(cache / "scaletest" / "cluster")
    if options.action == "up":
        _up(plane, options)
    elif options.action == "pods":
        _pods(plane, options.namespace)
    elif options.action == "load":
        plane.node.load(options.image)
    elif options.action == "down":
        plane.down()
    elif options.action == "kubeconfig":
        print(plane.kubeconfig)
    elif options.action == "missing":
        for package in missing_packages():
            print(package)
    else:
        for name, alive in plane.running().items():
            print(f"{name:24} {'runs' if alive else 'ended'}; log: {plane.folder}/{name}.log")


def _up(plane: ControlPlane, options: argparse.Namespace) -> None:
    if any(plane.running().values()):
        sys.exit("error: the cluster runs already; end it by hack/cluster down")
    plane.down()  # removes what a killed one left behind
    pools = options.pool or ([] if options.real else [Pool("plain", 2, 0)])
    try:
        plane.up(pools, real=options.real, images=options.image)
        if options.keda:
            Keda(plane, Names(plane.folder)).up()
        if options.adapter:
            Adapter(plane, Names(plane.folder)).up()
        if options.policies:
            Policies(plane).up()
    except NotBuilt as error:
        sys.exit(f"error: {error}")
    except (TimeoutError, ValueError, CommandFailed) as error:
        sys.exit(
            f"error: {error}\n  logs: {plane.folder}/*.log; hack/cluster down removes what was"
            " started"
        )
    print(f"export KUBECONFIG={plane.kubeconfig}")


def _pods(plane: ControlPlane, namespace: str) -> None:
    names = Names(plane.folder)
    adapter = Adapter(plane, names)
    for number in (signal.SIGTERM, signal.SIGHUP):  # end as by Ctrl-C: with the pods' processes
        signal.signal(number, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt), Pods(plane, names, namespace) as pods:
        for service in pods.get("services")["items"]:
            name = service["metadata"]["name"]
            print(f"{name:32} {names.address(namespace, name)}", flush=True)
            if name.endswith("-exporter") and plane.running().get("prometheus"):
                adapter.scrape(namespace, name)
        signal.pause()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="hack/cluster", description="A control plane and its nodes, for tests."
    )
    parser.add_argument(
        "action", choices=["up", "pods", "load", "down", "status", "kubeconfig", "missing"]
    )
    parser.add_argument(
        "namespace", nargs="?", default="default", help="for the action pods: whose pods to run"
    )
    parser.add_argument(
        "--pool", action="append", type=Pool.parse, metavar="NAME=NODESxDEVICES", default=[]
    )
    parser.add_argument(
        "--real", action="store_true", help="add a real node, which runs its pods; needs root"
    )
    parser.add_argument(
        "--image",
        action="append",
        type=Path,
        metavar="ARCHIVE",
        default=[],
        help="import an image into the real node",
    )
    # only one of them can answer for external.metrics.k8s.io
    scalers = parser.add_mutually_exclusive_group()
    scalers.add_argument("--keda", action="store_true", help="start KEDA")
    scalers.add_argument(
        "--adapter", action="store_true", help="start prometheus-adapter and Debian's Prometheus"
    )
    parser.add_argument(
        "--policies", action="store_true", help="enforce NetworkPolicies on the real node"
    )
    options = parser.parse_args()
    if options.policies and not options.real:
        parser.error("--policies needs --real: pods on fake nodes have no network")
    return options


if __name__ == "__main__":
    main()
