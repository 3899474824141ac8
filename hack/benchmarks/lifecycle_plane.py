"""The control plane of the lifecycle's bars: simulated devices, and pods that run and end.

Stages of this folder replace kwok's stages of pods. collected: number of finished pods that the
control plane keeps before it collects the oldest.
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
    """A control plane whose pods start after about a second and run for about ten."""

    def __init__(self, folder: Path, collected: int = 12_500) -> None:
        super().__init__(folder)
        self._collected = collected

    def start(
        self,
        name: str,
        line: list[str],
        environment: dict[str, str] | None = None,
        *,
        inside: bool = True,
    ) -> None:
        """Start a program as ControlPlane does, with other stages and flags."""
        if name == "kwok":
            line = self._with_stages(line)
        if name == "kube-controller-manager":
            line = [
                *line,
                f"--terminated-pod-gc-threshold={self._collected}",
                "--concurrent-job-syncs=20",
            ]
            line += ["--kube-api-qps=500", "--kube-api-burst=1000"]
        if name == "kube-scheduler":
            line = [*line, "--kube-api-qps=500", "--kube-api-burst=1000"]
        super().start(name, line, environment, inside=inside)

    def _wait_nodes(self, count: int) -> None:
        """Wait longer than ControlPlane does, for a thousand nodes."""
        deadline = time.monotonic() + NODES_S
        while True:
            try:
                return super()._wait_nodes(count)
            except TimeoutError:
                if time.monotonic() > deadline:
                    raise

    def _with_stages(self, line: list[str]) -> list[str]:
        """Write kwok's stages with this folder's stages of pods, and return kwok's command line."""
        (index,) = [
            index for index, argument in enumerate(line) if argument.startswith("--config=")
        ]
        texts = [STAGES.read_text()]
        for stage in Path(line[index].removeprefix("--config=")).read_text().split("---\n"):
            if (
                stage.strip()
                and "name: pod-ready" not in stage
                and "name: pod-complete" not in stage
            ):
                texts.append(stage)
        own = self.folder / "stages.yaml"
        own.write_text("---\n".join(texts))
        return [*line[:index], f"--config={own}", *line[index + 1 :]]


def main() -> None:
    """Start a control plane, and run it until this process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--collected", type=int, default=12_500)
    options = parser.parse_args()
    plane = Plane(options.folder, options.collected)
    try:
        plane.up([Pool("nvidia", options.nodes, 8)])
        print(plane.kubeconfig, flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    finally:
        plane.down()


if __name__ == "__main__":
    sys.exit(main())
