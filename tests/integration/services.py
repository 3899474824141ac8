"""A service of known capacity, and what a run against one may say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@contextmanager
def running(*arguments: str) -> Iterator[str]:
    """A service of known capacity; its URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", "hack.service", *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/"
    finally:
        process.kill()
        process.communicate()


def check_verdict(code: int, result: dict[str, Any]) -> None:
    """PASS, or INVALID for what else the machine did meanwhile: a tester that was late, or too little to tell."""
    assert (code, result["verdict"]["kind"]) in ((0, "PASS"), (4, "INVALID")), result["verdict"]
