"""Folders of runs may hold files that others made, and their index reads only what has changed."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.labels import Labels
from scaletest.runs import run_index
from scaletest.runs.folder import (
    ENVIRONMENT,
    LABELS,
    LOCK,
    PROGRESS,
    RECORDS,
    RESULT,
    SAMPLES,
    STEPS,
    RunFolder,
)
from scaletest.runs.places import find_named
from scaletest.runs.run_index import RunIndex
from tests.unit import made_runs as runs


def stored(root: Path, name: str) -> None:
    runs.stored(root / name, runs.LIMITED, runs.limited_steps())


def link_to_zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [os.mkfifo, link_to_zero])
@pytest.mark.parametrize(
    "name", [ENVIRONMENT, STEPS, RECORDS, SAMPLES, RESULT, LABELS, LOCK, PROGRESS]
)
def test_nothing_but_regular_files_is_opened(
    tmp_path: Path, name: str, make: Callable[[Path], None]
) -> None:
    stored(tmp_path / "runs", "one")
    path = tmp_path / "runs" / "one" / name
    path.unlink(missing_ok=True)
    make(path)
    (run,) = RunIndex(tmp_path / "runs").runs()
    assert (run.run, run.in_use) == ("one", False)
    folder = RunFolder(path.parent)
    for read in (folder.read, lambda name: list(folder.lines(name))):
        with pytest.raises(UsageError, match="not a regular file"):
            read(name)


def test_a_file_or_a_line_without_end_is_refused(tmp_path: Path) -> None:
    stored(tmp_path / "runs", "one")
    folder = RunFolder(tmp_path / "runs" / "one")
    for name in (RESULT, RECORDS):
        with (folder.path / name).open("wb") as file:
            file.truncate(1 << 30)
    with pytest.raises(InvalidValue, match=r"more than 16777216 characters$"):
        folder.read(RESULT)
    with pytest.raises(InvalidValue, match=r"a line of it has more than 16777216"):
        list(folder.lines(RECORDS))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../runs/one", "/etc", ".hidden", "one/../one", "one\0", "x" * 5000]
)
def test_no_name_leads_out_of_the_archive(tmp_path: Path, name: str) -> None:
    stored(tmp_path / "runs", "one")
    assert find_named(tmp_path / "runs", name) is None
    assert find_named(tmp_path / "runs", "one") is not None


def test_the_index_reads_again_what_has_changed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "runs"
    stored(root, "one")
    stored(root, "two")
    index, reads = RunIndex(root), list[str]()
    read = run_index.read_listed_run
    monkeypatch.setattr(
        run_index,
        "read_listed_run",
        lambda folder: reads.append(folder.name) or read(folder),
    )
    shown = index.runs()
    assert [run.run for run in shown] == sorted(reads) == ["one", "two"]
    assert shown[0].curve == [] and shown[0].workload == shown[1].workload
    # when nothing changes, expect that nothing is read
    reads.clear()
    assert index.runs() == shown and reads == []
    # when one is labelled and one is deleted, expect both in the next look
    folder = find_named(root, "two")
    folder.set_labels(Labels(note="arc"))
    gone = find_named(root, "one")
    assert gone is not None and gone.remove()
    shown = index.runs()
    assert [(run.run, run.note) for run in shown] == [("two", "arc")] and reads == ["two"]
    # while it is measured, and when its process was killed, expect what is true now
    with folder.locked():
        assert [run.verdict for run in index.runs()] == ["RUNNING"]
    assert [run.verdict for run in index.runs()] == ["FAIL"]


def test_a_name_that_is_not_utf_8_is_listed_as_text(tmp_path: Path) -> None:
    stored(tmp_path / "runs", os.fsdecode(b"\xff"))
    (run,) = RunIndex(tmp_path / "runs").runs()
    assert (run.run, run.folder) == (r"\udcff", rf"{tmp_path}/runs/\udcff")


def test_damaged_runs_and_strangers_are_no_reason_to_fail(tmp_path: Path) -> None:
    root = tmp_path / "runs"
    (root / "damaged").mkdir(parents=True)
    (root / "damaged" / "plan.json").write_text("{")
    (root / "a file").write_text("")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "plan.json").write_text("{}")
    (root / "odd").mkdir()
    (root / "odd" / "plan.json").write_text(json.dumps({"schema_version": 1}))
    shown = RunIndex(root).runs()
    assert [run.run for run in shown] == ["damaged", "odd"]
    assert "not valid JSON" in shown[0].problem
    assert RunIndex(tmp_path / "nowhere").runs() == []
