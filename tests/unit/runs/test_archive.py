"""Runs as folders and as files: what goes out comes in again, and nothing hostile does."""

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from scaletest.model import NodeSample
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.labels import Labels
from scaletest.runs.environment import read_environment
from scaletest.runs.folder import ENVIRONMENT, RECORDS, RESULT, STEPS, RunFolder
from scaletest.runs.places import find, find_runs
from scaletest.validation.folder import ValidationFolder
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.plan import Plan
from tests.unit.made import measured


def make(path: Path, cycles: dict[int, float] | None = None, **measuring: Any) -> ValidationFolder:
    """A run on disk as a validation leaves it."""
    cycles = cycles or {1: 0.1, 2: 0.1}
    plan = Plan(
        limit=max(cycles), seconds=cycles[1], queue="q", repeats=measuring.get("repeats", 1)
    )
    folder = ValidationFolder.create(path)
    folder.begin(plan, read_environment(["scaletest", "validate"]), Labels(note="example"))
    measurements, records = measured(cycles, **measuring)
    for measurement in measurements:
        folder.add(measurement, records[measurement.key])
    folder.add_samples([sample(at_s) for at_s in (1.0, 2.0)])
    folder.write(
        RESULT, evaluate(plan, measurements, records, random.Random(1), elapsed_s=3.5).to_dict()
    )
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> ValidationFolder:
    return make(tmp_path / "run", count=5)


def sample(at_s: float) -> NodeSample:
    return NodeSample(
        "n",
        "w",
        at_s,
        1.0,
        {"cpu": {"user": 1.5}, "device:0": {"energy_j": 7.0}},
    )


def test_samples_are_kept_and_replaced(folder: ValidationFolder) -> None:
    folder.add_samples([sample(3.0)])
    assert [sample.at_s for sample in folder.load().samples] == [1.0, 2.0, 3.0]
    folder.replace_samples([sample(3.0)])
    assert folder.load().samples == [sample(3.0)]
    # what a killed run had begun to write is not what the next one goes on from
    with (folder.path / "samples.jsonl").open("a") as file:
        file.write('{"node": "n')
    folder.forget_unfinished(folder.load())
    folder.add_samples([sample(4.0)])
    assert folder.load().samples == [sample(3.0), sample(4.0)]


def test_a_run_is_found_by_name_end_of_name_path_and_as_last(tmp_path: Path) -> None:
    home = {"XDG_DATA_HOME": str(tmp_path)}
    root = tmp_path / "scaletest" / "runs"
    assert find_runs(root) == []
    folders = [make(root / name, count=3) for name in ("b-one", "a-two", "c-one")]
    for index, folder in enumerate(folders):
        environment = json.loads((folder.path / "environment.json").read_text())
        (folder.path / "environment.json").write_text(
            json.dumps({**environment, "began": f"2026-01-0{index + 1}"})
        )
    (root / ".import-x").mkdir()
    (root / ".import-x" / "plan.json").write_text("{}")
    (root / "empty").mkdir()
    assert [run.name for run in find_runs(root)] == ["b-one", "a-two", "c-one"]
    assert find("LAST", home).name == "c-one"
    assert find("two", home).name == "a-two"
    assert find(str(root / "b-one"), {}).name == "b-one"
    for wrong, problem in (
        ("one", "fits 2 runs"),
        ("typo", "there is no run"),
        ("", "there is no run"),
    ):
        with pytest.raises(UsageError, match=problem):
            find(wrong, home)


def test_a_run_in_use_is_not_deleted(folder: ValidationFolder) -> None:
    assert not folder.in_use
    with folder.locked():
        assert folder.in_use
        with pytest.raises(UsageError, match="in use"):
            RunFolder(folder.path).remove()
    assert len(folder.load().measurements) == 4
    assert folder.remove()
    assert not folder.path.exists()


def test_deleting_leaves_what_is_not_the_runs(folder: ValidationFolder) -> None:
    folder.log.write_text("x")
    (folder.path / "notes").write_text("mine")
    assert not folder.remove()
    assert [path.name for path in folder.path.iterdir()] == ["notes"]


def test_a_step_that_is_listed_twice_is_not_measured_twice(folder: ValidationFolder) -> None:
    steps = folder.path / "steps.jsonl"
    steps.write_text(steps.read_text() * 2)
    with pytest.raises(InvalidValue, match="contains a step twice"):
        folder.load()


@pytest.mark.parametrize("name", (ENVIRONMENT, STEPS, RECORDS, RESULT))
def test_files_that_cannot_be_used_are_errors_of_the_user(
    folder: ValidationFolder, name: str
) -> None:
    # given a folder in place of a file, when the run is read, expect a reason and no traceback
    (folder.path / name).unlink()
    (folder.path / name).mkdir()
    with pytest.raises(UsageError, match="run run cannot be read: not a regular file"):
        folder.load()


def test_a_run_whose_folder_is_gone_cannot_be_written(folder: ValidationFolder) -> None:
    measurements, records = measured({1: 0.1}, count=5)
    shutil.rmtree(folder.path)
    for write in (
        lambda: folder.write(RESULT, {}),
        lambda: folder.add(measurements[0], records[1, 0]),
    ):
        with pytest.raises(UsageError, match="run run cannot be written: No such file"):
            write()
    with pytest.raises(UsageError, match="run run cannot be locked"), folder.locked():
        pass


@pytest.mark.parametrize("damaged", [False, True])
def test_a_page_that_a_user_keeps_beside_a_run_is_not_deleted_with_it(
    tmp_path: Path, damaged: bool
) -> None:
    folder = make(tmp_path / "run", count=3)
    if damaged:
        (folder.path / "plan.json").write_text("{")
    (folder.path / "report.html").write_text("mine")
    assert not RunFolder(folder.path).remove()
    assert [path.name for path in folder.path.iterdir()] == ["report.html"]
