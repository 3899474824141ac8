"""Lifecycles among the stored runs: listed, shown, reported, exported, imported, deleted."""

import fcntl
import json
from pathlib import Path

import pytest

from scaletest.cli.main import run
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import LOCKS
from scaletest.runs.places import default_root
from tests.unit.lifecycles import submission, workload
from tests.unit.valid import FILES, fits

COUNT = 3


@pytest.fixture
def stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> LifecycleFolder:
    """A run that is complete, where `lifecycle run` keeps its own."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    runs = default_root({"XDG_DATA_HOME": str(tmp_path)})
    store = LifecycleFolder(runs / "2026-11-21T100000Z-aaaa")
    store.make()
    plan = LifecyclePlan("0a1b2c", "job", "n", COUNT, api_version="batch/v1", object_kind="Job")
    store.begin(plan, read_environment(["scaletest", "lifecycle", "run"]))
    names = list(plan.names())
    with store.open_submissions() as file:
        file.writelines(submission(name).to_json() + "\n" for name in names)
    store.keep({name: workload(name) for name in names}, project="")
    capsys.readouterr()
    assert run(["report", str(store.path), "--format", "json"]) == 0
    store.put("result.json", capsys.readouterr().out)
    return store


def test_every_file_fits_its_schema(stored: LifecycleFolder) -> None:
    assert fits(stored.path) == set(FILES)


def test_a_lifecycle_run_is_listed_with_its_kind_and_verdict(
    stored: LifecycleFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["runs", "list", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["run"], row["kind"], row["verdict"], row["problem"]) == (
        stored.path.name,
        "lifecycle",
        "PASS",
        "",
    )
    assert row["workload"] == "lifecycle of 3 Jobs in namespace n"
    assert run(["runs", "list"]) == 0
    assert "lifecycle  PASS" in capsys.readouterr().out


def test_a_lifecycle_run_is_shown_by_any_of_its_names(
    stored: LifecycleFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LAST", "aaaa", str(stored.path)):
        assert run(["report", name]) == 0
        assert "3 of 3 workloads reached finished" in capsys.readouterr().out
    assert run(["report", "LAST", "--format", "md"]) == 0
    assert "### ✅ PASS: 3 of 3 workloads reached finished" in capsys.readouterr().out


def test_commands_for_other_runs_refuse_a_lifecycle_and_name_the_right_one(
    stored: LifecycleFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(stored.path.iterdir())
    for command in (["validate", "--local", "--resume"], ["bench", "run", "--resume"]):
        assert run([*command, "LAST"]) == 2
        assert "it is a lifecycle run" in capsys.readouterr().err
    assert {path.name for path in stored.path.iterdir()} - {path.name for path in before} <= set(
        LOCKS
    )


def test_a_lifecycle_run_is_deleted_when_it_is_not_in_use(
    stored: LifecycleFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with (stored.path / ".sampler.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert run(["runs", "delete", "LAST", "--yes"]) == 2
        assert "in use" in capsys.readouterr().err
    assert run(["runs", "delete", "LAST", "--yes"]) == 0
    assert not stored.path.exists()
