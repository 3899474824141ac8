"""Make nodes of this machine: network namespaces, joined by veth pairs.

Each has an MTU and addresses of its own. A namespace has no name and lives as long as the process
that holds it. That process reads a pipe whose other end belongs to this process. So when this
process ends, in whatever way, the holder ends too, and the kernel removes namespaces, interfaces
and addresses. The machine's own network is not touched. Without root a user namespace gives the
rights, where the kernel allows that.

The addresses are reserved for benchmarks: 198.18.0.0/15 (RFC 2544) and 2001:2::/48 (RFC 5180).
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.model import errors

INTERFACE = "eth0"
COMMAND_LIMIT_S = 20.0
NEEDED = (
    "run as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), with"
    " iproute2 and util-linux"
)
_USER = ("--user", "--preserve-credentials")


class Namespaces:
    """Nodes with one interface each.

    A veth pair joins two; a bridge in another namespace joins more.
    """

    def __init__(self, nodes: int, mtu: int | None, family: str) -> None:
        """Create all nodes. Raises UsageError when this machine cannot."""
        mtu = mtu or 1500
        self._family = family
        self._holders: list[subprocess.Popen[bytes]] = []
        self._is_root = os.geteuid() == 0
        try:
            for index in range(nodes):
                self._start_holder(self.host(index))
            # more than two meet at a bridge, on a node of its own after theirs
            if nodes > 2:
                self._start_holder("switch")
                self._run_on(nodes, "ip link add br0 type bridge")
                self._run_on(nodes, f"ip link set br0 mtu {mtu} up")
            for index in range(nodes):
                if nodes == 2 and index == 0:
                    self._connect(0, 1, INTERFACE)
                elif nodes > 2:
                    self._connect(index, nodes, f"port{index}")
                    self._run_on(nodes, f"ip link set port{index} master br0 mtu {mtu} up")
                self._run_on(index, f"ip link set {INTERFACE} mtu {mtu} up")
                # both families: the control channel of MPI needs IPv4, whichever its data use
                self._run_on(index, f"ip addr add {node_address(index, 'IPv4')}/24 dev {INTERFACE}")
                # nodad: no program can bind to an address that is being checked for duplicates
                self._run_on(
                    index, f"ip addr add {node_address(index, 'IPv6')}/64 dev {INTERFACE} nodad"
                )
        except BaseException:
            self.close()
            raise

    def address(self, index: int) -> str:
        """Return the node's address."""
        return node_address(index, self._family)

    def host(self, index: int) -> str:
        """Return the node's name."""
        return f"node-{index}"

    def enter(self, index: int) -> tuple[str, ...]:
        """Return the command prefix that runs a command on that node."""
        return (
            *("nsenter", "--target", str(self._holders[index].pid)),
            *(() if self._is_root else _USER),
            *("--net", "--uts", "--"),
        )

    def close(self) -> None:
        """End all holders, and with them the namespaces."""
        for holder in self._holders:
            assert holder.stdin is not None
            holder.stdin.close()
        for holder in self._holders:
            holder.wait()
            if holder.stdout:
                holder.stdout.close()
        self._holders.clear()

    def _start_holder(self, name: str) -> None:
        """Start the holder of one more namespace."""
        unshare: tuple[str, ...] = ("unshare", "--net", "--uts")
        if not self._is_root and not self._holders:
            unshare = ("unshare", "--user", "--map-root-user", "--net", "--uts")
        elif not self._is_root:
            # in the user namespace of the first one, which gives the rights over all interfaces
            first = str(self._holders[0].pid)
            unshare = ("nsenter", "--target", first, *_USER, "--", *unshare)
        script = 'hostname "$1" && ip link set lo up && echo ready && exec cat >/dev/null'
        holder = subprocess.Popen(
            [*unshare, "sh", "-c", script, "scaletest-node", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._holders.append(holder)
        assert holder.stdout is not None and holder.stderr is not None
        with holder.stderr:
            if not holder.stdout.readline():
                reason = holder.stderr.read().decode(errors="replace").strip()
                raise errors.UsageError(
                    f"no network namespace can be created: {reason}", hint=NEEDED
                )

    def _connect(self, node: int, other: int, name: str) -> None:
        """Create a veth pair: eth0 on one node, and `name` on the other."""
        pid = self._holders[other].pid
        self._run_on(node, f"ip link add {INTERFACE} type veth peer name {name} netns {pid}")

    def _run_on(self, index: int, command: str) -> None:
        """Run a command on a node."""
        completed = run_command([*self.enter(index), *command.split()])
        if completed.returncode:
            raise errors.UsageError(f"{command} failed: {completed.stderr.strip()}", hint=NEEDED)


def node_address(index: int, family: str) -> str:
    """Return the address of a node."""
    return f"2001:2::{index + 1:x}" if family == "IPv6" else f"198.18.0.{index + 1}"


@dataclass(frozen=True, slots=True)
class Loopback:
    """Makes this machine every node, with lo as the only interface."""

    family: str  # of the addresses

    def address(self, index: int) -> str:
        """Return the loopback address."""
        return "::1" if self.family == "IPv6" else "127.0.0.1"

    def host(self, index: int) -> str:
        """Return localhost for every node."""
        return "localhost"

    def enter(self, index: int) -> tuple[str, ...]:
        """Return no prefix: commands run as they are."""
        return ()


Network = Namespaces | Loopback


def can_create_namespaces() -> bool:
    """Check whether this user can create network namespaces here."""
    if any(shutil.which(name) is None for name in ("ip", "unshare", "nsenter")):
        return False
    user: Sequence[str] = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    return run_command(["unshare", *user, "--net", "--uts", "true"]).returncode == 0


def run_command(argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a command about interfaces to its end, for COMMAND_LIMIT_S at most."""
    return subprocess.run(
        argv, capture_output=True, text=True, timeout=COMMAND_LIMIT_S, check=False
    )
