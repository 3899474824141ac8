"""Functions for the bars of the lifecycle: a control plane, a run, one JSON line a bar."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hack.benchmarks.lifecycle_plane import Plane
from hack.kubernetes import Pool


def arguments(description: str | None, **numbers: int) -> argparse.Namespace:
    """Parse the bar's numbers, and the folder for its files."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="Keep the runs' folders here.")
    for name, default in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    options = parser.parse_args()
    options.out = options.out or Path(tempfile.mkdtemp(prefix="scaletest-lifecycle-"))
    return options


@contextmanager
def plane(nodes: int, collected: int = 12_500) -> Iterator[Plane]:
    """Start a control plane with nodes of eight devices each. It ends with this process."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="scaletest-plane-") as folder:
        cluster = Plane(Path(folder) / "plane", collected)
        try:
            cluster.up([Pool("nvidia", nodes, 8)])
            yield cluster
        finally:
            cluster.down()


def run(cluster: Plane, out: Path, *options: str) -> dict[str, Any]:
    """Run `scaletest lifecycle run`; its result with `exit_code` and the last `sampling`."""
    line = [
        sys.executable,
        "-m",
        "scaletest",
        "lifecycle",
        "run",
        "--output-dir",
        str(out),
        "--output",
        "json",
        *options,
    ]
    done = subprocess.run(
        line,
        env={**os.environ, "KUBECONFIG": str(cluster.kubeconfig)},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not done.stdout:
        raise SystemExit(f"the run gave no result, exit code {done.returncode}")
    report: dict[str, Any] = json.loads(done.stdout)
    sampling = json.loads((out / "sampling.json").read_text())["samples"][-1]
    return {**report, "exit_code": done.returncode, "sampling": sampling}


def tell(bar: str, met: bool, **figures: Any) -> bool:
    """Print the bar's line."""
    print(
        json.dumps({"schema_version": 1, "kind": "bar", "bar": bar, "met": met, **figures}),
        flush=True,
    )
    return met


def step(report: dict[str, Any], name: str) -> dict[str, Any]:
    """Return mean and percentiles of a step in seconds."""
    summary = next((candidate for candidate in report["steps"] if candidate["step"] == name), None)
    if summary is None:
        return {}
    spread = summary["seconds"]
    parts = {part: (spread[part] or {}).get("value") for part in ("p50", "p95", "p99")}
    return {
        "count": spread["count"],
        "mean": spread["mean"],
        **parts,
        "max": spread["max"],
        "missing": summary["missing"],
    }
