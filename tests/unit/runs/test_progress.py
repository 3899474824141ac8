"""The progress of a run as data: what is told, and kept in its folder."""

import stat
from pathlib import Path
from typing import Any

import pytest

from scaletest.model import Measurement
from scaletest.model.errors import InvalidValue
from scaletest.model.run_progress import (
    LONGEST_LINE,
    MOST_LINES,
    ProgressChange,
    RunProgress,
    TimeLeft,
    expect_alike,
)
from scaletest.runs.folder import FILES, PROGRESS, RunFolder
from scaletest.runs.progress import ExpectedEnd, Progress, narrow_end, time_left
from scaletest.runs.registry import TYPES
from scaletest.validation.judging.forecast import time_left as validation_left
from scaletest.validation.judging.schedule import Turn
from scaletest.validation.plan import Plan
from tests.conftest import eventually
from tests.unit import made_runs as runs
from tests.unit.told import telling


@pytest.mark.parametrize(
    ("fields", "place", "part"),
    [
        ({}, "", None),
        ({"done": 2, "steps": 8}, "step 3 of 8", 0.25),
        ({"done": 2}, "step 3", None),
        ({"done": 8, "steps": 8}, "8 of 8 steps", 1.0),
        ({"phase": "1 worker: measuring"}, "step 1", None),
        ({"done": 12, "steps": 40, "unit": "workload"}, "12 of 40 workloads", 0.3),
        (
            {"elapsed_s": 30.0, "left_least_s": 5.0, "left_most_s": 10.0, "done": 0, "steps": 2},
            "step 1 of 2",
            0.75,
        ),
        ({"elapsed_s": 0.0, "left_least_s": 0.0, "left_most_s": 0.0}, "", 0.0),
        ({"ended": True}, "", 1.0),
    ],
)
def test_where_a_run_is_in_words_and_as_a_part(
    fields: dict[str, Any], place: str, part: float | None
) -> None:
    progress = RunProgress("r", "validation", "sleep 1", **fields)
    assert (progress.place, progress.part) == (place, part)
    assert RunProgress.from_json(progress.to_json()) == progress


@pytest.mark.parametrize(
    "fields", [{"done": -1}, {"left_most_s": float("inf")}, {"run": "x" * 300}, {"log": ["x"] * 51}]
)
def test_what_is_no_progress_is_refused(fields: dict[str, Any]) -> None:
    document = {"run": "r", "run_type": "validation", "title": "t", **fields}
    with pytest.raises(InvalidValue):
        RunProgress.from_dict(document)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return runs.stored(tmp_path / "run", runs.LIMITED, runs.limited_steps())


def silent(**options: Any) -> Progress:
    return telling([], **options)


def state_of(folder: RunFolder) -> RunProgress:
    return RunProgress.from_dict(folder.read(PROGRESS))


def test_a_run_tells_its_state_until_it_ends(folder: RunFolder) -> None:
    now = [100.0]
    progress = silent(clock=lambda: now[0])
    with folder.locked(), progress.of_run(folder, "sleep 1"):
        begun = state_of(folder)
        assert (begun.run, begun.run_type, begun.title) == ("run", "validation", "sleep 1")
        progress.at(1, 4, left=TimeLeft(30.0, 60.0))
        progress.phase("2 workers: measuring")
        progress.note("2 workers: 7 done")
        for number in range(60):
            progress.message(f"line {number} \x1b[31m" + "x" * 1000)
        now[0] = 110.0
        state = progress.state()
        assert (state.elapsed_s, state.place) == (10.0, "step 2 of 4")
        assert (state.left_least_s, state.left_most_s) == (20.0, 50.0)
        assert (state.phase, state.line) == ("2 workers: measuring", "2 workers: 7 done")
        assert len(state.log) == MOST_LINES and state.log[-1].startswith("line 59 \\x1b[31m")
        assert max(map(len, state.log)) <= LONGEST_LINE
        eventually(lambda: state_of(folder) == progress.state())
    end = state_of(folder)
    assert (end.ended, end.phase, end.log) == (True, "", state.log)
    assert stat.S_IMODE((folder.path / PROGRESS).stat().st_mode) == 0o600


def test_a_run_that_ends_with_an_error_says_so_in_its_log(folder: RunFolder) -> None:
    with pytest.raises(RuntimeError), silent().of_run(folder, "sleep 1"):
        raise RuntimeError("the disk is gone")
    assert state_of(folder).ended and state_of(folder).log == ("ended early: the disk is gone",)


def test_a_folder_that_cannot_be_written_does_not_harm_the_run(folder: RunFolder) -> None:
    (folder.path / f".{PROGRESS}.new").mkdir()
    with silent().of_run(folder, "sleep 1"):
        pass
    assert not (folder.path / PROGRESS).exists()


def test_changes_are_told_at_once_and_figures_as_often_as_wanted(folder: RunFolder) -> None:
    now, states = [100.0], list[RunProgress]()

    def tell(change: ProgressChange, state: RunProgress, message: str) -> None:
        states.append(state)

    progress = Progress(tell, clock=lambda: now[0], every_s=1.0)
    with progress.of_run(folder, "sleep 1"):
        progress.at(1, 4)
        for tenth in range(25):
            now[0] = 100.0 + tenth / 10
            progress.note(f"{tenth} done")
        progress.step("2 workers: 2.0 requests/s")
    assert [state.line for state in states] == ["", "", "10 done", "20 done", "24 done", ""]
    assert states[4].done == 2 and states[5].ended


@pytest.mark.parametrize("name", TYPES)
def test_progress_is_deleted_with_a_run_of_any_type(name: str, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path / "run")
    folder.write("plan.json", {"kind": name})
    with silent().of_run(folder, "t"):
        pass
    assert (folder.path / PROGRESS).exists() and PROGRESS not in FILES
    assert folder.remove()


# -- what is left


@pytest.mark.parametrize(
    ("said", "left", "end"),
    [
        # an estimate narrows what was said, from both sides
        (None, (20.0, 60.0), (120.0, 160.0)),
        ((120.0, 160.0), (30.0, 50.0), (130.0, 150.0)),
        ((120.0, 160.0), (10.0, 90.0), (120.0, 160.0)),
        # and replaces it where it was wrong, too early or too late
        ((120.0, 160.0), (70.0, 90.0), (170.0, 190.0)),
        ((120.0, 160.0), (5.0, 10.0), (105.0, 110.0)),
    ],
)
def test_the_end_of_a_run_is_only_narrowed(
    said: tuple[float, float] | None, left: tuple[float, float], end: tuple[float, float]
) -> None:
    before = said and ExpectedEnd(*said)
    assert narrow_end(before, TimeLeft(*left), now_s=100.0) == ExpectedEnd(*end)


def test_an_end_that_is_over_is_nearly_there() -> None:
    now = [0.0]
    progress = silent(clock=lambda: now[0])
    progress.at(0, 4, left=TimeLeft(10.0, 30.0))
    seen = []
    for now[0] in (0.0, 20.0, 40.0):
        seen.append(time_left(progress.state()))
    assert seen == ["10 to 30 s left", "up to 10 s left", "nearly done"]


def test_parts_that_are_alike_tell_the_time_left() -> None:
    assert expect_alike([], 3) is None
    one, many = expect_alike([10.0], 3), expect_alike([9.0, 11.0] * 10, 3)
    assert one and many and one.least_s < many.least_s < 27.0 and 33.0 < many.most_s < one.most_s


def test_the_time_left_of_a_validation_follows_what_was_measured() -> None:
    plan = Plan(limit=4, seconds=500.0, queue="q", command=("x",))
    up, down = [Turn(n, 0) for n in (1, 2, 4)], [Turn(n, 1) for n in (4, 2, 1)]

    def expect(turns: list[Turn], *steps: tuple[int, float, float]) -> TimeLeft:
        rows = [Measurement(workers, 0, 0.0, part_s, "precise") for workers, part_s, _ in steps]
        left = validation_left(plan, turns, rows, {step[0]: step[2] for step in steps})
        assert left is not None
        return left

    # nobody knows how long a request takes until one was measured, whatever the plan expects
    assert validation_left(plan, up + down, [], {}) is None
    # requests of larger steps may take as long, or longer by the factor of the workers
    first = expect(up[1:] + down, (1, 40.0, 10.0))
    assert first.least_s >= 40.0 + 4 * 20.0 and first.most_s >= 40.0 + 4 * 40.0
    # where they take longer already, they do so again; a step that was measured takes as long
    locked = expect(up[2:] + down, (1, 40.0, 10.0), (2, 40.0, 20.0))
    assert locked.least_s >= 80.0 + 2 * 40.0 and locked.most_s >= 80.0 + 2 * 80.0
    last = expect(down[1:], *((n, 40.0, 10.0) for n in (1, 2, 4)))
    assert last.least_s == 80.0 and last.most_s == pytest.approx(100.0, abs=1.0)
    # the length of a further pair is fixed
    assert expect([Turn(2, 2, 7.0)], *((n, 40.0, 10.0) for n in (1, 2, 4))).least_s == 7.0
