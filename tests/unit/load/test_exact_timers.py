"""The event loop of the HTTP load: it waits as long as asyncio says, and hears its sockets."""

import asyncio
import select
import selectors
import socket
from typing import Any

import pytest

from scaletest.load import exact_timers

pytestmark = pytest.mark.skipif(
    not hasattr(selectors, "EpollSelector"), reason="there is no epoll here"
)


def test_a_time_out_is_not_rounded_to_milliseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    # given a selector, whose waiting is looked at
    asked: list[float] = []
    monkeypatch.setattr(
        select, "select", lambda read, write, wrong, timeout: asked.append(timeout) or ([], [], [])
    )
    with exact_timers.ExactSelector() as selector:
        assert selector.select(0.00123) == []
        # what must not wait does not
        assert selector.select(0) == [] and selector.select(-1.0) == []
        monkeypatch.setattr(exact_timers, "FD_SETSIZE", 0)
        # beyond what select takes, epoll waits by itself
        assert selector.select(0.00123) == []
    assert asked == [0.00123]


def test_a_socket_wakes_the_loop_before_its_timer() -> None:
    async def answer() -> bytes:
        reader, writer = await asyncio.open_connection(sock=near)
        asyncio.get_running_loop().call_later(0.001, far.sendall, b"there")
        try:
            return await asyncio.wait_for(reader.readexactly(5), 60)
        finally:
            writer.close()

    near, far = socket.socketpair()
    with far, asyncio.Runner(loop_factory=exact_timers.new_loop) as runner:
        answered: Any = runner.run(answer())
    assert answered == b"there"
