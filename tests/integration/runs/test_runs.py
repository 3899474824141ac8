"""Stored runs on the command line: list, show, share, delete, compare."""

import json
import os
import pty
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scaletest.report import formats
from scaletest.runs.folder import RESULT, RunFolder
from scaletest.validation.folder import ValidationFolder
from tests.conftest import call, call_here, program
from tests.unit.runs.test_archive import make
from tests.unit.valid import checked

SLOW = {1: 0.1, 2: 0.1, 4: 0.13}
FAST = {1: 0.1, 2: 0.1, 4: 0.1}


class Home:
    """A user with runs of their own."""

    def __init__(self, path: Path) -> None:
        self.environment = {**os.environ, "XDG_DATA_HOME": str(path), "COLUMNS": "200"}
        self.runs = path / "scaletest" / "runs"

    def make(
        self, name: str, cycles: dict[int, float], began: str, **options: Any
    ) -> ValidationFolder:
        folder = make(self.runs / name, cycles, **options)
        path = folder.path / "environment.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "began": began}))
        return folder

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        """Exit code and what is shown."""
        done = call_here(*arguments, env=self.environment)
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "data")
    home.make("2026-01-01-base", FAST, "2026-01-01T10:00:00+00:00")
    home.make("2026-01-02-slow", SLOW, "2026-01-02T10:00:00+00:00", seed=2)
    return home


def test_runs_list_shows_all_runs(home: Home, tmp_path: Path) -> None:
    (home.runs / "broken").mkdir()
    (home.runs / "broken" / "plan.json").write_text("{")
    code, out, _ = home("runs", "list")
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == [
        "run",
        "broken",
        "2026-01-01-base",
        "2026-01-02-slow",
    ]
    assert "cannot be read: plan.json of run broken is not valid JSON" in lines[1]
    assert lines[2].split()[1:] == [
        "2026-01-01",
        "10:00:00Z",
        "validation",
        "PASS",
        *("4.0x", "at", "4"),
        "4",
        "-",
        "sleep",
        "0.1",
    ]
    assert "FAIL" in lines[3]
    rows = json.loads(home("runs", "list", "--format", "json")[1])
    assert [row["verdict"] for row in rows] == [None, "PASS", "FAIL"]
    assert rows[1]["steps"] == [1, 2, 4]
    code, out, err = Home(tmp_path / "nobody")("runs", "list")
    assert (code, out, "no run in" in err) == (0, "", True)


def test_a_run_that_is_measured_is_listed_as_running_and_not_deleted(home: Home) -> None:
    with RunFolder(home.runs / "2026-01-02-slow").locked():
        assert "RUNNING" in home("runs", "list")[1].splitlines()[2]
        assert [
            row["verdict"] for row in json.loads(home("runs", "list", "--format", "json")[1])
        ] == [
            "PASS",
            "RUNNING",
        ]
        code, _, err = home("runs", "delete", "slow", "--yes")
    assert (code, "is in use" in err) == (2, True)
    assert len(json.loads(home("runs", "list", "--format", "json")[1])) == 2


@pytest.mark.parametrize("command", [("report", "--format", form) for form in formats.texts()])
def test_a_run_that_is_measured_is_shown_as_running(home: Home, command: tuple[str, ...]) -> None:
    # given a run that was interrupted, goes on, and has one of two steps
    folder = home.make("2026-01-03-half", {1: 0.1, 2: 0.1}, "2026-01-03T10:00:00+00:00")
    steps = folder.path / "steps.jsonl"
    steps.write_text(steps.read_text().splitlines(keepends=True)[0])
    folder.write(
        RESULT, {**json.loads((folder.path / "result.json").read_text()), "interrupted": "Ctrl-C"}
    )
    with folder.locked():
        code, out, _ = home(*command, "half")
    # expect nobody to be told that it is a failure, or to run it again
    assert code == 0
    assert "INVALID" not in out and "--resume" not in out
    assert ("still being measured" in out) != (command[-1] == "csv")
    # and once it has ended, what it is
    assert "RUNNING" not in home(*command, "half")[1]


def test_a_report_prints_the_summary_or_the_result(home: Home) -> None:
    code, out, _ = home("report", "base")
    assert code == 0
    assert "PASS" in out
    code, out, _ = home("report", "LAST", "--format", "json")
    shown = json.loads(out)
    assert checked(shown)["verdict"]["kind"] == "FAIL"
    stored = json.loads((home.runs / "2026-01-02-slow" / "result.json").read_text())
    assert shown["steps"] == checked(stored)["steps"]
    assert home("report", "nothing")[0] == 2


def test_a_copied_run_is_shown_compared_and_deleted(home: Home, tmp_path: Path) -> None:
    # given a run of somebody else, by tar
    other = Home(tmp_path / "other")
    file = tmp_path / "run.tar"
    other.runs.mkdir(parents=True)
    subprocess.run(["tar", "-C", home.runs, "-cf", file, "2026-01-01-base"], check=True)
    subprocess.run(["tar", "-C", other.runs, "-xf", file], check=True)
    # expect that it says the same as where it was measured
    ours, theirs = (
        json.loads(user("report", "base", "--format", "json")[1]) for user in (home, other)
    )
    assert (ours.pop("folder"), theirs.pop("folder")) == (
        str(home.runs / "2026-01-01-base"),
        str(other.runs / "2026-01-01-base"),
    )
    assert ours == theirs
    assert home("compare", str(other.runs / "2026-01-01-base"), "base")[0] == 0
    # nobody is there to be asked
    code, _, err = other("runs", "delete", "base")
    assert (code, "--yes" in err, str(other.runs / "2026-01-01-base") in err) == (2, True, True)
    assert other("runs", "delete", "base", "base", "--yes")[1] == "2026-01-01-base: deleted\n"
    assert list(other.runs.iterdir()) == []


@pytest.mark.parametrize(("answer", "left"), [(b"n\n", 2), (b"y\n", 1)])
def test_runs_delete_asks_for_confirmation_on_a_terminal(
    home: Home, answer: bytes, left: int
) -> None:
    ours, theirs = pty.openpty()
    line = program("runs", "delete", "base")
    with subprocess.Popen(
        line, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=home.environment
    ) as process:
        os.close(theirs)
        os.write(ours, answer)
        _, err = process.communicate(timeout=60)
    os.close(ours)
    assert (process.returncode, b"Delete " + bytes(home.runs / "2026-01-01-base") in err) == (
        0,
        True,
    )
    assert len(list(home.runs.iterdir())) == left


def test_compare_finds_the_slower_run(home: Home) -> None:
    code, out, _ = home("compare", "base", "LAST")
    assert code == 3
    assert out.splitlines()[-2].startswith(
        "FAIL  worse by more than 5 % in 1 of 3 measures: throughput (workers 4) 0.769"
    )
    code, out, _ = home("compare", "base", "slow", "--format", "json")
    comparison = checked(json.loads(out), "comparison")
    (candidate,) = comparison["candidates"]
    changes = [measure["change"] for measure in candidate["measures"] if measure["decides"]]
    assert (code, changes) == (3, ["equivalent", "equivalent", "regression"])
    assert candidate["folder"] == str(home.runs / "2026-01-02-slow")
    code, out, _ = home("compare", "slow", "base")
    assert (code, "; 1 better" in out) == (0, True)
    assert home("compare", "base", "slow", "--tolerance", "40%")[0] == 0
    assert home("compare", "base", "slow", "--tolerance", "0.0001")[0] == 3
    for wrong in ("x", "100%", "-1", "nan"):
        assert home("compare", "base", "slow", "--tolerance", wrong)[0] == 2
    assert home("compare", "base", "nothing")[0] == 2


def test_a_full_disk_under_the_output_is_an_error_of_two_lines(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", FAST)
    for form in ("text", "json"):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                program("report", str(folder.path), "--format", form),
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert (done.returncode, done.stderr) == (
            2,
            "error: the output cannot be used: No space left on device\n"
            "  check its permissions, the room on its disk, and ulimit -n\n",
        )


def test_a_report_is_printed_in_an_ascii_locale(tmp_path: Path) -> None:
    folder = make(tmp_path / "run", FAST)
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = call("report", str(folder.path), env=environment)
    assert done.returncode == 0, done.stderr
    assert "\nPASS" in done.stdout


def test_a_run_of_another_machine_cannot_be_resumed(tmp_path: Path) -> None:
    # given a run from elsewhere that lacks its last step, expect a refusal, and every file as it
    # was
    folder = make(tmp_path / "run", FAST)
    path = folder.path / "environment.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "processor": "Another 9000"}))
    steps = folder.path / "steps.jsonl"
    steps.write_text("".join(steps.read_text().splitlines(keepends=True)[:-1]))
    before = (folder.path / "records.jsonl").read_bytes()
    done = call("validate", "--local", "--resume", str(folder.path))
    assert done.returncode == 2
    assert "started on another machine: its processor was 'Another 9000'" in done.stderr
    assert (folder.path / "records.jsonl").read_bytes() == before
