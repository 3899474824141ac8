"""What commands show on a terminal of 80 columns: a line ends between words, not within one."""

import os
import pty
import re
import struct
import subprocess
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from tests.conftest import program
from tests.unit.kept_runs import KEPT_RUNS, unpack

COLUMNS = 80
STYLE = re.compile(r"\x1b\[[0-9;]*m")
COMMANDS = [
    *(("report", name) for name in KEPT_RUNS),
    ("compare", "validation-pass", "validation-lock"),
    ("runs", "list"),
    ("validate", "--limit", "16", "--threshold", "run.p95<9s", "--dry-run", "--", "sleep", "0.1"),
    ("saturate", "http://127.0.0.1:9/", "--latency-limit", "p95<200ms", "--dry-run"),
    ("lifecycle", "--help"),
    ("size", "--rate", "24/s", "--latency", "500ms"),
    ("bench", "explain", "IPerf"),
    ("bench", "run", "Fio", "--set", "foo=1"),
    ("validate", "--limit", "2", "--scale", "2", "--", "sleep", "0.1"),
    ("validate", "--threshold", "run.p95<5", "--", "sleep", "0.1"),
    ("queue", "show", "--redis-url", "redis://127.0.0.1:9/0"),
    ("validate", "--help"),
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's data, with stored runs."""
    data = tmp_path_factory.mktemp("d")
    for name in KEPT_RUNS:
        unpack(name, data / "scaletest")
    return data


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_no_word_is_broken(arguments: tuple[str, ...], home: Path) -> None:
    lines = shown_on_terminal(arguments, home)
    assert lines
    # what the terminal would break: but for a word without a blank, and a command to be copied
    too_wide = [line for line in lines if len(line) > COLUMNS and " " in line.strip()]
    assert [line for line in too_wide if not line.strip().startswith("scaletest ")] == []


def shown_on_terminal(arguments: tuple[str, ...], home: Path) -> list[str]:
    """The lines that a command writes to a terminal of that width."""
    ours, theirs = pty.openpty()
    ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    environment = {**os.environ, "XDG_DATA_HOME": str(home), "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    environment.pop("COLUMNS", None)
    with subprocess.Popen(
        program(*arguments), stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    ):
        os.close(theirs)
        written = bytearray()
        try:
            while chunk := os.read(ours, 4096):
                written += chunk
        except OSError:  # nobody holds the terminal open any more
            os.close(ours)
    return STYLE.sub("", written.decode().replace("\r", "")).splitlines()
