"""The command hack/cluster."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from hack.kubernetes import ControlPlane, NotBuilt, Pool
from hack.kubernetes.node import missing_packages


def main() -> None:
    given = _arguments()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plane = ControlPlane(cache / "scaletest" / "cluster")
    if given.action == "up":
        _up(plane, given)
    elif given.action == "load":
        plane.node.load(given.image)
    elif given.action == "down":
        plane.down()
    elif given.action == "kubeconfig":
        print(plane.kubeconfig)
    elif given.action == "missing":
        print("\n".join(missing_packages()), end="")
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
    except NotBuilt as error:
        sys.exit(f"error: {error}")
    except (TimeoutError, ValueError) as error:
        sys.exit(f"error: {error}\n  logs: {plane.folder}/*.log; hack/cluster down removes what was started")
    print(f"export KUBECONFIG={plane.kubeconfig}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="A control plane and its nodes, for tests.")
    parser.add_argument("action", choices=["up", "load", "down", "status", "kubeconfig", "missing"])
    parser.add_argument("--pool", action="append", type=Pool.parse, metavar="NAME=NODESxDEVICES", default=[])
    parser.add_argument("--real", action="store_true", help="also a real node, which runs its pods; needs root")
    parser.add_argument("--image", action="append", type=Path, metavar="ARCHIVE", default=[], help="import it there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
