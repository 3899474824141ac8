"""A TCP proxy that can silently stop forwarding, like a network that drops packets."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy.

    silent: nothing is forwarded any more, neither data nor the end.
    """

    silent: bool = False


# Called before a chunk is forwarded, with whether the server sent it; may silence the link.
Look = Callable[[Link, bytes, bool], None]


def port_of(url: str) -> int:
    """Return the port of a URL."""
    port = urlsplit(url).port
    assert port is not None
    return port


class Proxy:
    """Forwards connections to a port of this machine, in a thread; a context manager."""

    def __init__(
        self, target_port: int, look: Look = lambda link, chunk, from_server: None
    ) -> None:
        self._target_port = target_port
        self._look = look
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.links: list[Link] = []
        # Kept here, so that a silent link stays open when its ends are gone.
        self._ends: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        """The URL of the Redis behind the proxy."""
        return f"redis://127.0.0.1:{self.port}/0"

    def silence_one(self, chance: random.Random) -> int:
        """Silence a random link; returns the number of silenced links, 0 when there was none."""
        links = [link for link in list(self.links) if not link.silent]
        if links:
            chance.choice(links).silent = True
        return min(1, len(links))

    def silence(self) -> int:
        """Silence all links; returns their number."""
        links = [link for link in list(self.links) if not link.silent]
        for link in links:
            link.silent = True
        return len(links)

    def __enter__(self) -> Proxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        self._loop.run_until_complete(asyncio.start_server(self._serve, sock=self._listener))
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        for end in self._ends:
            end.transport.abort()
        self._loop.run_until_complete(asyncio.sleep(0.01))  # lets aborted transports close
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link()
        try:
            server_reader, server_writer = await asyncio.open_connection(
                "127.0.0.1", self._target_port
            )
        except OSError:
            writer.transport.abort()
            return
        self.links.append(link)
        self._ends += [writer, server_writer]
        try:
            await asyncio.gather(
                self._forward(link, reader, server_writer, from_server=False),
                self._forward(link, server_reader, writer, from_server=True),
            )
        except asyncio.CancelledError:
            return  # the proxy ends
        self.links.remove(link)

    async def _forward(
        self,
        link: Link,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        *,
        from_server: bool,
    ) -> None:
        try:
            while chunk := await source.read(65536):
                self._look(link, chunk, from_server)
                if not link.silent:
                    sink.write(chunk)
                    await sink.drain()
        except OSError:
            pass  # a reset is an end of the connection like any other
        if not link.silent:
            sink.close()
