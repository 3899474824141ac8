"""Names and notes of runs: given, found, listed, shown, exported; harmless when foreign."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from scaletest.model.errors import InvalidValue
from scaletest.model.labels import UNLABELLED, Labels
from scaletest.runs.folder import LABELS, RunFolder
from scaletest.validation.plan import Plan
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
    assert say("runs", "label", "validation-lock", "--name", "nightly").returncode == 0
    assert say("runs", "label", "ightly", "--note", " after the update\n").returncode == 0
    path = tmp_path / "scaletest" / "runs" / "validation-lock"
    assert RunFolder(path).labels == Labels("nightly", "after the update")
    assert (path / LABELS).stat().st_mode & 0o777 == 0o600
    shown = json.loads(say("report", "nightly", "--format", "json").stdout)
    assert shown["folder"] == str(path)
    assert say("runs", "label", "nightly", "--name", "").returncode == 0
    assert "no run 'nightly'" in say("report", "nightly").stderr
    assert RunFolder(path).labels == Labels("", "after the update")


def test_a_name_of_several_runs_is_refused_and_a_folder_goes_before_it(say: Say) -> None:
    for run in ("validation-pass", "lifecycle-burst"):
        assert say("runs", "label", run, "--name", "twice").returncode == 0
    refused = say("report", "twice")
    assert refused.returncode == 2
    assert "'twice' fits 2 runs: validation-pass, lifecycle-burst" in refused.stderr
    assert "give one of these names" in refused.stderr
    say("runs", "label", "lifecycle-burst", "--name", "validation-lock")
    assert "validate flock" in say("report", "validation-lock").stdout
    assert "did you mean twice?" in say("report", "twise").stderr


def test_what_is_no_label_is_refused_and_nothing_changes(say: Say, tmp_path: Path) -> None:
    for arguments in (
        ("--name", "LAST"),
        ("--name", "two words"),
        ("--note", "x" * 2001),
        (),
    ):
        assert say("runs", "label", "validation-lock", *arguments).returncode == 2
    path = tmp_path / "scaletest" / "runs" / "validation-lock"
    assert RunFolder(path).labels == UNLABELLED


def test_the_list_filters(say: Say) -> None:
    assert listed(say) == [
        "validation-pass",
        "validation-lock",
        "benchmark-fail",
        "lifecycle-burst",
    ]
    say("runs", "label", "benchmark-fail", "--name", "a-disk")
    table = say("runs", "list").stdout.splitlines()
    assert table[0].split()[-2:] == ["name", "workload"]
    assert any("a-disk" in line for line in table)
    assert listed(say, "--type", "validation") == ["validation-pass", "validation-lock"]
    assert listed(say, "--verdict", "fail") == ["validation-lock", "benchmark-fail"]
    assert listed(say, "--name", "a-*") == listed(say, "--name", "disk") == ["benchmark-fail"]
    assert "none of the 4 runs fits" in say("runs", "list", "--name", "other").stderr


def test_runs_that_one_command_begins_have_names_of_their_own() -> None:
    labels = Labels("tuned", "two settings")
    assert [labels.numbered(number) for number in (1, 2)] == [
        Labels("tuned-1", "two settings"),
        Labels("tuned-2", "two settings"),
    ]
    assert UNLABELLED.numbered(1) == UNLABELLED
    with pytest.raises(InvalidValue):
        Labels("x" * 127).numbered(1)


@pytest.mark.parametrize("run", ["validation-lock", "lifecycle-burst", "benchmark-fail"])
def test_headings_show_labels(say: Say, run: str) -> None:
    titles = [
        line for line in say("report", run, "--format", "html").stdout.splitlines() if "<h1" in line
    ]
    say("runs", "label", run, "--name", "nightly", "--note", "<b>warm</b>")
    text = say("report", run).stdout
    assert text.splitlines()[1:3] == ["called nightly", "<b>warm</b>"]
    page = say("report", run, "--format", "html").stdout
    assert "called nightly" in page and "&lt;b&gt;warm&lt;/b&gt;" in page
    assert [line for line in page.splitlines() if "<h1" in line] == titles
    comment = say("report", run, "--format", "md").stdout
    assert "called nightly" in comment and "\\<b\\>warm" in comment


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[1]",
        b'{"name": 5, "note": []}',
        b'{"name": "LAST", "note": "\\u001b[2J"}',
        b'{"schema_version": 99}',
        b" " * 100_000,
    ],
)
def test_damaged_or_foreign_labels_do_no_harm(say: Say, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "scaletest" / "runs" / "validation-lock"
    (path / LABELS).write_bytes(content)
    labels = RunFolder(path).labels
    assert labels.name == ""
    assert "\x1b" not in labels.note
    for arguments in (("runs", "list"), ("report", "LAST"), ("report", "validation-lock")):
        done = say(*arguments)
        assert done.returncode == 0 and "\x1b" not in done.stdout
    assert say("runs", "label", "validation-lock", "--name", "again").returncode == 0
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
    labels = Labels("nightly", "warm")
    folder = RunFolder.create(tmp_path / "run")
    with folder.locked():
        folder.begin(Plan(limit=1), {}, labels)
        assert folder.labels == labels
        # and they can change while it is measured
        folder.set_labels(replace(labels, name="other"))
    assert folder.labels.name == "other"
