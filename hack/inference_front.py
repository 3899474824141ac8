"""Replicas of hack.inference behind a proxy, and their number by a call; for tests, on loopback.

python -m hack.inference_front [--port 0] [--balance turn] [--limit RATE] [--odd 'INDEX=OPTION']
    [options of a replica]
curl -X POST http://127.0.0.1:PORT/replicas/4

Prints its port; `/replicas/N` answers when N replicas are ready, and `/addresses` with their
addresses, a line each. How requests are spread over replicas:

turn        each request goes to the next replica
connection  each connection goes to the next replica, and stays there, as kube-proxy does it
sticky      all connections of a client go to one replica
--limit     the proxy passes on at most so many requests a second
--odd       an option of one replica, as in 1=--slow=2
"""

import argparse
import asyncio
import itertools
import json
import sys
from collections import deque
from collections.abc import Iterator
from functools import partial

from hack.inference import END, HttpServer, add_options, end_with_input
from scaletest.load.exact_timers import new_loop


class Replica:
    """A process, and the connections to it that are free."""

    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process, self.port = process, port
        self.free: deque[Upstream] = deque()

    async def connect(self) -> "Upstream":
        """Return a free connection, or a new one."""
        while self.free:
            upstream = self.free.pop()
            if not upstream.transport.is_closing():
                return upstream
        loop = asyncio.get_running_loop()
        _, upstream = await loop.create_connection(Upstream, "127.0.0.1", self.port)
        return upstream


class Upstream(asyncio.Protocol):
    """A connection to a replica, used by one request after another."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._client: Front | None = None
        self._tail = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def send(self, request: bytes, client: "Front", replica: Replica) -> None:
        self._client, self._replica, self._tail = client, replica, b""
        self.transport.write(request)

    def data_received(self, received: bytes) -> None:
        if self._client is None:
            return
        self._client.pass_on(received)
        self._tail = (self._tail + received)[-len(END) :]
        if self._tail == END:  # only the end of a response looks so: events end with empty lines
            client, self._client = self._client, None
            self._replica.free.append(self)
            client.ended()

    def connection_lost(self, error: Exception | None) -> None:
        if self._client is not None:
            self._client.transport.close()


class Fleet:
    """The replicas, their number, and who gets the next request."""

    def __init__(self, options: argparse.Namespace, arguments: list[str]) -> None:
        self.options, self._arguments = options, arguments
        self.replicas: list[Replica] = []
        self.turn: Iterator[int] = itertools.count()
        self.free_at = 0.0
        self._revivals: list[asyncio.Task[None]] = []
        self._scaling = asyncio.Lock()

    async def scale(self, count: int) -> None:
        """Start or end replicas; returns when all are ready."""
        async with self._scaling:
            while len(self.replicas) > count:
                ended = self.replicas.pop()
                assert ended.process.stdin
                ended.process.stdin.close()
                await ended.process.wait()
            while len(self.replicas) < count:
                self.replicas.append(await self._start(len(self.replicas)))
        # outside the lock, so that one that hangs keeps nobody from changing the number
        while not all([await _is_ready(replica.port) for replica in list(self.replicas)]):
            await asyncio.sleep(0.05)

    async def _start(self, index: int) -> Replica:
        odd = [text.partition("=")[2] for text in self.options.odd if text.startswith(f"{index}=")]
        line = ["-m", "hack.inference", "--name", f"replica-{index}", *self._arguments, *odd]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            *line,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout
        replica = Replica(process, int(await process.stdout.readline()))
        self._revivals.append(asyncio.create_task(self._revive(replica, index)))
        return replica

    async def _revive(self, replica: Replica, index: int) -> None:
        """Start a replica again when it has ended by itself."""
        await replica.process.wait()
        if replica in self.replicas:
            self.replicas[self.replicas.index(replica)] = await self._start(index)


async def _is_ready(port: int) -> bool:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False  # it crashed, and starts again
    writer.write(b"GET /health HTTP/1.1\r\n\r\n")
    status = await reader.readline()
    writer.close()
    return b" 200 " in status


class Front(HttpServer):
    """A client's connection to the proxy."""

    def __init__(self, fleet: Fleet) -> None:
        super().__init__()
        self._fleet, self._loop = fleet, asyncio.get_running_loop()
        self._pinned: Replica | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, head: bytes, body: bytes) -> None:
        fleet, path = self._fleet, head.decode("latin-1").split(" ", 2)[1]
        if path == "/addresses":
            lines = [f"http://127.0.0.1:{replica.port}\n" for replica in fleet.replicas]
            self.answer(200, "".join(lines))
            return
        if path.startswith("/replicas"):
            self._start(self._scale(path))
            return
        request = head + b"\r\n\r\n" + body
        if fleet.options.limit:
            # passed on in virtual time, one after the other
            fleet.free_at = max(fleet.free_at, self._loop.time()) + 1.0 / fleet.options.limit
            self._loop.call_at(fleet.free_at, lambda: self._start(self._forward(request)))
        else:
            self._start(self._forward(request))

    def pass_on(self, received: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(received)

    def ended(self) -> None:
        """Note that the response of a request is over."""

    def _start(self, doing: "asyncio.Future[None] | object") -> None:
        task: asyncio.Task[None] = self._loop.create_task(doing)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _scale(self, path: str) -> None:
        number = path.removeprefix("/replicas").strip("/")
        if number:
            await self._fleet.scale(int(number))
        addresses = [f"http://127.0.0.1:{replica.port}" for replica in self._fleet.replicas]
        self.answer(200, json.dumps(addresses))

    async def _forward(self, request: bytes) -> None:
        fleet = self._fleet
        if not fleet.replicas:
            self.answer(503, '{"error": "no replica"}')
            return
        replica = self._pinned
        if fleet.options.balance == "sticky":
            replica = fleet.replicas[0]
        elif replica is None or replica not in fleet.replicas:
            replica = fleet.replicas[next(fleet.turn) % len(fleet.replicas)]
            if fleet.options.balance == "connection":
                self._pinned = replica
        try:
            upstream = await replica.connect()
        except OSError:
            self.answer(502, '{"error": "the replica is gone"}')
            return
        upstream.send(request, self, replica)


async def serve(options: argparse.Namespace, arguments: list[str]) -> None:
    """Serve until standard input ends."""
    fleet = Fleet(options, arguments)
    await fleet.scale(options.replicas)
    server = await asyncio.get_running_loop().create_server(
        partial(Front, fleet), "127.0.0.1", options.port, backlog=4096
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await end_with_input().wait()
    server.close()
    # replicas end with their standard input, also while one that hangs is waited for
    replicas, fleet.replicas = fleet.replicas, []
    for replica in replicas:
        assert replica.process.stdin
        replica.process.stdin.close()
        await replica.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--balance", choices=("turn", "connection", "sticky"), default="turn")
    parser.add_argument("--limit", type=float, default=0.0)
    parser.add_argument("--odd", action="append", default=[])
    options, arguments = parser.parse_known_args()
    checked = argparse.ArgumentParser()
    add_options(checked)
    checked.parse_args(arguments)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(serve(options, arguments))


if __name__ == "__main__":
    main()
