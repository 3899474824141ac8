"""The network that a benchmark really used, and whether it is the one that was asked for."""

from __future__ import annotations

import ipaddress
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.kinds import parsing
from scaletest.kinds.common import CommonSpec
from scaletest.kinds.kind import BenchmarkFailed, Failure

FAMILIES = {4: "IPv4", 6: "IPv6"}


@dataclass(frozen=True, slots=True)
class Network:
    """The measuring part's way to its peer. mtu: of that interface, in bytes."""

    interface: str
    family: str
    mtu: int
    address: str
    peer: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def used(peer: str, route: str, links: str) -> Network:
    """From what `ip -json route get PEER` and `ip -json link show` print in the measuring part. Raises Failed."""
    ways = parsing.json_object(route.strip().removeprefix("[").removesuffix("]"), "ip route")
    name = str(ways.get("dev", ""))
    rows = parsing.json_object('{"links":' + (links.strip() or "[]") + "}", "ip link")["links"]
    mtu = next((row.get("mtu") for row in rows if isinstance(row, dict) and row.get("ifname") == name), None)
    if not isinstance(mtu, int):
        raise BenchmarkFailed(Failure.MISMATCH, f"the interface {name or 'to the peer'} cannot be found", [route])
    return Network(name, family(peer), mtu, str(ways.get("prefsrc", "")), peer)


def family(address: str) -> str:
    """IPv4 or IPv6; "" for what is no address."""
    try:
        return FAMILIES[ipaddress.ip_address(address).version]
    except ValueError:
        return ""


def check(spec: CommonSpec, network: Network, remote: str) -> None:
    """Raises Failed when something else was used than what the spec asks for.

    remote: the peer's address as the tool itself reported it, "" when it did not.
    """
    if spec.mtu is not None and network.mtu != spec.mtu:
        raise _mismatch(f"{network.interface} had an MTU of {network.mtu} instead of {spec.mtu}")
    if network.family != spec.ip_family:
        raise _mismatch(f"the peer was reached over {network.family or network.peer} instead of {spec.ip_family}")
    said = family(remote.removeprefix("::ffff:"))
    if said and said != spec.ip_family:
        raise _mismatch(f"the tool used {said} ({remote}) instead of {spec.ip_family}")
    if said and ipaddress.ip_address(remote.removeprefix("::ffff:")) != ipaddress.ip_address(network.peer):
        raise _mismatch(f"the tool talked to {remote} instead of {network.peer}")


def _mismatch(message: str) -> BenchmarkFailed:
    return BenchmarkFailed(Failure.MISMATCH, message)
