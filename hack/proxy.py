"""A TCP proxy that loses what it should forward, as a network does that drops packets: nobody is told."""

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
    """One connection through the proxy. silent: nothing is forwarded any more, neither data nor its end."""

    silent: bool = False


# Sees what is to be forwarded on a link, and whether the server sent it; may make the link silent before.
Look = Callable[[Link, bytes, bool], None]


def port_of(url: str) -> int:
    """The port in a URL."""
    port = urlsplit(url).port
    assert port is not None
    return port


class Proxy:
    """Forwards connections to a port of this machine, in a thread of its own. Use it as a context."""

    def __init__(self, target_port: int, look: Look = lambda link, data, from_server: None) -> None:
        self._target_port = target_port
        self._look = look
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.links: list[Link] = []
        # Kept, since a silent link stays open whatever becomes of its ends.
        self._ends: list[asyncio.StreamWriter] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)

    @property
    def url(self) -> str:
        """Of the server behind it, a Redis."""
        return f"redis://127.0.0.1:{self.port}/0"

    def silence_one(self, chance: random.Random) -> int:
        """Let a random link carry nothing any more; how many links that are, 0 where there was none."""
        links = [link for link in list(self.links) if not link.silent]
        if links:
            chance.choice(links).silent = True
        return min(1, len(links))

    def silence(self) -> int:
        """Let no link carry anything any more; how many there were."""
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
        self._loop.run_until_complete(asyncio.sleep(0.01))  # for what was aborted and cancelled to be closed
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link()
        try:
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
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
        self, link: Link, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, from_server: bool
    ) -> None:
        try:
            while data := await source.read(65536):
                self._look(link, data, from_server)
                if not link.silent:
                    sink.write(data)
                    await sink.drain()
        except OSError:
            pass  # the end of a connection, however it came
        if not link.silent:
            sink.close()
