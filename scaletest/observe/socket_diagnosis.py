"""The kernel's socket diagnosis (netlink), which answers everybody about their own network.

It names the peer of a unix socket, and lists connections at a tenth of what reading /proc/net/tcp
costs.
"""

import socket
import struct
from collections.abc import Iterator

from scaletest.processes import addresses

_SOCK_DIAG, _BY_FAMILY, _REQUEST, _DUMP = 4, 20, 0x001, 0x300
_ERROR, _DONE = 2, 3
_SHOW_NAME, _SHOW_PEER = 1, 4
_NAME, _PEER = 0, 2
# established, and half closed by the peer
_CONNECTED = 1 << 1 | 1 << 8
_PATIENCE_S = 0.2
_ANY_COOKIE = 0xFFFFFFFF


def unix_peer(inode: int) -> str | None:
    """Return the path of a unix socket's peer, "" for one without a name.

    None for other sockets, and before it is accepted.

    Raises OSError where the kernel does not answer.
    """
    with _link() as link:
        peer = _attributes(link, inode, _SHOW_PEER).get(_PEER)
        (peer_inode,) = struct.unpack("=I", peer[:4]) if peer else (0,)
        names = _attributes(link, peer_inode, _SHOW_NAME) if peer_inode else None
        return None if names is None else addresses.unix_name(names.get(_NAME, b""))


def tcp_peers() -> Iterator[addresses.Connection]:
    """Yield every TCP connection of this network.

    Raises OSError where the kernel does not answer.
    """
    for family in (socket.AF_INET, socket.AF_INET6):
        with _link() as link:
            request = struct.pack("=BBBBI48x", family, socket.IPPROTO_TCP, 0, 0, _CONNECTED)
            for message in _answers(link, request, _REQUEST | _DUMP):
                connection = parse_connection(message)
                # the kernel also lists connections that belong to no process any more
                if connection.inode:
                    yield connection


def parse_connection(message: bytes) -> addresses.Connection:
    """Parse one struct inet_diag_msg. Raises struct.error."""
    (family,) = struct.unpack_from("=B", message)
    own_port, port = struct.unpack_from("!HH", message, 4)
    address = message[24 : 24 + (16 if family == socket.AF_INET6 else 4)]
    (inode,) = struct.unpack_from("=I", message, 68)
    return addresses.Connection(
        inode, addresses.host_and_port(socket.inet_ntop(family, address), port), own_port
    )


def _link() -> socket.socket:
    link = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _SOCK_DIAG)
    link.settimeout(_PATIENCE_S)
    return link


def _answers(link: socket.socket, request: bytes, flags: int) -> Iterator[bytes]:
    """Yield the messages that answer a request, without their headers. Raises OSError."""
    link.send(struct.pack("=IHHII", 16 + len(request), _BY_FAMILY, flags, 0, 0) + request)
    while True:
        data = link.recv(65536)
        offset = 0
        while offset + 16 <= len(data):
            length, kind = struct.unpack_from("=IH", data, offset)
            if kind == _DONE or length < 16:
                return
            if kind == _ERROR:
                (code,) = struct.unpack_from("=i", data, offset + 16)
                raise OSError(-code, "the kernel refuses to tell of its sockets")
            yield data[offset + 16 : offset + length]
            offset += (length + 3) & ~3
        if not flags & _DUMP:
            return


def _attributes(link: socket.socket, inode: int, show: int) -> dict[int, bytes]:
    """Return the attributes by number of the unix socket with this inode.

    OSError without such a socket.
    """
    fields = (0xFFFFFFFF, inode & 0xFFFFFFFF, show, _ANY_COOKIE, _ANY_COOKIE)
    request = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, *fields)
    attributes: dict[int, bytes] = {}
    for message in _answers(link, request, _REQUEST):
        offset = 16  # after struct unix_diag_msg
        while offset + 4 <= len(message):
            size, number = struct.unpack_from("=HH", message, offset)
            if size < 4:
                break
            attributes[number] = message[offset + 4 : offset + size]
            offset += (size + 3) & ~3
    return attributes
