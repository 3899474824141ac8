"""Steps measured up and down: what cancels, what shows, and what is measured again."""

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.model import VerdictKind
from scaletest.stats.completions import Completions
from scaletest.stats.student import chi_square_limit
from scaletest.validation.judging.doubling import WIDENED_BY_PASSES, Ratio, doubling_ratio
from scaletest.validation.judging.machine_trend import (
    MachineTrend,
    trend_of_run,
)
from scaletest.validation.judging.schedule import Turn, further_pair, planned_pairs
from scaletest.validation.judging.slow_requests import Tail, find_slow
from scaletest.validation.judging.step_parts import StepPart, parts_to_judge, throughput_of_parts
from scaletest.validation.judging.throughput import Throughput, throughput
from scaletest.validation.plan import Plan

PLAN = Plan(limit=4)
LENGTH_S = 10.0


def part(
    workers: int,
    repeat: int,
    per_s: float,
    relative: float = 0.01,
    sound: bool = True,
    at_s: float = 0.0,
) -> StepPart:
    rate = Throughput(per_s, per_s * relative, 100 * workers, 99 * workers, True)
    usual = Tail(99 * workers, workers / per_s, relative / 2, ())
    return StepPart(workers, repeat, LENGTH_S, at_s, rate, usual, sound)


def measured(
    speed: dict[float, float], ratio: float = 2.0, relative: float = 0.01
) -> list[list[StepPart]]:
    """Steps of 1, 2 and 4 workers up and down, each in the middle of its 10 s; speed: by those six
    times.
    """
    times = sorted(speed)
    steps: list[list[StepPart]] = []
    for index, workers in enumerate((1, 2, 4)):
        steps.append(
            [
                part(workers, repeat, ratio**index * speed[at_s], relative, at_s=at_s)
                for repeat, at_s in ((0, times[index]), (1, times[5 - index]))
            ]
        )
    return steps


TIMES = [5.0 + LENGTH_S * index for index in range(6)]


def test_the_order_goes_up_and_down() -> None:
    keys = [turn.key for turn in planned_pairs(PLAN)]
    assert keys == [(1, 0), (2, 0), (4, 0), (4, 1), (2, 1), (1, 1)]
    repeated = planned_pairs(Plan(limit=2, repeats=2))
    assert [turn.key for turn in repeated[4:]] == [(1, 2), (2, 2), (2, 3), (1, 3)]


@pytest.mark.parametrize("per_s", [-0.003, 0.003])
def test_an_even_change_of_the_machine_cancels_in_every_ratio(per_s: float) -> None:
    steps = measured({at_s: math.exp(per_s * at_s) for at_s in TIMES}, ratio=1.9)
    along = trend_of_run(steps)
    assert along.per_s == pytest.approx(per_s, rel=1e-6)
    assert along.scatter_factor == 1.0
    for before, after in pairwise(steps):
        ratio = doubling_ratio(before, after, PLAN, trend=along)
        assert ratio.value == pytest.approx(1.9, rel=0.002)
        assert ratio.kind is VerdictKind.PASS
        assert ratio.widened_by == ""
        # while each way alone is wrong
        assert abs(math.log(ratio.up / 1.9)) == pytest.approx(0.03, abs=1e-6)  # type: ignore[operator]


def test_a_jump_between_two_steps_is_no_trend_and_leaves_their_ratio_open() -> None:
    # given a machine that loses a tenth of its speed while 2 workers were measured and before 4 are
    steps = measured({at_s: 1.0 if at_s < 20 else 0.9 for at_s in TIMES}, ratio=1.85)
    assert trend_of_run(steps).per_s == 0.0
    ratio = doubling_ratio(steps[1], steps[2], PLAN)
    assert ratio.value < 1.8 < ratio.high
    assert (ratio.kind, ratio.widened_by) == (VerdictKind.INVALID, WIDENED_BY_PASSES)
    # and the ratio before, both steps of which lost the same, is what it is
    first = doubling_ratio(steps[0], steps[1], PLAN)
    assert first.value == pytest.approx(1.85)


def test_two_steps_cannot_tell_a_trend_from_a_jump() -> None:
    assert (
        trend_of_run(measured({at_s: math.exp(-0.003 * at_s) for at_s in TIMES})[:2]).per_s == 0.0
    )


def test_steps_of_unknown_error_tell_no_trend() -> None:
    speed = {at_s: math.exp(-0.003 * at_s) for at_s in TIMES}
    assert trend_of_run(measured(speed, relative=math.inf)) == MachineTrend()


def test_chi_square_is_that_of_the_tables() -> None:
    assert [chi_square_limit(freedom, 0.01) for freedom in (1, 2, 5)] == pytest.approx(
        [6.63, 9.21, 15.09], rel=0.02
    )


def test_a_run_that_is_decided_is_not_measured_again() -> None:
    assert further_pair(PLAN, measured(dict.fromkeys(TIMES, 1.0))) == []
    # also when it fails
    assert further_pair(PLAN, measured(dict.fromkeys(TIMES, 1.0), ratio=1.2)) == []


def test_an_open_doubling_is_measured_again_with_its_two_steps_as_long_as_before() -> None:
    steps = measured(dict.fromkeys(TIMES, 1.0), ratio=1.9)
    rough = [part(4, repeat, 3.61, 0.2, at_s=25.0 + 10.0 * repeat) for repeat in (0, 1)]
    ratio = further_pair(PLAN, [steps[0], steps[1], rough])
    assert [turn.key for turn in ratio] == [(2, 2), (4, 2), (4, 3), (2, 3)]
    assert {turn.length_s for turn in ratio} == {2 * LENGTH_S}


def test_a_part_that_was_unsteady_is_replaced_by_another_pair() -> None:
    steps = measured(dict.fromkeys(TIMES, 1.0))
    unsteady = [part(1, 0, 0.5, sound=False, at_s=5.0), part(1, 1, 1.0, at_s=55.0)]
    turns = further_pair(PLAN, [unsteady, *steps[1:]])
    assert [turn.key for turn in turns] == [(1, 2), (2, 2), (2, 3), (1, 3)]
    again = [*unsteady, part(1, 2, 1.0, at_s=65.0), part(1, 3, 1.0, at_s=95.0)]
    assert [pair.repeat for pair in parts_to_judge(again)] == [2, 3]
    assert throughput_of_parts(parts_to_judge(again)).per_s == pytest.approx(1.0)
    # and then says nothing of the machine either, or every ratio of the run would stay open for its
    # sake
    second = [*steps[1], part(2, 2, 2.0, at_s=75.0), part(2, 3, 2.0, at_s=85.0)]
    measured_again = [again, second, steps[2]]
    assert trend_of_run(measured_again).scatter_factor == 1.0
    assert further_pair(Plan(limit=4, max_step_s=1000.0), measured_again) == []


def test_no_further_pair_is_measured_without_time_left_or_with_a_fixed_time() -> None:
    steps = measured(dict.fromkeys(TIMES, 1.0), ratio=1.85, relative=0.3)
    assert further_pair(PLAN, steps)
    assert further_pair(Plan(limit=4, max_step_s=20.0), steps) == []
    assert further_pair(Plan(limit=4, step_s=20.0), steps) == []


def test_time_left_over_by_one_step_is_available_to_others() -> None:
    plan = Plan(limit=4, max_step_s=40.0)
    ratio = further_pair(plan, measured(dict.fromkeys(TIMES, 1.0), ratio=1.85, relative=0.3))
    # 3 x 40 s less the 60 s spent, for six measurings
    assert [turn.length_s for turn in ratio] == pytest.approx([10.0] * 6)
    assert ratio[0] == Turn(1, 2, pytest.approx(10.0))  # type: ignore[arg-type]


def test_ways_that_chance_cannot_explain_widen_every_ratio() -> None:
    # given ways that differ by 10 % in alternate directions, measured to 1 %
    steps = measured(dict(zip(TIMES, (1.1, 1.0, 1.1, 1.0, 1.1, 1.0), strict=True)))
    along = trend_of_run(steps)
    assert along.per_s == 0.0
    assert along.scatter_factor > 5.0
    plain, shaken = (
        doubling_ratio(steps[0], steps[1], PLAN, trend=each) for each in (MachineTrend(), along)
    )
    assert shaken.low < plain.low
    assert shaken.high > plain.high
    assert shaken.widened_by == WIDENED_BY_PASSES


def test_a_doubling_that_is_below_one_way_only_does_not_fail() -> None:
    # given 1.70 on the way up, 1.78 on the way down, each exact
    rows = [part(2, 0, 1.70, 0.0001), part(2, 1, 1.78, 0.0001)]
    ratio = doubling_ratio([part(1, 0, 1.0, 0.0001), part(1, 1, 1.0, 0.0001)], rows, PLAN)
    assert ratio.high < 1.8 < ratio.most
    assert ratio.kind is VerdictKind.INVALID


CYCLES = st.lists(
    st.one_of(st.sampled_from([0.0, 1e-6, 0.01, 1.0, 1000.0]), st.floats(0.0, 100.0)), max_size=20
)
BEGIN_S = 1.7e9


@st.composite
def completions(draw: st.DrawFn) -> Completions:
    """What up to three workers completed, none of them perhaps, on a clock that tells the time of
    day.
    """
    ends: dict[str, list[float]] = {}
    for worker in range(draw(st.integers(0, 3))):
        now = BEGIN_S + draw(st.floats(0.0, 10.0))
        ends[str(worker)] = times = []
        for cycle in draw(CYCLES):
            now += cycle
            times.append(now)
    return Completions(ends)


@st.composite
def parts(draw: st.DrawFn, workers: int, repeat: int) -> StepPart:
    """Any part that a run may bring, of no length and without completions too."""
    ends = draw(completions())
    rate = throughput(ends, min(workers, max(1, len(ends.by_worker))))
    seconds = draw(st.sampled_from([0.0, 1e-9, 0.5, 10.0, 60.0]))
    at_s = BEGIN_S + draw(st.floats(0.0, 1000.0))
    return StepPart(workers, repeat, seconds, at_s, rate, find_slow(ends), draw(st.booleans()))


def is_an_interval(ratio: Ratio) -> bool:
    return (
        0.0 <= ratio.low <= ratio.value * (1 + 1e-9)
        and ratio.value <= ratio.high * (1 + 1e-9) <= math.inf
    )


@settings(max_examples=50, deadline=None)
@given(ends=completions())
def test_slow_requests_of_any_completions_are_counted(ends: Completions) -> None:
    cycles = sum(max(0, len(times) - 1) for times in ends.by_worker.values())
    slow = find_slow(ends)
    assert slow.count in (0, cycles)
    assert slow.error >= 0.0
    assert all(math.isfinite(value) and value > -1.0 for value in slow.excess)
    filled = ends.with_slow_cycles_filled.by_worker
    assert {worker: times[:1] for worker, times in filled.items()} == {
        key: times[:1] for key, times in ends.by_worker.items()
    }
    assert all(sorted(times) == list(times) for times in filled.values())


@settings(max_examples=50, deadline=None)
@given(data=st.data(), limit=st.integers(1, 4), max_step_s=st.sampled_from([0.0, 0.001, 1.0, 1e6]))
def test_any_parts_have_a_ratio_with_an_interval_and_an_end(
    data: st.DataObject, limit: int, max_step_s: float
) -> None:
    plan = Plan(limit=limit, max_step_s=max_step_s)
    steps = [[data.draw(parts(workers, repeat)) for repeat in (0, 1)] for workers in plan.steps]
    for _ in range(100):
        along = trend_of_run(steps)
        assert math.isfinite(along.per_s)
        assert 1.0 <= along.scatter_factor < math.inf
        for before, after in pairwise(steps):
            ratio = doubling_ratio(before, after, plan, trend=along)
            assert ratio is None or is_an_interval(ratio)
        turns = further_pair(plan, steps)
        if not turns:
            return
        assert all(0.0 <= turn.length_s < math.inf for turn in turns)
        for turn in turns:
            again = data.draw(parts(turn.workers, turn.repeat))
            length_s = max(turn.length_s, again.seconds)
            steps[plan.steps.index(turn.workers)].append(replace(again, seconds=length_s))
    raise AssertionError("the run does not end")
