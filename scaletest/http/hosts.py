"""Host names under which a server answers.

A stranger's host name may point at this server's address (DNS rebinding), and then a browser lets
the stranger's page read the server's pages. So a server answers only under a name that nobody
outside can register, or that its user has allowed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from scaletest.model.errors import InvalidValue

HOST = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# Endings that nobody can register.
INNER = (".localhost", ".local", ".internal", ".svc")


def checked_hosts(names: Iterable[str]) -> frozenset[str]:
    """Allowed names in the form in which they are compared; raises InvalidValue."""
    hosts = frozenset(name.lower().rstrip(".") for name in names)
    for host in hosts:
        if not HOST.fullmatch(host):
            raise InvalidValue(
                f"the host name is {host!r}",
                hint="write it without a port, as in client.validation",
            )
    return hosts


def is_inner(host: str, allowed: Collection[str] = ()) -> bool:
    """Whether a Host header is safe: an IP address, localhost, a known name, or no dot."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        ipaddress.ip_address(name)
        return True
    except ValueError:
        return "." not in name or name.endswith(INNER) or name in allowed
