"""The tests that CI leaves out: their parts are whole, and whoever changes what a part guards is
told to run it.
"""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hack import weekly
from hack.weekly import PARTS, WeeklyPart

ROOT = Path(__file__).parents[3]
PART = WeeklyPart(("guarded", "one.txt"))


def git(folder: Path, *arguments: str) -> str:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with guarded files, and a noted pass of them."""
    # a hook of git that runs the tests has them set, and they would make commits in the repository
    # of whoever commits
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "docs" / "results").mkdir(parents=True)
    (tmp_path / "guarded").mkdir()
    for name in ("guarded/two.txt", "one.txt", "other.txt"):
        (tmp_path / name).write_text("before\n", "utf-8")
    git(tmp_path, "init", "-q")
    commit(tmp_path)
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    noted = {
        "part": "a",
        "date": "2026-11-22",
        "commit": head,
        "content": weekly.hash_content(PART, tmp_path),
    }
    weekly.store_pass(noted, tmp_path)
    return tmp_path


def commit(folder: Path) -> None:
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "A change")


@pytest.mark.parametrize("name", PARTS)
def test_the_files_that_a_part_guards_and_builds_exist(name: str) -> None:
    part = PARTS[name]
    assert [path for path in part.guards if not (ROOT / path).exists()] == []
    assert [
        tool for tool in part.tools if not (ROOT / "hack" / "tools" / tool / "go.mod").exists()
    ] == []
    known = {
        word.partition("]=")[0] for word in (ROOT / "hack" / "lib.sh").read_text("utf-8").split("[")
    }
    assert {*part.programs} <= {*known, "node"}


def test_every_part_has_tests() -> None:
    """That a weekly test has a part, which guards it, is checked when it is collected."""
    marked = set[str]()
    for path in (ROOT / "tests").rglob("test_*.py"):
        marked |= set(re.findall(r'\bweekly\(part="([\w-]+)"\)', path.read_text("utf-8")))
    assert marked == set(PARTS)


def test_unchanged_guarded_files_give_no_warning(project: Path) -> None:
    (project / "other.txt").write_text("after\n", "utf-8")
    commit(project)
    assert weekly.warn_of_changes("a", PART, project) == ""
    # nor when the commits are made anew
    git(project, "checkout", "-q", "--orphan", "anew")
    commit(project)
    assert weekly.warn_of_changes("a", PART, project) == ""


def test_changed_files_are_named_with_the_last_pass(project: Path) -> None:
    (project / "one.txt").write_text("after\n", "utf-8")
    (project / "guarded" / "two.txt").unlink()
    commit(project)
    text = weekly.warn_of_changes("a", PART, project)
    assert text.startswith(
        "weekly a: guarded/two.txt, one.txt changed since it passed on 2026-11-22 with commit "
    )
    assert text.endswith("; ./hack/test --weekly a")


class Played:
    """pytest as run() calls it: writes a report, and ends with a code."""

    def __init__(self, code: int, tests: int, skipped: int) -> None:
        self._code, self._row = (
            code,
            f'<testsuites><testsuite tests="{tests}" skipped="{skipped}"/></testsuites>',
        )

    def __call__(self, part: str, report: Path, options: Any) -> int:
        report.write_text(self._row, "utf-8")
        return self._code


@pytest.mark.parametrize(
    ("code", "skipped", "options", "dirty", "noted"),
    [
        (0, 0, [], False, True),
        (1, 0, [], False, False),
        (5, 0, [], False, False),
        (0, 1, [], False, False),
        (0, 0, ["-k", "one"], False, False),
        (0, 0, [], True, False),
    ],
    ids=["passed", "failed", "no tests", "skipped", "options", "not committed"],
)
def test_only_a_whole_pass_of_a_commit_is_noted(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    skipped: int,
    options: list[str],
    dirty: bool,
    noted: bool,
) -> None:
    monkeypatch.setitem(PARTS, "a", PART)
    monkeypatch.setattr(weekly, "pytest_of", Played(code, 3, skipped))
    (project / weekly.RESULTS).unlink()
    if dirty:
        (project / "one.txt").write_text("after\n", "utf-8")
    assert weekly.run("a", options, project) is (code == 0)
    rows = weekly.read_passes(project)
    assert bool(rows) is noted
    if noted:
        row = rows["a"]
        assert set(row) == {"part", "date", "commit", "content", "tests", "seconds"}
        assert (row["tests"], row["content"]) == (3, weekly.hash_content(PART, project))
        assert git(project, "rev-parse", "HEAD").startswith(row["commit"])
