"""The command hack/cluster."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from hack.kubernetes import ControlPlane, NotBuilt, Pool


def main() -> None:
    parser = argparse.ArgumentParser(prog="hack/cluster", description="A control plane with fake nodes, for tests.")
    parser.add_argument("action", choices=["up", "down", "status", "kubeconfig"])
    parser.add_argument("--pool", action="append", type=Pool.parse, metavar="NAME=NODESxDEVICES", default=[])
    parser.add_argument("--real", action="store_true", help="also a real node, which runs its pods; needs root")
    parser.add_argument("--image", action="append", type=Path, metavar="ARCHIVE", default=[], help="import it there")
    given = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    plane = ControlPlane(cache / "scaletest" / "cluster")
    if given.action == "up":
        if any(plane.running().values()):
            sys.exit("it runs already: hack/cluster down ends it")
        plane.down()
        try:
            plane.up(given.pool or ([] if given.real else [Pool("plain", 2, 0)]), real=given.real, images=given.image)
        except (NotBuilt, TimeoutError, ValueError) as error:
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
