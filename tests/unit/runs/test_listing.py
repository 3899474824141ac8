"""Lists of runs: which are wanted, and in which order."""

import re
from pathlib import Path

import pytest

from scaletest.runs import listing, registry
from scaletest.runs.folder import (
    RESULT,
)
from scaletest.runs.listing import ListedRun, RunFilter, choose_runs
from scaletest.runs.places import new_path
from scaletest.runs.run_type import numbers_at
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


@pytest.mark.parametrize(
    ("folder", "name", "shown"),
    [
        ("2026-11-27T083620Z-0840", "", "0840"),
        ("2026-11-27T083620Z-0840", "nightly", "nightly"),
        ("before-2026", "", "before-2026"),
        ("2026-11-27T083620Z-", "", "2026-11-27T083620Z-"),
    ],
)
def test_a_list_calls_a_run_by_what_is_its_own(folder: str, name: str, shown: str) -> None:
    assert listed_run(folder, name=name).short_name == shown


def test_the_name_of_a_new_run_is_shown_by_its_end() -> None:
    assert re.fullmatch(r"\w{4}", listed_run(new_path({"XDG_DATA_HOME": "/x"}).name).short_name)


@pytest.mark.parametrize(
    ("steps", "ideal"),
    [
        (
            [{"workers": 2, "throughput_per_s": 3.0}, {"workers": 8, "throughput_per_s": 5.0}],
            [3, 12],
        ),
        ([{"workers": 0, "throughput_per_s": 3.0}, {"workers": 8, "throughput_per_s": 5.0}], []),
        ([{"throughput_per_s": 3.0}, {"workers": 8, "throughput_per_s": 5.0}], []),
        ([], []),
        ("hostile", []),
    ],
)
def test_the_ideal_curve_grows_with_the_workers(steps: object, ideal: list[float]) -> None:
    run_type = registry.run_type("validation")
    curve = numbers_at(steps, *run_type.curve_path)
    assert run_type.ideal_curve({"steps": steps}, curve) == ideal
