"""What the bars of the lifecycle share: a plane, a run of the program in its own process, and one JSON line a bar."""

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
    """Numbers of the bar, and where its files go."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, help="Keep the runs' folders here.")
    for name, value in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    given.out = given.out or Path(tempfile.mkdtemp(prefix="scaletest-lifecycle-"))
    return given


@contextmanager
def plane(nodes: int, collected: int = 12_500) -> Iterator[Plane]:
    """A control plane with nodes of eight devices each. It ends with this process, also when that is told to end."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="scaletest-plane-") as folder:
        made = Plane(Path(folder) / "plane", collected)
        try:
            made.up([Pool("nvidia", nodes, 8)])
            yield made
        finally:
            made.down()


def run(made: Plane, out: Path, *words: str) -> dict[str, Any]:
    """`scaletest lifecycle run` to its end; its result, with `exit_code` and what `sampling.json` says of its cost."""
    line = [sys.executable, "-m", "scaletest", "lifecycle", "run", "--output-dir", str(out), "--output", "json", *words]
    done = subprocess.run(
        line, env={**os.environ, "KUBECONFIG": str(made.kubeconfig)}, stdout=subprocess.PIPE, text=True, check=False
    )
    if not done.stdout:
        raise SystemExit(f"the run gave no result, exit code {done.returncode}")
    result: dict[str, Any] = json.loads(done.stdout)
    sampling = json.loads((out / "sampling.json").read_text())["samples"][-1]
    return {**result, "exit_code": done.returncode, "sampling": sampling}


def tell(bar: str, met: bool, **found: Any) -> bool:
    """The bar's line."""
    print(json.dumps({"schema_version": 1, "kind": "bar", "bar": bar, "met": met, **found}), flush=True)
    return met


def step(result: dict[str, Any], name: str) -> dict[str, Any]:
    """Mean and percentiles of a step, seconds."""
    found = next((one for one in result["steps"] if one["step"] == name), None)
    if found is None:
        return {}
    spread = found["seconds"]
    parts = {part: (spread[part] or {}).get("value") for part in ("p50", "p95", "p99")}
    return {
        "count": spread["count"],
        "mean": spread["mean"],
        **parts,
        "max": spread["max"],
        "missing": found["missing"],
    }
