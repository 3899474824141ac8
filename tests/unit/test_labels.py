"""Names, tags and notes of runs: given, found, listed, shown, exported; harmless when foreign."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from scaletest.model import Plan
from scaletest.model.errors import InvalidValue
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.folder import LABELS, RunFolder
from tests.conftest import call_here
from tests.unit.kept_runs import unpack

RUNS = ("validation-lock", "validation-pass", "lifecycle-burst", "benchmark-fail")

Say = Callable[..., CompletedProcess[str]]


@pytest.fixture
def say(tmp_path: Path) -> Say:
    """Calls the program as a user who has four runs."""

    def call(*arguments: str) -> CompletedProcess[str]:
        return call_here(*arguments, env={"XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"})

    for name in RUNS:
        unpack(name, tmp_path / "scaletest")
    return call


def listed(say: Say, *options: str) -> list[str]:
    """The runs that `runs list` shows with these options, in that order."""
    return [
        row["run"] for row in json.loads(say("runs", "list", "--format", "json", *options).stdout)
    ]


def test_a_run_is_found_by_what_it_is_called(say: Say, tmp_path: Path) -> None:
    assert say("runs", "name", "validation-lock", "nightly").returncode == 0
    assert say("runs", "tag", "nightly", "arc", "driver-1", "arc").returncode == 0
    assert say("runs", "note", "ightly", " after the update\n").returncode == 0
    path = tmp_path / "scaletest" / "runs" / "validation-lock"
    assert RunFolder(path).labels == Labels("nightly", ("arc", "driver-1"), "after the update")
    assert (path / LABELS).stat().st_mode & 0o777 == 0o600
    shown = json.loads(say("runs", "show", "nightly", "--format", "json").stdout)
    assert shown["labels"]["name"] == "nightly" and shown["folder"] == str(path)
    assert say("runs", "tag", "nightly", "arc", "--remove").stdout.endswith("tags driver-1\n")
    assert say("runs", "name", "nightly", "").returncode == 0
    assert "no run 'nightly'" in say("report", "nightly").stderr
    assert RunFolder(path).labels == Labels("", ("driver-1",), "after the update")


def test_a_name_of_several_runs_is_refused_and_a_folder_goes_before_it(say: Say) -> None:
    for run in ("validation-pass", "lifecycle-burst"):
        assert say("runs", "name", run, "twice").returncode == 0
    refused = say("report", "twice")
    assert refused.returncode == 2
    assert "'twice' fits 2 runs: validation-pass, lifecycle-burst" in refused.stderr
    assert "give one of these names" in refused.stderr
    say("runs", "name", "lifecycle-burst", "validation-lock")
    assert "validate flock" in say("report", "validation-lock").stdout
    assert "did you mean twice?" in say("report", "twise").stderr


def test_what_is_no_label_is_refused_and_nothing_changes(say: Say) -> None:
    for arguments in (
        ("name", "validation-lock", "LAST"),
        ("name", "validation-lock", "two words"),
        ("tag", "validation-lock", "good", "a\x1b[1m"),
        ("note", "validation-lock", "x" * 2001),
    ):
        assert say("runs", *arguments).returncode == 2
    shown = json.loads(say("runs", "show", "validation-lock", "--format", "json").stdout)
    assert shown["labels"] == UNLABELLED.to_dict()
    with pytest.raises(InvalidValue, match="tags is"):
        Labels(tags=tuple(map(str, range(33))))


def test_the_list_filters_and_sorts(say: Say) -> None:
    assert listed(say) == [
        "validation-pass",
        "validation-lock",
        "benchmark-fail",
        "lifecycle-burst",
    ]
    assert "tags" not in say("runs", "list").stdout.splitlines()[0]
    say("runs", "name", "benchmark-fail", "a-disk")
    say("runs", "tag", "benchmark-fail", "slow", "disk")
    say("runs", "tag", "validation-lock", "slow")
    table = say("runs", "list").stdout.splitlines()
    assert table[0].split()[-3:] == ["name", "tags", "workload"]
    assert any("a-disk  slow,disk" in line for line in table)
    assert listed(say, "--type", "validation") == ["validation-pass", "validation-lock"]
    assert listed(say, "--verdict", "fail") == ["validation-lock", "benchmark-fail"]
    assert listed(say, "--tag", "slow", "--tag", "disk") == ["benchmark-fail"]
    assert listed(say, "--name", "a-*") == listed(say, "--name", "disk") == ["benchmark-fail"]
    assert listed(say, "--sort", "name")[0] == "benchmark-fail"
    assert listed(say, "--sort", "verdict")[-1] in ("validation-lock", "benchmark-fail")
    assert listed(say, "--sort", "elapsed")[-1] == "validation-lock"
    assert "none of the 4 runs fits" in say("runs", "list", "--tag", "other").stderr


def test_runs_that_one_command_begins_have_names_of_their_own() -> None:
    labels = Labels("tuned", ("cpu",), "two settings")
    assert [labels.numbered(number) for number in (1, 2)] == [
        Labels("tuned-1", ("cpu",), "two settings"),
        Labels("tuned-2", ("cpu",), "two settings"),
    ]
    assert UNLABELLED.numbered(1) == UNLABELLED
    with pytest.raises(InvalidValue):
        Labels("x" * 127).numbered(1)


@pytest.mark.parametrize("run", ["validation-lock", "lifecycle-burst", "benchmark-fail"])
def test_headings_show_labels(say: Say, run: str) -> None:
    titles = [
        line for line in say("report", run, "-t", "html").stdout.splitlines() if "<h1" in line
    ]
    say("runs", "name", run, "nightly")
    say("runs", "tag", run, "arc", "b")
    say("runs", "note", run, "<b>warm</b>")
    text = say("report", run).stdout
    assert text.splitlines()[1:3] == ["called nightly · tags arc, b", "<b>warm</b>"]
    page = say("report", run, "-t", "html").stdout
    assert "called nightly · tags arc, b" in page and "&lt;b&gt;warm&lt;/b&gt;" in page
    assert [line for line in page.splitlines() if "<h1" in line] == titles
    comment = say("report", run, "-t", "md").stdout
    assert "called nightly · tags arc, b" in comment and "\\<b\\>warm" in comment


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b'{"name": 5, "tags": "a", "note": []}',
        b'{"name": "LAST", "tags": [null, "\\u001b[1m", {}], "note": "\\u001b[2J"}',
        b'{"schema_version": 99}',
        b" " * 100_000,
    ],
)
def test_damaged_or_foreign_labels_do_no_harm(say: Say, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scaletest" / "runs" / "validation-lock"
    (path / LABELS).write_bytes(content)
    labels = RunFolder(path).labels
    assert (labels.name, labels.tags) == ("", ())
    assert "\x1b" not in labels.note
    for arguments in (("runs", "list"), ("report", "LAST"), ("report", "validation-lock")):
        done = say(*arguments)
        assert done.returncode == 0 and "\x1b" not in done.stdout
    assert say("runs", "name", "validation-lock", "again").returncode == 0
    assert RunFolder(path).labels.name == "again"


@pytest.mark.parametrize(
    "command",
    [
        ("validate", "--local", "--dry-run"),
        ("saturate", "http://127.0.0.1:1/", "--dry-run"),
        ("bench", "run", "IPerf"),
        ("lifecycle", "run", "-n", "1", "--dry-run", "-o", "out"),
    ],
)
def test_what_is_no_name_is_refused_before_anything_begins(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    done = call_here(*command, "--name", "two words", env={"XDG_DATA_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (2, "")
    assert "the name of a run is 'two words'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_new_run_has_the_labels_that_it_was_given(tmp_path: Path) -> None:
    labels = Labels("nightly", ("a", "a", "b"), "warm")
    folder = RunFolder.create(tmp_path / "run")
    with folder.locked():
        folder.begin(Plan(limit=1), {}, labels)
        assert folder.labels == Labels("nightly", ("a", "b"), "warm")
        # and they can change while it is measured
        folder.relabel(lambda labels: replace(labels, name="other"))
    assert folder.labels.name == "other"
    assert folder.remove()
