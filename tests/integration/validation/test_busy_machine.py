"""A machine that is busy before a run: every run that measures on it says so, at once and in its
report.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from scaletest.observe.node.used_time import cpu_used_s
from tests.conftest import call, eventually, need
from tests.integration.services import running

BUSY = "before the run, other programs used "


@pytest.fixture
def busy() -> Iterator[None]:
    """Other programs on every core: whatever else runs, together they keep the machine busy."""
    cores = os.cpu_count() or 1
    with subprocess.Popen(
        [
            "sh",
            "-c",
            f"for core in $(seq {cores}); do {sys.executable} -c 'while True: pass' & done; wait",
        ],
        start_new_session=True,
    ) as process:
        try:
            eventually(lambda: cpu_used_s([process.pid]) > 0.1 * cores)
            yield
        finally:
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize(
    ("command", "key"),
    [
        ("bench run Fio --set runtime=1s --set size=1M", "notes"),
        (
            "saturate URL --load closed --step-time 1 --warm 0 --start 1 --maximum 2"
            " --progress plain",
            "warnings",
        ),
    ],
)
def test_a_run_says_that_the_machine_was_busy(tmp_path: Path, command: str, key: str) -> None:
    need("fio")
    run = str(tmp_path / "run")
    with running("--slots", "4", "--seconds", "0.05") as url:
        line = command.replace("URL", url).split()
        done = call(*line, "--run-dir", run, "--format", "json")
    assert f"warning: {BUSY}" in done.stderr
    assert any(note.startswith(BUSY) for note in json.loads(done.stdout)[key])
    assert BUSY in call("report", run, "--format", "text").stdout
