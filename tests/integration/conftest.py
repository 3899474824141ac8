"""Fixtures of tests with real processes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scaletest.system.wake import Wake


@pytest.fixture
def wake() -> Iterator[Wake]:
    """What a worker's thread waits with."""
    wake = Wake()
    yield wake
    wake.close()
