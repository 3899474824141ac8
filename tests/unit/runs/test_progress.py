"""The progress of a run as data: what is told, kept in its folder, and published."""

import stat
from pathlib import Path
from typing import Any

import pytest

from scaletest.broker import keys
from scaletest.broker.run_progress import EXPIRES_S, MOST_BYTES, publish_progress, read_published
from scaletest.model import Measurement
from scaletest.model.errors import InvalidValue
from scaletest.model.run_progress import LONGEST_LINE, MOST_LINES, ProgressChange, RunProgress
from scaletest.runs.folder import FILES, PROGRESS, RESULT, RunFolder
from scaletest.runs.progress import Progress
from scaletest.runs.registry import TYPES
from scaletest.validation.judging.forecast import STEADY, forecast, left_s
from scaletest.validation.judging.schedule import Turn, planned_pairs
from scaletest.validation.plan import Plan
from tests.conftest import eventually
from tests.unit import made_runs as runs
from tests.unit.told import telling
from tests.unit.virtual_redis import Clock, VirtualRedis


@pytest.mark.parametrize(
    ("fields", "place", "part"),
    [
        ({}, "", None),
        ({"done": 2, "steps": 8}, "step 3 of 8", 0.25),
        ({"done": 2, "steps": 8, "is_estimate": True}, "step 3 of about 8", 0.25),
        ({"done": 8, "steps": 8}, "8 of 8 steps", 1.0),
        ({"done": 8, "steps": 8, "is_estimate": True}, "step 9", None),
        ({"done": 12, "steps": 40, "unit": "workload"}, "12 of 40 workloads", 0.3),
        ({"elapsed_s": 30.0, "left_s": 10.0, "done": 0, "steps": 2}, "step 1 of 2", 0.75),
        ({"elapsed_s": 0.0, "left_s": 0.0}, "", 0.0),
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
    "fields", [{"done": -1}, {"left_s": float("inf")}, {"run": "x" * 300}, {"log": ["x"] * 51}]
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
        progress.at(1, 4, left_s=40.0, is_estimate=True)
        progress.phase("2 workers: measuring")
        progress.note("2 workers: 7 done")
        for number in range(60):
            progress.message(f"line {number} \x1b[31m" + "x" * 1000)
        now[0] = 110.0
        state = progress.state()
        assert (state.elapsed_s, state.left_s, state.place) == (10.0, 30.0, "step 2 of about 4")
        assert (state.phase, state.line) == ("2 workers: measuring", "2 workers: 7 done")
        assert len(state.log) == MOST_LINES and state.log[-1].startswith("line 59 \\x1b[31m")
        assert max(map(len, state.log)) <= LONGEST_LINE
        # a state as long as it may be fits into what is published
        assert len(state.to_json().encode()) < MOST_BYTES
        now[0] = 200.0
        # the steps after one that takes too long still need their time
        assert progress.state().left_s == 27.0
        progress.at(3, 4, left_s=40.0)
        now[0] = 300.0
        assert progress.state().left_s == 0.0
        eventually(lambda: state_of(folder) == progress.state())
    end = state_of(folder)
    assert (end.ended, end.left_s, end.phase, end.log) == (True, None, "", state.log)
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


def test_the_time_left_follows_the_forecast_and_what_was_measured() -> None:
    plan = Plan(limit=4, seconds=1.0, queue="q")
    turns = planned_pairs(plan)
    # before anything was measured, expect the forecast, but for the start of workers
    expected = forecast(plan, STEADY).seconds
    assert left_s(plan, turns, []) == pytest.approx(expected, abs=2.0)
    # when the first step took twice as long as expected, expect so of the others
    first = left_s(plan, turns[:1], []) - plan.seconds
    slow = [Measurement(1, 0, 0.1, 2 * first, "precise")]
    quick = [Measurement(1, 0, 0.1, first, "precise")]
    others = [left_s(plan, turns[1:], rows) - 5 * plan.seconds for rows in (quick, slow)]
    assert others[1] == pytest.approx(2 * others[0])
    assert left_s(plan, [], slow) == 0.0
    # when the length of a turn is fixed, expect that
    assert left_s(plan, [Turn(2, 2, 7.0)], slow) == 8.0


# -- in Redis


def of_run(run: str = "run", **fields: Any) -> RunProgress:
    return RunProgress(run, "validation", "sleep 1", **fields)


def test_a_run_is_published_until_nobody_renews_it(redis: VirtualRedis, clock: Clock) -> None:
    publish_progress(redis, of_run(done=1, steps=4))
    clock.step(4.0)
    assert read_published(redis) == [of_run(done=1, steps=4)]
    # every key expires by itself
    for name in (keys.RUNS_IN_PROGRESS, keys.progress("run")):
        assert 0 < redis.ttl(name) <= EXPIRES_S
    clock.step(31.0)
    assert read_published(redis) == []


def test_the_index_forgets_runs_that_are_over(redis: VirtualRedis, clock: Clock) -> None:
    for number in range(20):
        publish_progress(redis, of_run(f"run-{number}"))
        clock.step(5.0)
    publish_progress(redis, of_run("last"))
    assert redis.zcard(keys.RUNS_IN_PROGRESS) == 6


@pytest.mark.parametrize(
    "foreign",
    ["", "[]", "{}", "nonsense", '{"run":"other","run_type":"","title":""}', "x" * 70_000],
)
def test_what_is_no_run_is_left_out(redis: VirtualRedis, foreign: str) -> None:
    publish_progress(redis, of_run("good"))
    redis.zadd(keys.RUNS_IN_PROGRESS, {"bad": 1_800_000_000, "n" * 1000: 1_800_000_000})
    redis.set(keys.progress("bad"), foreign)
    redis.zadd(keys.RUNS_IN_PROGRESS, {"list": 1_800_000_000})
    redis.rpush(keys.progress("list"), "x")
    assert [run.run for run in read_published(redis)] == ["good"]


def test_a_redis_that_is_away_does_not_harm_the_run(folder: RunFolder) -> None:
    with silent(redis_url="redis://127.0.0.1:1").of_run(folder, "sleep 1"):
        pass
    assert state_of(folder).ended


def test_a_run_with_a_redis_tells_its_end_and_its_verdict(
    redis: VirtualRedis, folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scaletest.runs.progress.prepare_connection", lambda url, **_: redis)
    folder.write(RESULT, {"verdict": {"kind": "FAIL"}})
    with silent(redis_url="redis://there").of_run(folder, "sleep 1"):
        pass
    (end,) = read_published(redis)
    assert end.ended and end.verdict == "FAIL"
