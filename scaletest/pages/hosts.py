"""Host names under which a server answers.

A stranger's host name may point at this server's address (DNS rebinding), and then a browser lets
the stranger's page read the server's pages. So a server answers only under a name that neither a
stranger can register nor a neighbour can announce, or that its user has allowed.
"""

import ipaddress
import re
import socket
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from scaletest.model.errors import InvalidValue

HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# Endings that nobody can register, and that no neighbour on the network can announce by mDNS or
# DHCP as he can any name in .local or without a dot.
INNER = (".localhost", ".internal", ".svc", ".svc.cluster.local")


def checked_hosts(names: Iterable[str]) -> frozenset[str]:
    """Return allowed names in the form in which they are compared; InvalidValue for others."""
    hosts = frozenset(name.lower().rstrip(".") for name in names)
    for host in hosts:
        if not HOST.fullmatch(host):
            raise InvalidValue(
                f"the host name is {host!r}",
                hint="write it without a port, as in client.validation",
            )
    return hosts


def is_inner(host: str, allowed: Collection[str] = ()) -> bool:
    """Tell whether a Host header is safe.

    Safe are an IP address, localhost, this machine, a name of a cluster, and allowed ones.
    """
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        here = socket.gethostname().lower()
        # HTTP/1.0 has no Host, and no browser sends it
        return name in ("", "localhost", here, *allowed) or name.endswith(INNER)
