"""Where and with what a run was made: what a reader needs to make it again, without secrets.

Folders and files of a run are made here too, such that only their owner may read them: command
lines and outputs may hold secrets.
"""

from __future__ import annotations

import errno
import glob
import os
import platform
import re
import socket
import stat
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import IO, Any

from scaletest import __version__
from scaletest.model.environment import Environment
from scaletest.model.masking import masked
from scaletest.processes import proc

_FLAGS = {"a": os.O_APPEND, "w": os.O_TRUNC, "x": os.O_EXCL}


def make_folder(path: Path) -> None:
    """Make a folder for its owner only, parents as usual; an existing one keeps its mode."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def open_private(path: Path, mode: str, **options: Any) -> IO[Any]:
    """Open for writing as `open` does; new files are for their owner only, old keep their mode."""
    return os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | _FLAGS[mode[0]], 0o600), mode, **options
    )


def open_regular(path: str | Path, mode: str = "r", **options: Any) -> IO[Any]:
    """Open a regular file for reading as `open` does; OSError for anything else.

    Others may write into a volume: a FIFO would keep us waiting, and /dev/zero never ends.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    mode_bits = os.fstat(handle).st_mode
    if not stat.S_ISREG(mode_bits):
        os.close(handle)
        if stat.S_ISDIR(mode_bits):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return os.fdopen(handle, mode, **options)


def replace_private(path: Path, parts: Iterable[bytes], *, durable: bool = True) -> None:
    """Write a file of these parts: a reader sees the old one or the new one, and never a part. A
    new one is for its owner only. durable: and return when it is on disk.
    """
    fresh = fresh_of(path)
    fresh.unlink(missing_ok=True)
    with open_private(fresh, "xb") as file:
        file.writelines(parts)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    fresh.replace(path)


def fresh_of(path: Path) -> Path:
    """Where the next version of a file is written."""
    return path.with_name(f".{path.name}.new")


# For processes of a run: its settings are those of its plan, and not again those of the user.
WITHOUT_SETTINGS = {"SCALETEST_CONFIG": ""}
PACKAGES = ("redis", "hiredis", "rq")
CLOCK_SOURCE = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def environment(command_line: Sequence[str], device_glob: str = "") -> dict[str, Any]:
    """Versions, machine and command line; passwords in URLs are masked."""
    return Environment(
        scaletest=__version__,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        command_line=list(map(masked, command_line)),
        host=socket.gethostname(),
        python=sys.version.split()[0],
        **machine(),
        clock_source=proc.text_of(CLOCK_SOURCE).strip(),
        packages={name: _version(name) for name in PACKAGES},
        devices=sorted(glob.glob(device_glob)),  # noqa: PTH207 - Path.glob refuses absolute patterns
    ).to_dict()


def machine() -> dict[str, Any]:
    """What this process runs on: operating system with its kernel, processor, memory, and the cores
    that it may use.
    """
    return {
        "system": platform.platform(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processor": _line(Path("/proc/cpuinfo"), "model name"),
        "memory": _line(Path("/proc/meminfo"), "MemTotal"),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _line(path: Path, name: str) -> str:
    """The value of the first `name : value` line at the beginning of a file of the kernel."""
    values = re.findall(rf"^{name}[ \t]*:(.*)$", proc.text_of(path), re.MULTILINE)
    return "".join(values[:1]).strip()
