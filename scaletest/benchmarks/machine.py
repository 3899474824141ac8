"""What a result was measured on: kernel, processor, programs, network card. A number without it cannot be compared."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scaletest.archive.environment import machine
from scaletest.benchmarks import programs
from scaletest.benchmarks.namespaces import PATIENCE_S
from scaletest.kinds.benchmark import Benchmark

CARDS = Path("/sys/class/net")


def facts(benchmark: Benchmark) -> dict[str, Any]:
    """The machine of this process, and the versions of what the benchmark runs there."""
    return {**machine(), "programs": programs.versions(list(benchmark.kind.programs(benchmark.spec)))}


def card(enter: Sequence[str], interface: str, cards: Path = CARDS) -> dict[str, Any]:
    """What an interface is: its kind, as in veth, or the driver of its hardware, and the speed of that in bit/s."""
    found: dict[str, Any] = {"name": interface}
    if shutil.which("ip"):
        line = [*enter, "ip", "-json", "-details", "link", "show", "dev", interface]
        # what was measured does not depend on the answer
        with contextlib.suppress(ValueError, AttributeError, TypeError, OSError, subprocess.SubprocessError):
            done = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
            (row,) = json.loads(done.stdout)
            found |= {"kind": str(row["linkinfo"]["info_kind"])} if "linkinfo" in row else {}
    # these files are those of the network that this process is in
    driver = cards / interface / "device" / "driver"
    if not enter and driver.exists():
        found["driver"] = driver.resolve().name
        with contextlib.suppress(OSError, ValueError):
            found["speed_bit_s"] = int((cards / interface / "speed").read_text()) * 1_000_000
    return found
