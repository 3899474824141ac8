"""Describes the machine of a measurement: kernel, processor, programs and network card.

Without this description results of two machines cannot be compared.
"""

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
    """Describe this machine, and the versions of the programs that the benchmark runs."""
    return {
        **machine(),
        "programs": programs.versions(list(benchmark.kind.programs(benchmark.spec))),
    }


def card(enter: Sequence[str], interface: str, cards: Path = CARDS) -> dict[str, Any]:
    """Describe an interface: its kind, as in veth, or its hardware's driver and speed in bit/s."""
    description: dict[str, Any] = {"name": interface}
    if shutil.which("ip"):
        line = [*enter, "ip", "-json", "-details", "link", "show", "dev", interface]
        # the measurement is valid without this description, so no error here counts
        with contextlib.suppress(
            ValueError, AttributeError, TypeError, OSError, subprocess.SubprocessError
        ):
            done = subprocess.run(
                line, capture_output=True, text=True, timeout=PATIENCE_S, check=False
            )
            (link,) = json.loads(done.stdout)
            if "linkinfo" in link:
                description["kind"] = str(link["linkinfo"]["info_kind"])
    # /sys shows the interfaces of this process's own network namespace only
    driver = cards / interface / "device" / "driver"
    if not enter and driver.exists():
        description["driver"] = driver.resolve().name
        with contextlib.suppress(OSError, ValueError):
            description["speed_bit_s"] = int((cards / interface / "speed").read_text()) * 1_000_000
    return description
