"""A service with a known capacity: a fixed number of slots and a service time.

For tests, on loopback.

python -m hack.service [--slots 8] [--seconds 0.01] [--fail STATUS] [--port 0] [--log]

Each request takes the slot that is free first, for exactly its service time. Slots are computed in
virtual time, so the capacity is slots / seconds even when this process wakes up late. The header
Server-Time of the answer has the seconds that the request waited and was served; --log also prints
them. The service prints its port.
"""

import argparse
import asyncio
import heapq
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable

from scaletest.load.exact_timers import new_loop


class Slots:
    """Slots in virtual time."""

    def __init__(self, count: int, seconds: float) -> None:
        self._free = [0.0] * count
        self._seconds = seconds

    def take(self, now: float) -> float:
        """Take the slot that is free first, and return when the request ends."""
        ends = max(now, heapq.heappop(self._free)) + self._seconds
        heapq.heappush(self._free, ends)
        return ends


class RequestReader(asyncio.Protocol, ABC):
    """HTTP/1.1 as far as a tester needs it: one request after another on a kept connection."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, received: bytes) -> None:
        self._received += received
        while True:
            head, end, rest = self._received.partition(b"\r\n\r\n")
            if not end:
                return
            lower = head.lower()
            at = lower.find(b"content-length:")
            size = int(lower[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            if len(rest) < size:
                return
            self._received = rest[size:]
            self.serve(head, rest[:size])

    @abstractmethod
    def serve(self, head: bytes, body: bytes) -> None:
        """Answer a request, now or later."""


class HttpConnection(RequestReader):
    """Answers a request when its slot is free again."""

    def __init__(self, slots: Slots, fail: int, token: str, log: bool) -> None:
        super().__init__()
        self._slots, self._fail, self._token, self._log = slots, fail, token, log
        self._loop = asyncio.get_running_loop()

    def serve(self, head: bytes, body: bytes) -> None:
        if self._token and b"Bearer " + self._token.encode() not in head:
            self._answer(401, 0.0)
            return
        if self._fail:
            self._answer(self._fail, 0.0)
            return
        now = self._loop.time()
        ends = self._slots.take(now)
        self._loop.call_at(ends, self._answer, 200, ends - now)

    def _answer(self, status: int, took_s: float) -> None:
        if self._log:
            print(f"took {1000 * took_s:.3f} ms", flush=True)
        if not self.transport.is_closing():
            head = (
                f"HTTP/1.1 {status} X\r\nContent-Length: 2\r\nServer-Time:"
                f" {took_s:.6f}\r\nServer-Pod: pod-0\r\n\r\nok"
            )
            self.transport.write(head.encode())


async def serve(host: str, port: int, make: Callable[[], HttpConnection]) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(make, host, port, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=0.01)
    parser.add_argument("--fail", type=int, default=0)
    parser.add_argument("--token", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", action="store_true")
    options = parser.parse_args()
    slots = Slots(options.slots, options.seconds)

    def accept() -> HttpConnection:
        return HttpConnection(slots, options.fail, options.token, options.log)

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(serve(options.host, options.port, accept))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
