"""The registry of run types, the measures of each, and the folder that all of them share.

A new run type is one folder and one line of the registry: it is listed, shown, judged by
thresholds, drawn and compared.
"""

import fcntl
import importlib.util
import json
import math
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO

import pytest

from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs import registry
from scaletest.runs.folder import LOCK, RunFolder
from scaletest.runs.places import find, new_path
from scaletest.runs.registry import TYPES, run_type, type_of
from scaletest.stats.measure import Measure
from tests.conftest import call_here, missing
from tests.unit import toy_run
from tests.unit.kept_runs import KEPT_RUNS, unpack

EXAMPLES = {
    "validation-lock": ("throughput", "ratio", "efficiency", "run.p50", "wait.p50", "failures"),
    "saturation-open": ("capacity", "goodput", "latency.p95", "failures"),
    "benchmark-sweep": (),
    "lifecycle-burst": ("total_ready.mean", "total_ready.p50", "lost"),
}

Say = Callable[..., CompletedProcess[str]]


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


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Say:
    """Calls the program of a user who has two toys."""
    line = registry.Registered(
        "tests.unit.toy_run", "tests.unit.toy_run:toy_report", "tests.unit.toy_run"
    )
    monkeypatch.setitem(registry.TYPES, "toy", line)
    root = tmp_path / "scaletest" / "runs"
    root.mkdir(parents=True)
    thresholds = ("jump<2s", "jump<1100ms")
    toy_run.write(RunFolder.create(root / "slow"), [1.2, 1.21, 1.19], thresholds)
    toy_run.write(RunFolder.create(root / "swift"), [1.0, 1.01, 0.99], thresholds)

    def call(*arguments: str) -> CompletedProcess[str]:
        return call_here(*arguments, env={"XDG_DATA_HOME": str(tmp_path), "COLUMNS": "200"})

    return call


def test_it_is_listed_shown_and_judged_by_its_thresholds(say: Say) -> None:
    rows = {row["run"]: row for row in json.loads(say("runs", "list", "--format", "json").stdout)}
    assert {name: row["verdict"] for name, row in rows.items()} == {"slow": "FAIL", "swift": "PASS"}
    assert {row["kind"] for row in rows.values()} == {"toy"}
    assert "1 of 2 thresholds not met: jump<1100ms: 1200 ms" in say("report", "slow").stdout


def test_it_is_drawn(say: Say, tmp_path: Path) -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    done = say("report", "swift", "-o", str(tmp_path / "toy.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_compared(say: Say) -> None:
    worse, same = say("compare", "swift", "slow"), say("compare", "swift", "swift")
    assert (worse.returncode, same.returncode) == (3, 0), worse.stdout + worse.stderr
    assert "jump" in worse.stdout


@pytest.fixture
def measured(tmp_path: Path) -> Callable[[str], list[Measure]]:
    """The measures of a run of the test data."""

    def measures(name: str) -> list[Measure]:
        folder = unpack(name, tmp_path)
        return list(type_of(folder).measures(type_of(folder).judge(folder)))

    return measures


@pytest.mark.parametrize("name", KEPT_RUNS)
def test_each_measure_of_a_run_stands_there_once_and_lies_in_its_interval(
    measured: Callable[[str], list[Measure]], name: str
) -> None:
    measures = measured(name)
    places = [(measure.name, *sorted(measure.where.items())) for measure in measures]
    assert len(set(places)) == len(places)
    for measure in measures:
        estimate = measure.estimate
        assert math.isfinite(estimate.value)
        assert estimate.low <= estimate.value <= estimate.high


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_run_has_the_measures_of_its_type(
    measured: Callable[[str], list[Measure]], name: str
) -> None:
    measures = measured(name)
    assert {measure.name for measure in measures} >= set(EXAMPLES[name])
    assert measures
