"""The network that a benchmark used, and the check that it is the one of the spec."""

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
    """The measuring part's route to its peer. mtu: of that interface, in bytes."""

    interface: str
    family: str
    mtu: int
    address: str
    peer: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


def used(peer: str, route: str, links: str) -> Network:
    """Parse `ip -json route get PEER` and `ip -json link show` of the measuring part."""
    first = parsing.json_object(route.strip().removeprefix("[").removesuffix("]"), "ip route")
    name = str(first.get("dev", ""))
    known = parsing.json_object('{"links":' + (links.strip() or "[]") + "}", "ip link")["links"]
    matching = [link for link in known if isinstance(link, dict) and link.get("ifname") == name]
    if not matching or not isinstance(mtu := matching[0].get("mtu"), int):
        raise BenchmarkFailed(
            Failure.MISMATCH, f"the interface {name or 'to the peer'} cannot be found", [route]
        )
    return Network(name, family(peer), mtu, str(first.get("prefsrc", "")), peer)


def family(address: str) -> str:
    """IPv4 or IPv6; "" for text that is not an address."""
    try:
        return FAMILIES[ipaddress.ip_address(address).version]
    except ValueError:
        return ""


def check(spec: CommonSpec, network: Network, remote: str) -> None:
    """Raises BenchmarkFailed if the tool used another network than the spec asks for.

    remote: the peer's address as the tool reports it, "" if it does not.
    """
    if spec.mtu is not None and network.mtu != spec.mtu:
        raise _mismatch(f"{network.interface} had an MTU of {network.mtu} instead of {spec.mtu}")
    if network.family != spec.ip_family:
        raise _mismatch(
            f"the peer was reached over {network.family or network.peer} instead of"
            f" {spec.ip_family}"
        )
    used = family(remote.removeprefix("::ffff:"))
    if used and used != spec.ip_family:
        raise _mismatch(f"the tool used {used} ({remote}) instead of {spec.ip_family}")
    if used and ipaddress.ip_address(remote.removeprefix("::ffff:")) != ipaddress.ip_address(
        network.peer
    ):
        raise _mismatch(f"the tool talked to {remote} instead of {network.peer}")


def _mismatch(message: str) -> BenchmarkFailed:
    return BenchmarkFailed(Failure.MISMATCH, message)
