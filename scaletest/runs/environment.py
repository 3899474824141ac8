"""The environment of this process, as a run keeps it: enough to repeat the run, and no secrets."""

import glob
import os
import platform
import re
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from scaletest import __version__
from scaletest.model.environment import Environment
from scaletest.model.masking import mask_passwords
from scaletest.processes import proc

# Packages whose versions are kept.
PACKAGES = ("redis", "hiredis", "rq")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def read_environment(command_line: Sequence[str], device_glob: str = "") -> dict[str, Any]:
    """Collect versions, machine and command line; passwords in URLs are masked."""
    packages = dict.fromkeys(PACKAGES, "")
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            packages[name] = metadata.version(name)
    return Environment(
        scaletest=__version__,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        command_line=list(map(mask_passwords, command_line)),
        host=socket.gethostname(),
        python=sys.version.split()[0],
        **describe_host(),
        clock_source=proc.read_text(CLOCK_SOURCE).strip(),
        packages=packages,
        devices=sorted(glob.glob(device_glob)),  # noqa: PTH207 - Path.glob refuses absolute patterns
    ).to_dict()


def describe_host() -> dict[str, Any]:
    """Describe the host: operating system, processor, memory and the cores that we may use."""
    return {
        "system": platform.platform(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processor": _first_value(Path("/proc/cpuinfo"), "model name"),
        "memory": _first_value(Path("/proc/meminfo"), "MemTotal"),
        "cores": len(os.sched_getaffinity(0)),
    }


def _first_value(path: Path, name: str) -> str:
    """Return the value of the first line `name : value` of a file of the kernel."""
    values = re.findall(rf"^{name}[ \t]*:(.*)$", proc.read_text(path), re.MULTILINE)
    return "".join(values[:1]).strip()
