"""The HTTP server: waitress, in threads of this process, beside the load.

Requests that are refused before they reach the application (bodies that are too long, broken or oversized headers) are
counted as rejected as well, and answered in the same manner.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from typing import Any

import waitress.server
from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.task import ErrorTask
from waitress.utilities import Error

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.web.gate import HEADERS, LONGEST_URI, HttpCounts

THREADS = 4
LONGEST_HEADERS = 8192
LONGEST_BODY = 1024
CONNECTIONS = 200
# A whole request must have come, and some of the answer must have been taken, within this time.
IDLE_S = 10
LOOK_EVERY_S = 2
# An answer waits for its reader up to here; whoever makes more of it waits too. Never in a file: there may be no disk.
MOST_WAITING = 1 << 20
NEVER = 1 << 40


class LineTooLong(Error):  # type: ignore[misc]
    """The request line is too long."""

    code = 414
    reason = "URI Too Long"


class Parser(HTTPRequestParser):  # type: ignore[misc]
    """Tells a request line that is too long from headers that are, and takes no body of unknown length."""

    error: Error | None
    chunked: bool

    def parse_header(self, header_plus: bytes) -> None:
        """Read the headers."""
        super().parse_header(header_plus)
        if self.chunked:
            # also what smuggles a second request past a proxy that counts otherwise; the connection is closed
            raise ParsingError("a body is not accepted")

    def received(self, data: bytes) -> int:
        """Take what came."""
        start = (self.header_plus + data)[: LONGEST_HEADERS + 1]
        consumed = int(super().received(data))
        if self.error is not None and self.error.code == 431 and b"\n" not in start[: LONGEST_URI + 100]:
            self.error = LineTooLong(f"the request line is longer than {LONGEST_URI} characters")
        return consumed


class Server:
    """Serves an application until it is closed. `url` tells where, also when port 0 was asked for."""

    def __init__(self, app: Any, listen: str | socket.socket, counts: HttpCounts) -> None:
        # a failed binding inside waitress would leave its pipe open
        bound = bind(listen) if isinstance(listen, str) else listen
        logging.getLogger("waitress").setLevel(logging.CRITICAL)  # a peer that hangs up is no news
        self._server: Any = waitress.server.create_server(
            app,
            sockets=[bound],
            threads=THREADS,
            recv_bytes=65536,  # reads a request that is too long to its end, so that the answer is not reset
            ident=None,
            connection_limit=CONNECTIONS,
            channel_timeout=IDLE_S,
            cleanup_interval=LOOK_EVERY_S,
            outbuf_high_watermark=MOST_WAITING,
            outbuf_overflow=NEVER,
            max_request_header_size=LONGEST_HEADERS,
            max_request_body_size=LONGEST_BODY,
            clear_untrusted_proxy_headers=False,
        )
        self._server.channel_class = _channel(counts)
        self.host, self.port = bound.getsockname()[:2]
        self._thread = threading.Thread(target=self._server.run, name="scaletest-http", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """Where a browser on this machine finds it."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def close(self) -> None:
        """Answer nothing more; every connection is closed."""
        # in the server's own thread, which goes through its map of connections
        self._server.trigger.pull_trigger(lambda: wasyncore.close_all(self._server._map, ignore_all=True))
        self._thread.join()
        self._server.task_dispatcher.shutdown()


def bind(listen: str) -> socket.socket:
    """A socket that listens; [::] means IPv4 as well."""
    host, port = parse_address(listen)
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        both = host == "::" and socket.has_dualstack_ipv6()
        return socket.create_server(address[:2], family=family, dualstack_ipv6=both)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {listen}: {reason}", hint="give another --listen ADDRESS:PORT") from error


def parse_address(text: str) -> tuple[str, int]:
    """ADDRESS:PORT, [IPV6]:PORT or :PORT (all addresses)."""
    host, separator, port_text = text.rpartition(":")
    if not separator or not port_text.isascii() or not port_text.isdigit() or int(port_text) > 65535:
        raise InvalidValue(f"{text!r} is no address to listen on", hint="write ADDRESS:PORT, as in 127.0.0.1:9996")
    return host.strip("[]") or "0.0.0.0", int(port_text)


def _channel(counts: HttpCounts) -> type[HTTPChannel]:
    class Refusal(ErrorTask):  # type: ignore[misc]
        """Answers what could not be read."""

        def execute(self) -> None:
            """Count it, and add our headers."""
            counts.count(self.request.error.code)
            self.response_headers.extend(HEADERS.items())
            super().execute()

    class Channel(HTTPChannel):  # type: ignore[misc]
        """One connection. It has no right to stay: peers that hold many would keep everybody else out."""

        error_task_class = Refusal
        parser_class = Parser
        last_activity: float

        def handle_read(self) -> None:
            """Read; a request that comes drop by drop is no sign of life before it is whole."""
            before = self.last_activity
            super().handle_read()
            if self.request is not None:
                self.last_activity = before

        def writable(self) -> bool:
            """Whether there is something to send; a peer that takes none of it is dropped, and who waits goes on."""
            if self.total_outbufs_len and time.time() - self.last_activity > IDLE_S:
                self.handle_close()
                return False
            return bool(super().writable())

    return Channel
