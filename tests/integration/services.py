"""A service of known capacity, what a run against one may say, and commands that need no process of their own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from scaletest.cli.main import run

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


def called(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
    """Exit code, output and errors of a command in this process: a new one takes a third of a second to begin."""
    out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment.items():
            patch.setenv(name, value)
        code = run(list(arguments))
    for stream in (out, err):
        stream.seek(0)
    shown, told = out.read(), err.read()
    assert "Traceback" not in told
    return code, shown, told
