"""Libraries that only tests use, to check our own arithmetic against."""

import importlib
from types import ModuleType

from tests.conftest import missing


def oracle(name: str) -> ModuleType:
    """The module `name`; without it the test skips on a laptop and fails in CI."""
    try:
        return importlib.import_module(name)
    except ImportError:
        missing(f"the test oracle {name.partition('.')[0]}")
