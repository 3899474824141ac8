"""What the operator answers over HTTP."""

import asyncio
import socket
import urllib.request

import pytest
from prometheus_client import CollectorRegistry

from scaletest.benchmarks.operator import handlers

FAMILIES = ["127.0.0.1", *(["[::1]"] if socket.has_dualstack_ipv6() else [])]


@pytest.fixture
def port() -> int:
    with socket.create_server(("", 0)) as listener:
        return int(listener.getsockname()[1])


def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return bytes(answer.read())


def test_metrics_and_health_are_served_on_ipv4_and_ipv6(port: int) -> None:
    # when metrics are served
    with handlers.serve_metrics(port, CollectorRegistry()):
        for host in FAMILIES:
            assert get(f"http://{host}:{port}/metrics") == b""

    # and then the health, of a loop
    async def asked() -> list[bytes]:
        async with handlers.serve_health(port):
            return [
                await asyncio.to_thread(get, f"http://{host}:{port}/healthz") for host in FAMILIES
            ]

    assert asyncio.run(asked()) == [b"{}"] * len(FAMILIES)
    # expect the port free again each time
    with socket.create_server(("", port)):
        pass


def test_an_event_loop_that_hangs_is_not_healthy(port: int) -> None:
    async def hang() -> None:
        async with handlers.serve_health(port):
            # the loop itself waits for the answer
            with pytest.raises(TimeoutError):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=0.2)

    asyncio.run(hang())


def test_no_port_is_served_without_an_option() -> None:
    async def asked() -> None:
        async with handlers.serve_health(0):
            pass

    with handlers.serve_metrics(0, CollectorRegistry()):
        asyncio.run(asked())
