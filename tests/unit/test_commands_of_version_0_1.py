"""The commands that the documentation of version 0.1.0 named: the program still understands each.

Nothing is run. A command that is refused on purpose stands in REFUSED with the reason.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from tests.conftest import call_here

LIST = Path(__file__).parents[1] / "data" / "v0.1" / "commands.txt"
COMMANDS = LIST.read_text("utf-8").splitlines()
# command -> why it is refused today
WITHOUT_UNIT = "a rate without a unit was one a minute"
REFUSED = {
    "scaletest autoscale recommend --seconds 240 --rate 2 --max-workers 20 --wait-target 60": (
        WITHOUT_UNIT
    ),
    "scaletest autoscale simulate --seconds 240 --rate 2": WITHOUT_UNIT,
}
# files that commands name; those of them that are read before the command runs hold a plan
FILES = ("FILE", "in.mkv", "key", "one.json")
PLAN = "seed: 1\n"


@pytest.fixture
def parsed_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands end where their work would begin; the files that they name lie here."""
    for name in FILES:
        (tmp_path / name).touch()
    (tmp_path / "plan.yaml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr(click.Command, "invoke", lambda command, context: 0)


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_is_still_understood(parsed_only: None, line: str) -> None:
    done = call_here(*shlex.split(line)[1:])
    assert (done.returncode == 2) == (line in REFUSED), done.stderr
    assert done.returncode in (0, 2), done.stderr


@pytest.mark.parametrize(
    "line", ["scaletest validat", "scaletest validate --limits 4", "scaletest report"]
)
def test_what_no_version_knew_is_refused(parsed_only: None, line: str) -> None:
    assert call_here(*shlex.split(line)[1:]).returncode == 2


def test_the_list_is_whole() -> None:
    """What is refused stands in the list, and no command stands there twice."""
    assert set(COMMANDS) >= set(REFUSED)
    assert len(COMMANDS) == len(set(COMMANDS)) > 100
    assert all(line.startswith("scaletest ") for line in COMMANDS)
