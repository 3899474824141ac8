"""Names of Services for processes on this machine: each Service has a loopback address of its own, and files in the
form of /etc/hosts stand for the cluster's DNS. A process sees such a file in a mount namespace of its own.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

_LOCK = threading.Lock()


class Names:
    """The Services of one control plane. everywhere: the file for processes outside of namespaces."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "names"
        self._folder.mkdir(exist_ok=True)
        self.everywhere = self._folder / "hosts"
        _begin(self.everywhere)

    def address(self, namespace: str, service: str) -> str:
        """The Service's address, made at the first call."""
        full = f"{service}.{namespace}.svc"
        with _LOCK:
            for line in self.everywhere.read_text().splitlines():
                address, *names = line.split()
                if full in names:
                    return address
            # by chance: other control planes on this machine have theirs
            made = ".".join(["127", *(str(2 + secrets.randbelow(252)) for _ in range(3))])
            names = [full, f"{full}.cluster.local"]
            _add(self.everywhere, made, names)
            _add(self.within(namespace), made, [service, f"{service}.{namespace}", *names])
            return made

    def within(self, namespace: str) -> Path:
        """The file for processes of a namespace, to whom a Service's bare name is enough."""
        file = self._folder / namespace
        _begin(file)
        return file


def seeing(hosts: Path, line: Sequence[str]) -> list[str]:
    """The command line of a process that sees this file as /etc/hosts. It keeps its process id."""
    user = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    script = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
    return ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(hosts), *line]


def _begin(file: Path) -> None:
    if not file.exists():
        _add(file, "127.0.0.1", ["localhost"])


def _add(file: Path, address: str, names: list[str]) -> None:
    # in place: whoever sees the file through a mount must see this too
    with file.open("a") as one:
        one.write(f"{address} {' '.join(names)}\n")
