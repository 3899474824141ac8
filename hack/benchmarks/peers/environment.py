"""One virtual environment a library, made once, outside the repository, named by what is in it.

Libraries pin redis-py against each other, so they cannot share one. Two adapters with the same
requirements do.
"""

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

from hack.benchmarks.peers.catalogue import Peer

_STAMP = "complete"


class NotInstalled(Exception):
    """A peer's environment could not be made."""


def cache() -> Path:
    """Where the environments lie."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "scaletest" / "peers"


def programs(peer: Peer) -> Path:
    """Return the program folder of the peer's environment, made when missing; else ours."""
    if not peer.dependencies:
        return Path(sys.executable).parent
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    digest = hashlib.sha256("\n".join([python, *peer.dependencies]).encode()).hexdigest()[:12]
    library = re.split(r"[\[=<>~!]", peer.dependencies[0])[0]
    folder = cache() / f"{library}-{digest}"
    if not (folder / _STAMP).exists():
        print(f"installing {library} into {folder} (once)", file=sys.stderr, flush=True)
        _make(folder, peer)
        (folder / _STAMP).touch()
    return folder / "bin"


def _make(folder: Path, peer: Peer) -> None:
    pip = [
        str(folder / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    for command in (
        [sys.executable, "-m", "venv", "--clear", str(folder)],
        [*pip, *peer.dependencies],
    ):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            lines = (result.stderr or result.stdout).strip().splitlines() or ["it printed nothing"]
            raise NotInstalled(f"{peer.name} could not be installed: {lines[-1]}")
