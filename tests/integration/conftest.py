"""Fixtures of tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scaletest.broker import EmbeddedServer, Queues, connect


@pytest.fixture
def own() -> Iterator[EmbeddedServer]:
    """A server on a port with queue `q`, which a test may stop, freeze, or put a proxy before."""
    with EmbeddedServer(tcp=True) as server:
        Queues(connect(server.url)).add("q")
        yield server
