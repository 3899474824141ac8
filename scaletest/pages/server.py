"""The HTTP server: waitress, in threads of this process.

It accepts no large bodies, and closes connections of peers that say nothing or do not read. A few
hundred slow peers take the place of nobody else.
"""

import logging
import re
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import waitress
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask

from scaletest.model.errors import InvalidValue, UsageError

# More than slow peers may have, and few enough for the usual limit of 1024 open files.
CONNECTIONS = 400
# Something must arrive, or some of the response must be read, within this time.
IDLE_S = 10


class Server:
    """Serves an application until it is closed.

    headers: added to responses to requests that never reach the application, because they are too
    long or malformed. refused: called with the status of each such response.
    """

    def __init__(
        self,
        app: Any,
        listen: str | socket.socket,
        *,
        threads: int = 4,
        headers: Mapping[str, str] | None = None,
        refused: Callable[[int], None] = lambda status: None,
    ) -> None:
        # a failed binding inside waitress would leave its pipe open
        bound = bind_socket(listen) if isinstance(listen, str) else listen
        logging.getLogger("waitress").setLevel(logging.CRITICAL)  # disconnects are expected
        self._sockets: dict[int, Any] = {}
        self._server: Any = waitress.create_server(
            app,
            map=self._sockets,
            sockets=[bound],
            threads=threads,
            # a request that is too long is read to its end, so that its response arrives
            recv_bytes=65536,
            ident=None,
            asyncore_use_poll=True,  # select fails where the process has a thousand files open
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_S,
            cleanup_interval=2,
            # bytes of a response that wait in memory for a slow reader, and never in a file: the
            # disk may be read-only
            outbuf_high_watermark=1 << 20,
            outbuf_overflow=1 << 40,
            max_request_header_size=8192,
            max_request_body_size=8192,
            clear_untrusted_proxy_headers=False,
        )
        self._server.channel_class = _make_channel_class(headers or {}, refused)
        self.host, self.port = bound.getsockname()[:2]
        self.url = url_of(bound)  # for a browser on this machine
        self._thread = threading.Thread(target=self._server.run, name="scaletest-http", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait until it is closed, or until a signal's handler raises."""
        self._thread.join()

    def close(self) -> None:
        """Stop and close all connections."""
        connections: dict[int, Any] = {}

        def take_connections() -> None:
            connections.update(self._sockets)
            self._sockets.clear()

        # The server's own thread goes through its map of connections, and ends when that is empty.
        # It closes none: a reply that ends just now may wake it first, and the trigger that is
        # pulled here would be closed already.
        self._server.trigger.pull_trigger(take_connections)
        self._thread.join()
        wasyncore.close_all(connections, ignore_all=True)
        self._server.task_dispatcher.shutdown()


def bind_socket(listen: str) -> socket.socket:
    """Open a listening socket; [::] includes IPv4."""
    host, port = parse_address(listen)
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(
            address[:2],
            family=family,
            dualstack_ipv6=host == "::" and socket.has_dualstack_ipv6(),
        )
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot listen on {listen}: {reason}", hint="give another ADDRESS:PORT"
        ) from error


def url_of(listening: socket.socket) -> str:
    """Return the URL of what listens there, for a browser on this machine."""
    host, port = listening.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    authority = f"[{host}]" if ":" in host else host
    return f"http://{authority}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """Parse ADDRESS:PORT, [IPV6]:PORT or :PORT (all addresses)."""
    host, separator, port = text.rpartition(":")
    bare_ipv6 = ":" in host and not host.startswith("[")
    if not separator or bare_ipv6 or not re.fullmatch("[0-9]{1,5}", port) or int(port) > 65535:
        raise InvalidValue(
            f"{text!r} is not an address to listen on",
            hint="write ADDRESS:PORT, e.g. 127.0.0.1:9996",
        )
    return host.strip("[]") or "0.0.0.0", int(port)


class _BodylessParser(HTTPRequestParser):  # type: ignore[misc]
    """Parser that refuses bodies of unknown length."""

    chunked: bool

    def parse_header(self, header_plus: bytes) -> None:
        """Read the headers; ParsingError for a body of unknown length."""
        super().parse_header(header_plus)
        if self.chunked:
            # a chunked body could smuggle a second request past a proxy, so the connection closes
            raise ParsingError("a body is not accepted")


def _make_channel_class(
    headers: Mapping[str, str], refused: Callable[[int], None]
) -> type[HTTPChannel]:
    class Refusal(ErrorTask):  # type: ignore[misc]
        """Response to a malformed request."""

        def execute(self) -> None:
            """Count the refusal, and add the headers."""
            refused(self.request.error.code)
            self.response_headers.extend(headers.items())
            super().execute()

    class Channel(HTTPChannel):  # type: ignore[misc]
        """A connection, which is closed when its peer reads nothing of a response."""

        error_task_class = Refusal
        parser_class = _BodylessParser
        last_activity: float

        def writable(self) -> bool:
            """Return whether data is left; close the connection of a peer that never reads."""
            # the thread that makes the response waits for such a peer otherwise
            if self.total_outbufs_len and time.time() - self.last_activity > IDLE_S:
                self.handle_close()
                return False
            return bool(super().writable())

    return Channel
