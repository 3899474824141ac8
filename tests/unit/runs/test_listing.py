"""Lists of runs: which are wanted, and in which order."""

from pathlib import Path

import pytest

from scaletest.runs import listing, registry
from scaletest.runs.folder import (
    RESULT,
)
from scaletest.runs.listing import ListedRun, RunFilter, choose_runs
from tests.unit import made_runs as runs


def listed_run(run: str, **fields: object) -> ListedRun:
    known: dict[str, object] = {"name": "", "note": "", **fields}
    return ListedRun(run=run, in_use=False, folder=f"/{run}", **known)  # type: ignore[arg-type]


RUNS = [
    listed_run("a", kind="validation", verdict="FAIL", began="2026-01-02", elapsed_s=3.0),
    listed_run("b", kind="saturation", verdict="PASS", began="2026-01-01", name="nightly-1"),
    listed_run("c", kind="validation", verdict=None, began=None, elapsed_s=9.0),
]


@pytest.mark.parametrize(
    ("wanted", "names"),
    [
        (RunFilter(), "cba"),
        (RunFilter(run_type="validation"), "ca"),
        (RunFilter(verdicts=("FAIL", "none")), "ca"),
        (RunFilter(name="nightly-*"), "b"),
        (RunFilter(name="ight"), "b"),
        (RunFilter(name="nightly"), "b"),
        (RunFilter(name="nothing"), ""),
    ],
)
def test_runs_are_chosen_by_all_that_is_asked_for(wanted: RunFilter, names: str) -> None:
    assert "".join(run.run for run in choose_runs(RUNS, wanted, "began")) == names


def test_the_worst_the_longest_and_the_newest_stand_last() -> None:
    orders = {
        order: [run.run for run in choose_runs(RUNS, RunFilter(), order)] for order in listing.SORTS
    }
    assert orders == {
        "began": ["c", "b", "a"],
        "name": ["a", "c", "b"],
        "verdict": ["c", "b", "a"],
        "elapsed": ["b", "a", "c"],
    }


@pytest.mark.parametrize("stored_kind", ["PASS", "FAIL"])
def test_a_report_marks_another_verdict_than_the_stored_one(
    tmp_path: Path, stored_kind: str
) -> None:
    folder = runs.stored(tmp_path / "one", runs.LIMITED, runs.limited_steps())
    folder.write(RESULT, {"verdict": {"kind": stored_kind}})
    verdict = registry.report(folder).head.verdict
    assert str(verdict.kind) == "FAIL"
    changed = stored_kind == "PASS"
    assert ("judged anew: it was PASS when it was measured" in verdict.reason) == changed
