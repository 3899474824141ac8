"""Programs that were built, ports that are free, and processes that must end."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


class NotBuilt(Exception):
    """A tool is missing."""


@functools.cache
def tool(name: str, program: str) -> str:
    """The path of a program that was built. Raises NotBuilt with what to do."""
    made = subprocess.run([ROOT / "hack" / "tool", "--path", name], capture_output=True, text=True, check=False)
    if made.returncode:
        raise NotBuilt("; ".join(line.strip().removeprefix("error: ") for line in made.stderr.strip().splitlines()))
    return f"{made.stdout.strip()}/{program}"


def free_ports(count: int) -> list[int]:
    """Free ones, as far as one can know."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    found = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return found


def alive(pid: int) -> bool:
    """One that ended and was not waited for counts as ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def end(pid: int) -> None:
    for number, patience_s in ((signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        if not alive(pid):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
        deadline = time.monotonic() + patience_s
        while alive(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
