"""A server of HTTP/2 without TLS, on loopback, in a thread of the test; no library that we use has
a server.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import h2.connection
import h2.events
from h2.config import H2Configuration


class _Connection(asyncio.Protocol):
    def __init__(self, counts: dict[str, int]) -> None:
        self._counts = counts
        self._http = h2.connection.H2Connection(H2Configuration(client_side=False))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._counts["connections"] += 1
        self._http.initiate_connection()
        self._transport.write(self._http.data_to_send())

    def data_received(self, data: bytes) -> None:
        try:
            events = self._http.receive_data(data)
        except h2.exceptions.ProtocolError:
            self._transport.close()
            return
        for event in events:
            if isinstance(event, h2.events.StreamEnded):
                self._counts["requests"] += 1
                self._http.send_headers(event.stream_id, [(":status", "200")])
                self._http.send_data(event.stream_id, b"ok", end_stream=True)
        self._transport.write(self._http.data_to_send())


@contextmanager
def serving() -> Iterator[tuple[str, dict[str, int]]]:
    """Its URL, and what it has seen."""
    loop = asyncio.new_event_loop()
    counts = {"connections": 0, "requests": 0}
    server = loop.run_until_complete(
        loop.create_server(lambda: _Connection(counts), "127.0.0.1", 0)
    )
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", counts
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
