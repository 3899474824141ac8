"""Paths of built programs, free ports, and the end of processes."""

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
    """Return the path of a program that hack/tool built.

    Raises NotBuilt with the command that builds it.
    """
    built = subprocess.run(
        [ROOT / "hack" / "tool", "--path", name], capture_output=True, text=True, check=False
    )
    if built.returncode:
        raise NotBuilt(
            "; ".join(
                line.strip().removeprefix("error: ") for line in built.stderr.strip().splitlines()
            )
        )
    return f"{built.stdout.strip()}/{program}"


def free_ports(count: int) -> list[int]:
    """Choose free ports; another process may take one before it is used."""
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


def alive(pid: int) -> bool:
    """Check whether a process runs; a zombie counts as ended."""
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
