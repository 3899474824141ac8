"""A new run type is one folder and one line of the registry: it is listed, shown, judged by
thresholds, drawn and compared.
"""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from scaletest.runs import registry
from scaletest.runs.folder import RunFolder
from tests.conftest import call_here, missing
from tests.unit import toy_run

Say = Callable[..., CompletedProcess[str]]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Calls the program of a user who has two toys."""
    line = registry.Registered(
        "tests.unit.toy_run", "tests.unit.toy_run:toy_report", "tests.unit.toy_run"
    )
    monkeypatch.setitem(registry.TYPES, "toy", line)
    root = tmp_path / "scaletest" / "runs"
    root.mkdir(parents=True)
    thresholds = ("jump<2s", "jump<1100ms")
    toy_run.write(RunFolder.create(root / "slow"), [1.2, 1.21, 1.19], thresholds)
    toy_run.write(RunFolder.create(root / "swift"), [1.0, 1.01, 0.99], thresholds)

    def call(*arguments: str) -> CompletedProcess[str]:
        return call_here(*arguments, env={"XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"})

    return call


def test_it_is_listed_shown_and_judged_by_its_thresholds(say: Say) -> None:
    rows = {row["run"]: row for row in json.loads(say("runs", "list", "--format", "json").stdout)}
    assert {name: row["verdict"] for name, row in rows.items()} == {"slow": "FAIL", "swift": "PASS"}
    assert {row["kind"] for row in rows.values()} == {"toy"}
    assert "1 of 2 thresholds not met: jump<1100ms: 1200 ms" in say("runs", "show", "slow").stdout


def test_it_is_drawn(say: Say, tmp_path: Path) -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    done = say("report", "swift", "-o", str(tmp_path / "toy.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_compared(say: Say) -> None:
    worse, same = say("compare", "swift", "slow"), say("compare", "swift", "swift")
    assert (worse.returncode, same.returncode) == (3, 0), worse.stdout + worse.stderr
    assert "jump" in worse.stdout
