"""Folders of runs may hold files that others made."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from scaletest.model.errors import InvalidValue, UsageError
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
    (run,), _ = RunIndex(tmp_path / "runs").look(60.0)
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
    with pytest.raises(InvalidValue, match=r"more than 16777216 characters\n"):
        folder.read(RESULT)
    with pytest.raises(InvalidValue, match=r"more than 16777216 characters in a line"):
        list(folder.lines(RECORDS))


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../runs/one", "/etc", ".hidden", "one/../one", "one\0", "x" * 5000]
)
def test_no_name_leads_out_of_the_archive(tmp_path: Path, name: str) -> None:
    stored(tmp_path / "runs", "one")
    assert find_named(tmp_path / "runs", name) is None
    assert find_named(tmp_path / "runs", "one") is not None
