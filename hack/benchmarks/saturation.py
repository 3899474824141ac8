"""What the bars of the saturation search share: a service of known capacity, and one line of JSON a bar."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def service(*arguments: str) -> Iterator[str]:
    """The URL of `hack.service` in a process of its own, on loopback."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hack.service", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


def line(*arguments: str) -> list[str]:
    """The command line of a run whose result is JSON."""
    return [sys.executable, "-m", "scaletest", "saturate", "-o", "json", "--progress", "plain", *arguments]


def saturate(*arguments: str) -> dict[str, Any]:
    """The result of a run, which is kept nowhere."""
    with tempfile.TemporaryDirectory() as folder:
        words = line("--run-dir", f"{folder}/run", *arguments)
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ)
    if done.returncode not in (0, 3, 4):
        sys.exit(f"{' '.join(words)}: exit code {done.returncode}\n{done.stderr}")
    return dict(json.loads(done.stdout))


def report(bar: str, met: bool, **figures: Any) -> int:
    """Print the bar's line; exit code 0 when it is met, else 3."""
    print(json.dumps({"schema_version": 1, "kind": "bar", "bar": bar, "met": met, **figures}), flush=True)
    return 0 if met else 3
