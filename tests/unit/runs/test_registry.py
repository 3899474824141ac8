"""The registry of run types, and the folder that all of them share."""

import fcntl
from pathlib import Path
from typing import IO

import pytest

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.folder import LOCK, RunFolder
from scaletest.runs.places import find, new_path
from scaletest.runs.registry import TYPES, run_type, type_of


@pytest.mark.parametrize("name", TYPES)
def test_a_run_type_is_what_its_line_says(name: str) -> None:
    assert run_type(name).name == name


def test_a_run_of_another_version_says_what_is_unknown(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write("plan.json", {"kind": "endurance"})
    with pytest.raises(InvalidValue, match="no run type 'endurance'"):
        type_of(folder)


def test_files_are_replaced_whole_and_deleted_without_a_rest(tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write("plan.json", {"kind": "validation"})
    with pytest.raises(RuntimeError):
        folder.replace("records.jsonl", (_broken() for _ in range(2)))
    # expect that nothing of the file that broke off is seen, and that it goes with the run
    assert list(folder.lines("records.jsonl")) == []
    folder.append("records.jsonl", ["{}", "[]"])
    with (folder.path / "records.jsonl").open("a") as file:
        file.write("{")
    assert list(folder.lines("records.jsonl")) == ["{}\n", "[]\n"]
    with folder.locked(), pytest.raises(UsageError, match="is in use"):
        folder.remove()
    assert folder.remove() and not folder.path.exists()


def test_a_look_at_a_run_keeps_nobody_from_holding_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, flock = RunFolder.create(tmp_path / "run"), fcntl.flock
    with folder.locked():
        pass
    look = (folder.path / LOCK).open()
    flock(look, fcntl.LOCK_SH)

    def until_shared(file: IO[str], operation: int) -> None:
        # the look ends as soon as whoever wants the run has noticed it
        flock(file, operation)
        if operation & fcntl.LOCK_SH:
            look.close()

    monkeypatch.setattr("scaletest.runs.folder.fcntl.flock", until_shared)
    with folder.locked():
        assert look.closed and folder.in_use


def _broken() -> str:
    raise RuntimeError


def test_new_runs_lie_where_they_are_found(tmp_path: Path) -> None:
    home = {"XDG_DATA_HOME": str(tmp_path)}
    folder = RunFolder.create(new_path(home))
    folder.write("plan.json", {})
    assert find(folder.name[-4:], home).path == folder.path
    assert new_path(home, "chosen") == Path("chosen")
