"""Names of Services for processes on this machine.

Each Service has a loopback address of its own, and files in the form of /etc/hosts replace the
cluster's DNS. A process sees such a file in a mount namespace of its own. With a real node, its DNS
answers instead.
"""

import os
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

from hack.kubernetes.plane import ControlPlane
from hack.kubernetes.settings import DNS

_LOCK = threading.Lock()


class Names:
    """The Services of one control plane.

    everywhere: the file for processes outside of namespaces.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "names"
        self._folder.mkdir(exist_ok=True)
        self.everywhere = self._folder / "hosts"
        _begin(self.everywhere)

    def address(self, namespace: str, service: str) -> str:
        """Return the Service's address, which the first call chooses."""
        full = f"{service}.{namespace}.svc"
        with _LOCK:
            for line in self.everywhere.read_text().splitlines():
                address, *names = line.split()
                if full in names:
                    return address
            # random, since other control planes on this machine choose addresses too
            new_address = ".".join(["127", *(str(2 + secrets.randbelow(252)) for _ in range(3))])
            names = [full, f"{full}.cluster.local"]
            _add(self.everywhere, new_address, names)
            _add(self.within(namespace), new_address, [service, f"{service}.{namespace}", *names])
            return new_address

    def served(self, plane: ControlPlane, line: Sequence[str]) -> list[str]:
        """Wrap a command line so that it finds Services, by these files or by a real node's DNS."""
        if not plane.node.box.running():
            return with_names_file(self.everywhere, line)
        resolver = self._folder / "resolv.conf"
        resolver.write_text(
            f"nameserver {DNS}\nsearch svc.cluster.local cluster.local\noptions ndots:5\n"
        )
        return with_names_file(resolver, line, "/etc/resolv.conf")

    def within(self, namespace: str) -> Path:
        """Return the file for processes of a namespace, which may omit it from names."""
        file = self._folder / namespace
        _begin(file)
        return file


def with_names_file(file: Path, line: Sequence[str], at: str = "/etc/hosts") -> list[str]:
    """Wrap a command line so that it sees this file at the path `at`. It keeps its process id."""
    user = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    return ["unshare", *user, "--mount", "sh", "-c", script, "sh", str(file), at, *line]


def _begin(file: Path) -> None:
    if not file.exists():
        _add(file, "127.0.0.1", ["localhost"])


def _add(file: Path, address: str, names: list[str]) -> None:
    # appended in place: a mount shows the same inode, and a replaced file would be another one
    with file.open("a") as hosts:
        hosts.write(f"{address} {' '.join(names)}\n")
