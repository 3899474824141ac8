"""The control plane of the lifecycle's bars: thousands of simulated devices, pods that take a while and end.

kwok's stages for pods are replaced by those beside this file; `collected`: so many finished pods may stay before the
control plane collects them.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from pathlib import Path

from hack.kubernetes import ControlPlane, Pool

STAGES = Path(__file__).with_name("lifecycle_stages.yaml")
NODES_S = 600.0


class Plane(ControlPlane):
    """Pods start after about a second and run for about ten."""

    def __init__(self, folder: Path, collected: int = 12_500) -> None:
        super().__init__(folder)
        self._collected = collected

    def start(
        self, name: str, line: list[str], environment: dict[str, str] | None = None, *, inside: bool = True
    ) -> None:
        """As the plane's own, with other stages and flags."""
        if name == "kwok":
            given = next(part for part in line if part.startswith("--config="))
            stages = Path(given.removeprefix("--config=")).read_text()
            replaced = ("name: pod-ready", "name: pod-complete")
            kept = [part for part in stages.split("---\n") if not any(name in part for name in replaced)]
            own = self.folder / "stages.yaml"
            own.write_text(STAGES.read_text() + "---\n" + "---\n".join(part for part in kept if part.strip()))
            line = [f"--config={own}" if part is given else part for part in line]
        if name == "kube-controller-manager":
            line = [*line, f"--terminated-pod-gc-threshold={self._collected}", "--concurrent-job-syncs=20"]
            line += ["--kube-api-qps=500", "--kube-api-burst=1000"]
        if name == "kube-scheduler":
            line = [*line, "--kube-api-qps=500", "--kube-api-burst=1000"]
        super().start(name, line, environment, inside=inside)

    def _wait_nodes(self, count: int) -> None:
        """A thousand nodes take longer than the few of a test."""
        deadline = time.monotonic() + NODES_S
        while True:
            try:
                return super()._wait_nodes(count)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise


def main() -> None:
    """Start one, and keep it until this process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--collected", type=int, default=12_500)
    given = parser.parse_args()
    plane = Plane(given.folder, given.collected)
    try:
        plane.up([Pool("nvidia", given.nodes, 8)])
        print(plane.kubeconfig, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        plane.down()


if __name__ == "__main__":
    sys.exit(main())
