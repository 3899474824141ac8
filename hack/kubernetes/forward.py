"""Forwards a port of this machine's loopback to the same port of the loopback inside a box.

forward.py PORT NETWORK-NAMESPACE

A socket belongs to the network namespace in which it was created, so the process listens first and
then moves inside.
"""

import asyncio
import contextlib
import ctypes
import socket
import sys
from pathlib import Path

CLONE_NEWNET = 0x40000000
CHUNK = 1 << 16


def main() -> None:
    port, namespace = int(sys.argv[1]), sys.argv[2]
    listener = socket.create_server(("127.0.0.1", port), backlog=128)
    # os.setns exists only since Python 3.12
    with Path(namespace).open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "the namespace cannot be entered", namespace)
    asyncio.run(_serve(listener, port))


async def _serve(listener: socket.socket, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
        for each in (writer, inner_writer):
            each.close()

    async with await asyncio.start_server(forward, sock=listener) as server:
        await server.serve_forever()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side ends; the other direction goes on."""
    with contextlib.suppress(OSError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


if __name__ == "__main__":
    main()
