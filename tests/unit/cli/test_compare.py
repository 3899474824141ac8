"""Comparing stored runs on the command line, as a pipeline does, and their trend."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from scaletest.cli.main import run as program
from scaletest.model.labels import Labels
from scaletest.validation.plan import Plan
from tests.unit import made_runs as runs

PLAN = Plan(limit=2, seconds=0.5, queue="q")
# Seconds of a request; requests of one scatter so much that nothing can be told.
QUICK, SLOW = 0.5, 0.6


def add(archive: Path, name: str, seconds: float, *, count: int = 60, noise: float = 0.01) -> None:
    """Store a run called nightly."""
    steps = [runs.rows(workers, seconds, count, noise=noise) for workers in (1, 2)]
    folder = runs.stored(archive / name, PLAN, steps)
    folder.set_labels(Labels("nightly"))


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    root = tmp_path / "scaletest" / "runs"
    root.mkdir(parents=True)
    return root


@pytest.mark.parametrize(
    ("base", "last", "options", "code"),
    [
        ("quick", "slow", (), 3),
        ("quick", "slow", ("--fail-on", "worse"), 3),
        ("slow", "quick", ("--fail-on", "worse"), 0),
        # what is open fails a pipeline only where it asks for that
        ("quick", "rough", (), 4),
        ("quick", "rough", ("--fail-on", "worse"), 0),
        ("quick", "quick", (), 0),
        # what was not compared always does: another workload, and a run that broke off
        ("quick", "other", ("--fail-on", "worse"), 4),
        ("quick", "short", ("--fail-on", "worse"), 4),
        ("quick", "empty", ("--fail-on", "worse"), 4),
    ],
)
def test_a_pipeline_fails_on_what_it_asks_for(
    base: str, last: str, options: tuple[str, ...], code: int, archive: Path
) -> None:
    add(archive, "quick", QUICK)
    add(archive, "slow", SLOW)
    add(archive, "rough", QUICK, count=12, noise=0.3)
    both = [runs.rows(workers, QUICK, 60) for workers in (1, 2)]
    runs.stored(archive / "other", replace(PLAN, seconds=0.7), both)
    runs.stored(archive / "short", PLAN, both[:1])
    runs.stored(archive / "empty", PLAN, [])
    assert program(["compare", base, last, *options]) == code


def test_a_run_that_is_compared_with_itself_is_the_same(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(archive, "quick", QUICK)
    assert program(["compare", "quick", str(archive / "quick"), "--format", "md"]) == 0
    assert "PASS: both are the same run, quick" in capsys.readouterr().out


def test_a_trend_shows_in_which_run_a_number_changed(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, seconds in (("one", QUICK), ("three", SLOW), ("two", QUICK)):
        add(archive, name, seconds)
    # runs that began at one time are in the order of their names
    assert program(["runs", "trend", "nightly", "--measure", "throughput(2)"]) == 0
    shown = capsys.readouterr().out
    assert "regression in three (0.83x), improvement in two (1.20x)" in " ".join(shown.split())
    for line, reason in (
        (["weekly"], "0 runs with 'weekly' in the name"),
        (["nightly", "--measure", "speed"], "none of the runs measured speed"),
    ):
        assert program(["runs", "trend", *line]) == 2
        assert reason in capsys.readouterr().err


def test_a_run_that_cannot_be_read_does_not_hide_the_trend(
    archive: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a damaged run between two others, and another one after them
    for name, seconds in (("one", QUICK), ("three", SLOW), ("two", QUICK), ("zero", QUICK)):
        add(archive, name, seconds)
    for name in ("three", "zero"):
        (archive / name / "steps.jsonl").write_text("{}\n")
    line = ["runs", "trend", "nightly", "--measure", "throughput(2)"]
    assert program([*line, "--format", "json"]) == 0
    one, three, two, zero = json.loads(capsys.readouterr().out)["runs"]
    assert one["estimate"] and two["change"] == "equivalent" and not two["has_other_cause"]
    for damaged in (three, zero):
        assert damaged["estimate"] is None and "cannot be read" in damaged["note"]
