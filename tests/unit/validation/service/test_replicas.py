"""Replicas that a command sets."""

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from scaletest.model.errors import ScaletestError, UsageError, WaitTimeout
from scaletest.validation.service.replicas import CommandReplicas
from tests.conftest import eventually

ROOT = Path(__file__).parents[4]


def command(file: Path) -> str:
    """Notes the number in a file."""
    return f"sh -c 'echo {{n}} >> {file}'"


def test_the_number_is_set_and_put_back_once(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    replicas = CommandReplicas(command(file), 3, 30.0)
    replicas.scale(1)
    replicas.scale(2)
    replicas.close()
    replicas.close()
    assert file.read_text().split() == ["1", "2", "3"]


def test_addresses_are_those_that_a_command_prints() -> None:
    listing = "sh -c 'echo http://a:1/; echo http://b:2; echo c:3; echo 10.0.0.4:80'"
    assert CommandReplicas("true {n}", 1, 30.0, listing).addresses() == {
        "a:1": "http://a:1",
        "b:2": "http://b:2",
        "c:3": "http://c:3",
        "10.0.0.4:80": "http://10.0.0.4:80",
    }
    for wrong in ("false", "echo [::1"):
        with pytest.raises(UsageError, match="could not be listed"):
            CommandReplicas("true {n}", 1, 30.0, wrong).addresses()


def test_nothing_is_put_back_that_was_not_changed(tmp_path: Path) -> None:
    CommandReplicas(command(tmp_path / "numbers"), 3, 30.0).close()
    assert not (tmp_path / "numbers").exists()


def test_the_number_is_put_back_after_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    code = (
        "import os, signal, sys; from scaletest.validation.service.replicas import CommandReplicas;"
        f" CommandReplicas({command(file)!r}, 3, 30.0).scale(2); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == -9
    eventually(lambda: file.read_text().split() == ["2", "3"])


@pytest.mark.parametrize(
    ("line", "error", "text"),
    [
        ("true", UsageError, r"has no \{n\}"),
        ("sh -c 'echo no node for {n} >&2; exit 4'", UsageError, "code 4: no node for 2"),
        ("/nowhere/scale {n}", UsageError, "no program /nowhere/scale"),
        ("sleep 10{n}", WaitTimeout, "did not end within"),
    ],
)
def test_a_command_that_fails_says_why(line: str, error: type[ScaletestError], text: str) -> None:
    with pytest.raises(error, match=text), closing(CommandReplicas(line, 1, 0.2)) as replicas:
        replicas.scale(2)


def test_what_a_command_leaves_running_does_not_hold_it_up(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    line = f"sh -c 'sleep 60 & echo $! >> {pid}; true {{n}}'"
    with closing(CommandReplicas(line, 1, 30.0)) as replicas:
        replicas.scale(2)
    for left in pid.read_text().split():
        os.kill(int(left), signal.SIGKILL)  # it is a replica, and still runs


def test_a_command_that_takes_too_long_ends_with_what_it_started(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    line = f"sh -c 'sleep 60 & echo $! >> {pid}; wait; true {{n}}'"
    with pytest.raises(WaitTimeout), closing(CommandReplicas(line, 1, 0.5)) as replicas:
        replicas.scale(2)
    left = [Path(f"/proc/{number}") for number in pid.read_text().split()]
    eventually(lambda: not any(process.exists() for process in left))
