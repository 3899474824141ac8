"""Names of Services for processes on this machine: each Service has a loopback address of its own, and files in the
form of /etc/hosts stand for the cluster's DNS. A process sees such a file in a mount namespace of its own. Where there
is a real node, its DNS answers instead.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.settings import DNS

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

    def served(self, plane: ControlPlane, line: Sequence[str]) -> list[str]:
        """The command line of a process that finds Services: from these files, or from a real node's DNS."""
        if not plane.node.box.running():
            return seeing(self.everywhere, line)
        resolver = self._folder / "resolv.conf"
        resolver.write_text(f"nameserver {DNS}\nsearch svc.cluster.local cluster.local\noptions ndots:5\n")
        return seeing(resolver, line, "/etc/resolv.conf")

    def within(self, namespace: str) -> Path:
        """The file for processes of a namespace, to whom a Service's bare name is enough."""
        file = self._folder / namespace
        _begin(file)
        return file


def seeing(file: Path, line: Sequence[str], at: str = "/etc/hosts") -> list[str]:
    """The command line of a process that sees this file in that place. It keeps its process id."""
    user = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(file), at, *line]


def _begin(file: Path) -> None:
    if not file.exists():
        _add(file, "127.0.0.1", ["localhost"])


def _add(file: Path, address: str, names: list[str]) -> None:
    # in place: whoever sees the file through a mount must see this too
    with file.open("a") as one:
        one.write(f"{address} {' '.join(names)}\n")
