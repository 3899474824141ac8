"""What the operator answers over HTTP."""

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


def test_metrics_are_served_on_ipv4_and_ipv6(port: int) -> None:
    with handlers.serve_metrics(port, CollectorRegistry()):
        for host in FAMILIES:
            assert get(f"http://{host}:{port}/metrics") == b""
    # expect the port free again
    with socket.create_server(("", port)):
        pass


def test_no_port_is_served_without_an_option() -> None:
    with handlers.serve_metrics(0, CollectorRegistry()):
        pass
