"""Read which network a benchmark used, and check that it is the one of the spec."""

import ipaddress
from dataclasses import dataclass

from scaletest.benchmarks.kinds import CommonSpec, Failure, fail_if, parsing


@dataclass(frozen=True, slots=True)
class Network:
    """The measuring part's route to its peer."""

    interface: str
    family: str
    mtu: int  # of that interface, in bytes
    address: str
    peer: str


def parse_network(peer: str, route: str, links: str) -> Network:
    """Parse `ip -json route get PEER` and `ip -json link show` of the measuring part."""
    # `ip` writes lists: one of a single route, and one of all interfaces
    first = parsing.json_object(route.strip().removeprefix("[").removesuffix("]"), "ip route")
    name = str(first.get("dev", ""))
    all_links = parsing.json_object('{"links":' + (links.strip() or "[]") + "}", "ip link")["links"]
    mtus = [
        parsing.part_at(link, "mtu")
        for link in all_links
        if parsing.part_at(link, "ifname") == name
    ]
    fail_if(
        not mtus or not isinstance(mtus[0], int),
        f"the interface {name or 'to the peer'} cannot be found",
        [route],
        failure=Failure.MISMATCH,
    )
    return Network(name, family_of(peer), mtus[0], str(first.get("prefsrc", "")), peer)


def family_of(address: str) -> str:
    """Return IPv4 or IPv6; "" for text that is not an address."""
    try:
        return f"IPv{ipaddress.ip_address(address).version}"
    except ValueError:
        return ""


def check_network(spec: CommonSpec, network: Network, remote: str) -> None:
    """Raise BenchmarkFailed if the tool used another network than the spec asks for.

    remote: the peer's address as the tool reports it, "" if it does not.
    """
    fail_if(
        spec.mtu is not None and network.mtu != spec.mtu,
        f"{network.interface} had an MTU of {network.mtu} instead of {spec.mtu}",
        failure=Failure.MISMATCH,
    )
    fail_if(
        network.family != spec.ip_family,
        f"the peer was reached over {network.family or network.peer} instead of {spec.ip_family}",
        failure=Failure.MISMATCH,
    )
    # a tool that listens on both families writes IPv4 addresses as ::ffff:192.0.2.1
    address = remote.removeprefix("::ffff:")
    family = family_of(address)
    fail_if(
        family and family != spec.ip_family,
        f"the tool used {family} ({remote}) instead of {spec.ip_family}",
        failure=Failure.MISMATCH,
    )
    fail_if(
        family and ipaddress.ip_address(address) != ipaddress.ip_address(network.peer),
        f"the tool talked to {remote} instead of {network.peer}",
        failure=Failure.MISMATCH,
    )
