"""Workloads in Python: how one is named."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any

from scaletest.model.errors import UsageError

# PACKAGE.MODULE:NAME, or FILE.py:NAME.
REFERENCE = re.compile(r"(?:[A-Za-z_][\w.]*|[^:]*[^/:]\.py):[A-Za-z_][\w.]*")


def reference(workload: Callable[..., Any]) -> str:
    """The name by which a worker finds a class or function: MODULE:NAME, or FILE.py:NAME for one of
    the program that runs. UsageError for one that no other process can import.
    """
    module, name = workload.__module__, workload.__qualname__
    if module == "__main__":
        module = str(getattr(sys.modules[module], "__file__", ""))
    text = f"{module}:{name}"
    if not REFERENCE.fullmatch(text):
        raise UsageError(
            f"{name} cannot be imported by another process",
            hint="write it into a module or file of its own, outside of any function",
        )
    return text
