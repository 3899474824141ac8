"""Where a service saturates: the search against services with a known capacity, and what a step and a run say."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.saturation import tuning
from scaletest.analysis.saturation.backlog import growth, mean_backlog, pooled, rate, scarce_growth
from scaletest.analysis.saturation.evaluation import SaturationResult, conclude
from scaletest.analysis.saturation.forecast import forecast
from scaletest.analysis.saturation.pod_times import from_headers, from_logs
from scaletest.analysis.saturation.search import most_measured, open_search, search
from scaletest.analysis.saturation.sequence import LONGEST, MOST_AGAIN, SaturationSequence
from scaletest.analysis.saturation.step import assess, timing
from scaletest.analysis.saturation.trial import Bracket, Finding, Probe, Trial
from scaletest.archive.queries import answers
from scaletest.broker.agents import Meeting
from scaletest.cli.saturate_options import public
from scaletest.cluster.cadvisor import parsed
from scaletest.cluster.service import reference
from scaletest.cluster.tuning import changed, with_argument
from scaletest.load import pace
from scaletest.load.call import server_time
from scaletest.load.order import LevelLoad, Measured, Order
from scaletest.load.payloads import BUILT_IN, Payloads, provided
from scaletest.model import VerdictKind, histogram
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.sample import OK, UNSENT, Sample, from_json, to_json
from scaletest.model.saturation import SaturationPlan, SaturationStep, latency_limit
from scaletest.saturation import Runner, original
from scaletest.saturation.agents import AgentsLoad, merged, serve
from tests.unit.simulated import Simulated, run

CAPACITY = 800.0
# Requests a second of which 5 % take longer than 11 ms: 8 slots of 10 ms, simulated for ten minutes.
LIMIT_11MS = 430.0
PLAN = SaturationPlan("simulated", step_s=4.0, warm_s=0.5)


def noisy(seed: int) -> Simulated:
    """Service times with a standard deviation of a fifth."""
    chance = random.Random(seed)
    return Simulated(noise=lambda: chance.lognormvariate(-0.02, 0.2))


@pytest.mark.parametrize("kind", ["M/D/8", "refuses", "noisy"])
def test_open_load_finds_the_capacity_in_19_of_20_runs(kind: str) -> None:
    found = []
    for seed in range(20):
        service = {"M/D/8": Simulated(), "refuses": Simulated(room=64), "noisy": noisy(seed)}[kind]
        result = run(PLAN, service, seed)
        assert result.searched <= 12
        found.append(result.point is not None and abs(result.point.value / CAPACITY - 1) <= 0.03)
    assert sum(found) >= 19


class Mortal(Simulated):
    """It serves so many steps, then every request ends so."""

    def __init__(self, lives: int, outcome: str) -> None:
        super().__init__()
        self._lives, self._outcome = lives, outcome

    def open(self, due: list[float]) -> list[Sample]:
        self._lives -= 1
        return super().open(due) if self._lives >= 0 else [self._failed(n, at) for n, at in enumerate(due)]

    def closed(self, parallel: int, seconds: float) -> list[Sample]:
        self._lives -= 1
        return (
            super().closed(parallel, seconds)
            if self._lives >= 0
            else [self._failed(n, n * seconds / 99) for n in range(99)]
        )

    def _failed(self, number: int, at: float) -> Sample:
        return Sample(number, 1, True, at, at, at, at + 0.001, self._outcome)


@pytest.mark.parametrize("outcome", ["refused", "timed out"])
@pytest.mark.parametrize("load", ["open", "closed"])
def test_a_service_that_ends_in_the_midst_of_a_run_ends_the_run(load: str, outcome: str) -> None:
    plan = replace(PLAN, load=load, maximum=64.0 if load == "closed" else 0.0)
    whole = len(run(plan, Simulated(), 1).steps)
    for lives in range(2, whole, 2):
        result = run(plan, Mortal(lives, outcome), 1)
        # then the search does not follow it down for minutes, and says no point that it has not measured
        assert result.verdict.kind is VerdictKind.INVALID and "the service is gone" in result.verdict.reason, lives
        assert outcome in result.verdict.reason and len(result.steps) <= lives + (3 if outcome == "refused" else 20)
    # a sweep upwards blames no level
    sweep = replace(plan, mode="sweep", start=1.0, maximum=30.0, increment=1.0)
    result = run(sweep, Mortal(4, "refused"), 1)
    assert "the service is gone" in result.verdict.reason and len(result.steps) == 7


def disturbed(seed: int) -> Simulated:
    """A machine that others use: every half second it stands still for a tenth, on average."""
    chance, at, stalls = random.Random(seed), 0.0, list[tuple[float, float]]()
    while at < 60:
        at += chance.expovariate(2)
        stalls.append((at, at := at + chance.expovariate(10)))
    return Simulated(slots=1, stalls=stalls)


def scattered(seed: int) -> Simulated:
    """Service times that are exponential: as long as they like."""
    chance = random.Random(seed)
    return Simulated(slots=1, noise=lambda: chance.expovariate(1.0))


@pytest.mark.parametrize("kind", ["M/D/1", "exponential", "exponential, closed", "disturbed"])
def test_the_interval_of_the_point_contains_the_truth_in_nine_of_ten_runs(kind: str) -> None:
    # given services that do 100 a second, and so few requests a step that chance and pauses count
    plan = replace(PLAN, load="closed" if "closed" in kind else "open")
    make = {"M/D/1": lambda seed: Simulated(slots=1), "disturbed": disturbed}.get(kind, scattered)
    held = 0
    for seed in range(30):
        result = run(plan, make(seed), seed)
        assert result.point is not None and result.searched <= 12
        held += result.point.low <= 100 <= result.point.high
    assert held >= 27


def test_what_is_too_uneven_to_say_is_no_saturation_point() -> None:
    # given a machine that stands still every third of a second, for as long
    result = run(PLAN, Simulated(slots=2, stalls=[(n / 1.5, n / 1.5 + 0.6) for n in range(90)]), 1)
    assert result.point is not None and result.point.low <= 200 <= result.point.high
    assert result.verdict.kind is VerdictKind.INVALID and "too uneven" in result.verdict.reason


@pytest.mark.parametrize(("slots", "service_s"), [(1, 1.0), (1, 0.6), (2, 2.0)])
def test_a_slow_service_is_not_taken_for_one_that_holds_everything(slots: int, service_s: float) -> None:
    # given one that ends fewer than 16 requests in a step
    plan = replace(PLAN, step_s=10.0, start=0.2, wanted=10 * slots / service_s)
    result = run(plan, Simulated(slots, service_s), 1)
    # expect it no farther up than twice its capacity, with an interval that says how little is known
    assert result.point is not None
    assert result.point.low <= slots / service_s <= result.point.high < 2.5 * slots / service_s
    assert result.verdict.kind is VerdictKind.FAIL
    assert run(replace(plan, wanted=0.0), Simulated(slots, service_s), 1).verdict.kind is VerdictKind.INVALID


def test_a_level_whose_growth_nobody_knows_proves_nothing() -> None:
    # given steps of a few requests each
    result = run(replace(PLAN, start=1.0, maximum=2.0, wanted=1.5), Simulated(), 1)
    assert result.point == Estimate(2.0, 0.0, math.inf)
    assert result.verdict.kind is VerdictKind.INVALID and "0/s for sure" in result.verdict.reason


def test_what_all_trials_refute_together_is_no_limit_of_the_tester() -> None:
    # given an upper end whose trials each leave open what they refute together
    plan = SaturationPlan("x", confirm=2, precision=0.25, start=100.0, maximum=125.0)
    course = open_search(plan, 100.0)
    probe, end = next(course), None
    while end is None:
        grown = 3.0 if probe.level > 100 else 0.0
        trial = Trial(
            probe.level, probe.phase == "ramp" and grown > 0, 100.0, False, Estimate(grown, grown - 4, grown + 4)
        )
        try:
            probe = course.send(trial)
        except StopIteration as stop:
            end = stop.value
    assert (end.low, end.high, end.confirmed, end.unfit) == (100.0, 125.0, True, False)


def test_trials_that_leave_it_open_alone_may_refute_a_level_together() -> None:
    # given a backlog that grows by 50 a second beyond 800, as far as each step can tell also by nothing
    unsure, steady = Estimate(50.0, -10.0, 110.0), Estimate(0.0, -5.0, 5.0)

    def found(level: float) -> Trial:
        return Trial(level, level > 900, min(level, 800.0), growth=unsure if level > 800 else steady)

    bracket = answer_with(open_search(PLAN, 100.0), found)
    assert bracket.low is not None and bracket.low <= 800
    assert pooled([unsure] * 4) == Estimate(50.0, 20.0, 80.0)


def test_closed_load_finds_the_plateau_and_the_fewest_in_flight() -> None:
    result = run(replace(PLAN, load="closed"), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.PASS
    assert result.point is not None and result.point.value == pytest.approx(CAPACITY, rel=0.01)
    assert result.parallel == 8
    # a knee that a straight rise to a ceiling has by every definition that looks at its own point
    assert {one.workers for one in result.knees if one.method in ("kneedle", "marginal")} == {8}


def test_closed_load_stays_below_its_latency_limit() -> None:
    # given 8 slots of 10 ms: with 9 in flight and more, requests wait
    result = run(replace(PLAN, load="closed", limit="p95<10.5ms"), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert result.parallel == 8 and result.point is not None
    assert result.point.value == pytest.approx(CAPACITY, rel=0.01)


def test_a_number_in_flight_that_does_not_hold_again_is_none_of_the_plateau() -> None:
    # given 32 in flight that hold once, and fail whenever they are repeated
    calls = Counter[float]()

    def found(level: float) -> Trial:
        calls[level] += 1
        return Trial(level, level == 32 and calls[level] > 1, 10 * min(level, 32.0) if level < 64 else 300.0)

    bracket = answer_with(search(replace(PLAN, load="closed", maximum=64.0), 1.0), found)
    assert calls[32.0] == 2
    assert (bracket.low, bracket.plateau_per_s) == (31.0, 310.0)


def test_the_operating_point_has_the_latency_of_theory() -> None:
    # given M/D/8 at 70 % of its capacity: wait of M/M/8 by Erlang C, over 2 and corrected (Cosmetatos 1975)
    result = run(replace(PLAN, step_s=60.0, start=400.0), Simulated(), 3)
    assert result.operating is not None
    theory = 0.010 + md_c_wait(result.operating.step.level, 8, 0.010)
    values = result.operating.latency
    assert values.mean == pytest.approx(theory, rel=0.02)
    assert values.p50 is not None and values.p50.value == pytest.approx(0.010, rel=0.01)


def md_c_wait(per_s: float, slots: int, service_s: float) -> float:
    """Mean wait of M/D/c; Cosmetatos' approximation, within 1 % here."""
    load = per_s * service_s
    part = load / slots
    terms = sum(load**k / math.factorial(k) for k in range(slots))
    last = load**slots / math.factorial(slots) / (1 - part)
    wait = last / (terms + last) / (slots / service_s - per_s)
    factor = 1 + (1 - part) * (slots - 1) * (math.sqrt(4 + 5 * slots) - 2) / (16 * part * slots)
    return wait / 2 * factor


def test_a_service_that_collapses_under_overload_is_still_bracketed() -> None:
    # given one that holds 500 a second and does next to nothing when it is given more
    search = open_search(PLAN, 50.0)
    bracket = answer_with(search, lambda level: Trial(level, level > 500, level if level <= 500 else 5.0))
    assert bracket.low is not None and bracket.high is not None
    assert bracket.low <= 500 < bracket.high
    assert bracket.high / bracket.low <= 1.1 and bracket.steps <= 12


@given(st.floats(1.0, 50_000.0), st.floats(0.0, 1.0), st.floats(0.5, 2000.0))
@settings(max_examples=200)
def test_any_capacity_ends_in_a_bracket_around_it(capacity: float, left: float, start: float) -> None:
    # given a service without noise that keeps `left` of its capacity under overload
    plan = replace(PLAN, most_steps=40)
    bracket = answer_with(
        open_search(plan, start), lambda level: Trial(level, level > capacity, min(level, capacity * left))
    )
    if bracket.low is not None and bracket.high is not None:
        assert bracket.low <= capacity < bracket.high
        assert bracket.confirmed
        assert bracket.high / bracket.low <= 1.0 + 1.01 * plan.precision


def test_an_end_that_says_something_else_when_repeated_moves() -> None:
    # given a level that held by chance once and never again
    calls: dict[float, int] = {}

    def found(level: float) -> Trial:
        calls[level] = calls.get(level, 0) + 1
        return Trial(level, level > 800 or (level > 700 and calls[level] > 1), min(level, 800.0))

    bracket = answer_with(open_search(PLAN, 100.0), found)
    assert bracket.low is not None and bracket.low <= 700 and bracket.confirmed


def test_a_level_that_never_settles_is_not_confirmed() -> None:
    flip = iter(range(10_000))
    bracket = answer_with(open_search(PLAN, 100.0), lambda level: Trial(level, next(flip) % 3 == 0, level))
    assert bracket.steps <= PLAN.most_steps


def test_a_limit_of_the_tester_is_never_taken_for_one_of_the_service() -> None:
    # given a tester that is late from 300 a second on, most of the time, and a service that holds it
    turn = iter(range(10_000))
    bracket = answer_with(
        open_search(PLAN, 100.0), lambda level: Trial(level, False, level, unfit=level > 300 and next(turn) % 3 < 2)
    )
    assert bracket.unfit and not bracket.confirmed
    # given one that is late in most repeats of a level that was saturated once
    calls: dict[float, int] = {}

    def found(level: float) -> Trial:
        calls[level] = calls.get(level, 0) + 1
        return Trial(
            level, level > 800 and calls[level] == 1, min(level, 800.0), unfit=level > 800 and calls[level] > 1
        )

    assert answer_with(open_search(PLAN, 100.0), found).unfit


def test_open_load_bends_at_one_knee() -> None:
    result = run(replace(PLAN, step_s=10.0), Simulated(), 1)
    (knee,) = result.knees
    assert knee.workers is not None and 700 <= knee.workers <= 850


def test_a_ramp_that_begins_too_high_goes_down() -> None:
    bracket = answer_with(open_search(PLAN, 6400.0), lambda level: Trial(level, level > 90, min(level, 90.0)))
    assert bracket.low is not None and bracket.high is not None and bracket.low <= 90 < bracket.high


def answer_with(search: Any, found: Any) -> Bracket:
    """Drive a search."""
    probe: Probe = next(search)
    while True:
        try:
            probe = search.send(found(probe.level))
        except StopIteration as stop:
            assert isinstance(stop.value, Bracket)
            return stop.value


def test_a_sweep_measures_what_it_was_told() -> None:
    plan = replace(PLAN, mode="sweep", load="closed", start=2.0, maximum=6.0, increment=2.0, repeats=2)
    levels = []

    def found(level: float) -> Trial:
        levels.append(level)
        return Trial(level, level >= 6, 10 * level)

    bracket = answer_with(search(plan, plan.start), found)
    assert levels == [2, 2, 4, 4, 6, 6]
    assert (bracket.low, bracket.high) == (4.0, 6.0)


@given(st.lists(st.tuples(st.sampled_from(Finding), st.floats(0.1, 1.2)), min_size=1, max_size=40), st.data())
@settings(max_examples=200)
def test_a_search_ends_within_the_steps_that_its_plan_is_said_to_take(
    findings: list[tuple[Finding, float]], data: st.DataObject
) -> None:
    # given answers by chance, over and over
    load = data.draw(st.sampled_from(["open", "closed"]))
    plan = replace(PLAN, load=load, most_steps=data.draw(st.integers(3, 14)), confirm=data.draw(st.integers(0, 4)))
    answers_by_chance, steps = itertools.cycle(findings), 0

    def found(level: float) -> Trial:
        nonlocal steps
        steps += 1
        finding, part = next(answers_by_chance)
        return Trial(level, finding is Finding.FAILED, part * level, undecided=finding is Finding.OPEN)

    answer_with(search(plan, 100.0 if load == "open" else 1.0), found)
    assert steps <= most_measured(plan)


class OnItsOwnClock:
    """A simulated service as a load that takes as long as its requests do."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def measure(self, order: Order, stopping: Any, tell: Any) -> Measured:
        if order.pace is None:
            rows = Simulated().closed(order.parallel, order.seconds)
        else:
            due = itertools.takewhile(lambda at: at < order.seconds, order.pace)
            rows = Simulated().open(list(itertools.islice(due, order.count or None)))
        ended = max(one.ended_s for one in rows)
        self.now_s += ended if order.count else max(order.seconds, ended)
        return Measured(rows, ended if order.count else order.seconds, 0.1, 0.0, 0.0, 0)

    def close(self) -> None:
        """Nothing is open."""


class Silent:
    """Hears how a run goes."""

    def note(self, line: str) -> None:
        """Nothing."""

    def step(self, line: str) -> None:
        """Nothing."""


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"load": "closed"},
        {"mode": "sweep", "start": 100.0, "increment": 100.0, "maximum": 1000.0},
        {"mode": "sweep", "start": 100.0, "increment": 100.0, "maximum": 1000.0, "repeats": 2, "step_s": 10.0},
        {"mode": "sweep", "start": 20.0, "increment": 20.0, "maximum": 60.0, "count": 1000, "warm_s": 0.0},
    ],
)
def test_a_dry_run_tells_how_long_a_run_takes(more: dict[str, Any]) -> None:
    plan = replace(PLAN, **more)
    load = OnItsOwnClock()

    def sleep(seconds: float) -> None:
        load.now_s += seconds

    result = Runner(plan, load, [], Silent(), clock=lambda: load.now_s, sleep=sleep).run()
    expected = forecast(plan)
    assert expected.usual_s is not None and expected.longest_s is not None
    assert expected.usual_s == pytest.approx(result.elapsed_s, rel=0.2)
    assert result.elapsed_s <= expected.longest_s
    measured = sum(one.step.phase not in ("warm", "operate") for one in result.steps)
    assert measured <= expected.most and (plan.mode == "search" or measured == expected.steps)


def test_a_dry_run_knows_what_it_cannot_know() -> None:
    # given steps that end by a number of requests whose rate the search is to find
    assert forecast(replace(PLAN, count=100)).usual_s is None
    assert forecast(replace(PLAN, mode="sweep", load="closed", start=2.0, count=100)).usual_s is None
    # expect a latency limit to make it four times as long at most, and agents half a second a step
    plain, limited = forecast(PLAN), forecast(replace(PLAN, limit="p99<50ms"))
    assert plain.longest_s is not None and limited.longest_s is not None
    assert 3 * plain.longest_s < limited.longest_s <= LONGEST * plain.longest_s
    agents = forecast(replace(PLAN, agents=4))
    assert agents.usual_s is not None and plain.usual_s is not None
    assert agents.usual_s - plain.usual_s == pytest.approx(0.5 * (plain.steps + 2))


def test_a_ramp_may_be_linear_as_the_original_one() -> None:
    plan = replace(PLAN, load="closed", increment=3.0, maximum=10.0)
    levels = []

    def found(level: float) -> Trial:
        levels.append(level)
        return Trial(level, False, 10 * level)

    answer_with(search(plan, 1.0), found)
    assert levels[:4] == [1, 4, 7, 10]


def test_the_backlog_of_an_overload_grows_by_what_is_too_much() -> None:
    due = [index / 900 for index in range(9000)]
    ended = [index / 800 for index in range(8000)]
    found = growth(due, ended, 1.0, 10.0)
    assert found is not None and found.low > 0
    assert found.value == pytest.approx(100, rel=0.02)
    assert mean_backlog([0.0, 1.0], [1.5], 0.0, 2.0) == pytest.approx((2 + 1 - 0.5) / 2)


def test_a_steady_backlog_does_not_grow() -> None:
    chance = random.Random(1)
    due = sorted(chance.uniform(0, 10) for _ in range(5000))
    found = growth(due, sorted(at + 0.5 for at in due), 1.0, 10.0)
    assert found is not None and found.low < 0 < found.high


def test_few_completions_of_many_that_were_due_say_that_the_backlog_grows() -> None:
    due = [index / 4 for index in range(40)]
    found = scarce_growth(due, [float(index) for index in range(10)], 2.0, 10.0)
    assert found is not None and found.value == 3.0 and 0 < found.low < 3.0 < found.high
    # of many slots that take long, all is due and ended alike
    steady = scarce_growth([index / 2 for index in range(40)], [index / 1.4 for index in range(20)], 2.0, 10.0)
    assert steady is not None and steady.low < 0 < steady.high
    assert scarce_growth(due[:15], [], 0.0, 10.0) is None


def test_too_few_completions_say_nothing_of_growth() -> None:
    assert growth([0.0, 1.0], [0.5, 1.5], 0.0, 2.0) is None
    assert rate([0.5, 1.5], 0.0, 2.0).high == math.inf


def step(level: float = 100.0, seconds: float = 10.0, phase: str = "ramp", **more: Any) -> SaturationStep:
    """An open one."""
    return SaturationStep(0, phase, "open", level, seconds, 0, 1.0, **more)


def test_errors_are_counted_by_kind_and_retries_apart() -> None:
    rows = []
    for number in range(1000):
        at = number / 100
        kind = "503" if number % 10 == 0 else "refused" if number % 10 == 1 else OK
        if kind == "503":
            rows.append(Sample(number, 1, False, at, at, at, at + 0.01, "reset"))
        rows.append(Sample(number, 2 if kind == "503" else 1, True, at, at, at, at + 0.02, kind))
    found = assess(PLAN, step(), rows)
    assert found.errors == {"503": 90, "refused": 90}
    assert found.attempts == 1100
    assert found.saturated.startswith("80.0% succeeded")


def test_what_was_never_sent_is_backlog_and_no_error() -> None:
    rows = [Sample(n, 1, True, n / 100, n / 100, n / 100, n / 100 + 0.01, OK) for n in range(900)]
    rows += [Sample(900 + n, 1, True, 9 + n / 100, 9.0, 30.0, 30.0, UNSENT) for n in range(100)]
    found = assess(PLAN, step(), rows)
    assert found.errors == {} and found.success == 1.0


@pytest.mark.parametrize(("per_s", "saturated"), [(600, False), (1000, True)])
def test_a_fixed_number_of_requests_saturates_by_its_backlog_too(per_s: int, saturated: bool) -> None:
    # given 2,000 requests, evenly, for a service that does 800 a second; the step ends when the last one has
    rows = Simulated().open([n / per_s for n in range(2000)])
    whole = step(per_s, max(one.ended_s for one in rows))
    found = assess(replace(PLAN, count=2000), whole, rows)
    assert bool(found.saturated) is saturated
    assert found.growth is not None and found.growth.value == pytest.approx(max(0, per_s - 800), abs=5)
    assert found.latency.count == 2000


def test_a_late_tester_is_named_and_the_step_measured_again() -> None:
    rows = [Sample(n, 1, True, n / 100, n / 100 + 0.08, n / 100 + 0.08, n / 100 + 0.09, OK) for n in range(1000)]
    found = assess(PLAN, step(cpu=0.2, throttled_s=3.0), rows)
    assert "the tester was the bottleneck" in found.tester and "CPU limit" in found.tester
    course = SaturationSequence(replace(PLAN, warm_s=0.0, start=100.0))
    asked = course.next
    for _ in range(MOST_AGAIN):
        course.tell(found)
        assert course.next == asked
    for _ in range(1000):
        if course.next is None:
            break
        course.tell(found)
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "the tester was the bottleneck" in result.verdict.reason


def test_a_disturbed_operating_point_is_a_warning_beside_the_saturation_point() -> None:
    # given a run whose point was found and confirmed, and a tester that was late at 70 % of it in every try
    plan = replace(PLAN, step_s=10.0)
    course, chance = SaturationSequence(plan), random.Random(1)
    while course.next is not None:
        probe = course.next
        late_s = 0.08 if probe.phase == "operate" else 0.0
        if probe.phase == "warm":
            rows, kind = Simulated().closed(1, 10.0), "closed"
        else:
            rows, kind = Simulated().open(list(pace.exact_poisson(probe.level, 10.0, chance))), "open"
        late = [one._replace(noticed_s=one.due_s + late_s, sent_s=one.due_s + late_s) for one in rows]
        course.tell(assess(plan, SaturationStep(0, probe.phase, kind, probe.level, 10.0, 0, 1.0, cpu=0.1), late))
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert result.operating is None
    (warning,) = result.warnings
    # who uses a tenth of a core is not what was too slow
    assert "is unknown" in warning and "disturbed" in warning and "bottleneck" not in warning


def swept(rates: list[float], load: str, wanted: float, maximum: float, slots: int = 8) -> SaturationResult:
    """A sweep of a service of so many slots of 10 ms."""
    plan = replace(PLAN, mode="sweep", load=load, start=rates[0], maximum=maximum, increment=rates[1], wanted=wanted)
    return run(plan, Simulated(slots), 1)


@pytest.mark.parametrize(
    ("load", "start", "increment", "maximum", "wanted", "kind"),
    [
        # the levels end below what is wanted, reach it, just reach it, or one below it is too much
        ("open", 10.0, 10.0, 30.0, 100.0, "FAIL"),
        ("open", 100.0, 100.0, 400.0, 300.0, "PASS"),
        ("open", 100.0, 100.0, 300.0, 300.0, "INVALID"),
        ("open", 500.0, 400.0, 1000.0, 700.0, "INVALID"),
        ("open", 400.0, 200.0, 1000.0, 1200.0, "FAIL"),
        ("open", 900.0, 100.0, 1000.0, 1000.0, "FAIL"),
        ("open", 900.0, 100.0, 1000.0, 500.0, "INVALID"),
        # one in flight does 100 a second, eight do 800
        ("closed", 1.0, 1.0, 3.0, 1000.0, "FAIL"),
        ("closed", 1.0, 1.0, 9.0, 700.0, "PASS"),
        ("closed", 1.0, 1.0, 9.0, 1000.0, "FAIL"),
    ],
)
def test_a_sweep_is_judged_by_what_is_wanted(
    load: str, start: float, increment: float, maximum: float, wanted: float, kind: str
) -> None:
    verdict = swept([start, increment], load, wanted, maximum).verdict
    assert verdict.kind == kind, verdict
    assert verdict.remedy or kind == "PASS"


def test_closed_load_below_what_is_wanted_fails() -> None:
    result = run(replace(PLAN, load="closed", wanted=100.0), Simulated(slots=4, service_s=0.1), 1)
    assert result.point is not None and result.point.high < 100
    assert result.verdict.kind is VerdictKind.FAIL, result.verdict
    # and one whose plateau was not reached decides nothing
    short = run(replace(PLAN, load="closed", wanted=100.0, maximum=2.0), Simulated(slots=4, service_s=0.1), 1)
    assert short.verdict.kind is VerdictKind.INVALID


@pytest.mark.parametrize(("wanted", "kind"), [(700.0, "PASS"), (1000.0, "FAIL"), (0.0, "PASS")])
def test_what_is_wanted_decides(wanted: float, kind: str) -> None:
    assert run(replace(PLAN, wanted=wanted), Simulated(), 1).verdict.kind == kind


def test_a_point_at_which_growth_is_hardly_known_is_told() -> None:
    # given service times so different that steps of a second tell little of the backlog
    chance = random.Random(1)
    wild = Simulated(noise=lambda: chance.expovariate(1.0))
    short = run(replace(PLAN, step_s=1.0), wild, 1)
    assert any("backlog may still have grown" in one for one in short.warnings)
    assert not any("backlog may" in one for one in run(replace(PLAN, step_s=10.0), Simulated(), 1).warnings)


def test_a_service_that_is_never_saturated_is_undecided() -> None:
    result = run(replace(PLAN, maximum=400.0), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.INVALID
    assert "400" in result.verdict.reason
    assert run(replace(PLAN, maximum=400.0, wanted=300.0), Simulated(), 1).verdict.kind is VerdictKind.PASS


def test_a_latency_limit_saturates_too() -> None:
    # given M/D/8, of which 5 % take longer than 11 ms at LIMIT_11MS requests a second
    held = 0
    for seed in range(10):
        result = run(replace(PLAN, limit="p95<11ms"), Simulated(), seed)
        assert result.point is not None and result.verdict.kind is VerdictKind.PASS, result.verdict
        held += result.point.low <= LIMIT_11MS <= result.point.high
    assert held >= 9


def test_few_requests_that_are_all_too_slow_refute_a_latency_limit_at_once() -> None:
    # given a service of 100 ms, and steps of fewer requests than the percentile itself needs
    plan = SaturationPlan("simulated", step_s=5.0, warm_s=0.5, limit="p99<50ms")
    result = run(plan, Simulated(1, 0.1), 1)
    searched = [one for one in result.steps if one.step.phase == "ramp" and one.latency.count]
    assert searched and all(one.saturated and not one.undecided for one in searched)
    assert result.point is None and result.verdict.kind is VerdictKind.INVALID
    assert "took longer than 50 ms" in result.verdict.reason
    # and where a rate is wanted, that is an answer
    assert run(replace(plan, wanted=100.0), Simulated(1, 0.1), 1).verdict.kind is VerdictKind.FAIL


@pytest.mark.parametrize("load", ["open", "closed"])
@pytest.mark.parametrize("mode", ["search", "sweep"])
def test_a_latency_limit_that_too_few_requests_meet_stays_undecided(mode: str, load: str) -> None:
    # given levels at which four steps together have fewer requests than show p99, none of them too slow
    ends = {"start": 2.0, "maximum": 8.0, "increment": 2.0} if load == "open" else {"start": 1.0, "maximum": 1.0}
    plan = SaturationPlan("simulated", load, mode, step_s=2.0, warm_s=0.5, limit="p99<500ms", wanted=0.0, **ends)  # type: ignore[arg-type]
    result = run(plan, Simulated(1, 0.05), 1)
    assert all(one.undecided for one in result.steps if one.step.phase != "warm")
    assert result.verdict.kind is VerdictKind.INVALID and "neither refuted nor shown" in result.verdict.reason
    assert "--step-time" in result.verdict.remedy and "percentile" in result.verdict.remedy


def test_a_step_is_extended_until_its_latency_limit_is_decided() -> None:
    # given 30 requests a second, of which a step counts about 96, and p99 needs 299
    plan = replace(PLAN, mode="sweep", start=30.0, limit="p99<50ms")
    result = run(plan, Simulated(), 1)
    steps = [one for one in result.steps if one.step.phase == "sweep"]
    assert len(steps) == LONGEST
    assert [bool(one.undecided) for one in steps] == [True, True, True, False]
    assert steps[-1].exceeded is not None and steps[-1].exceeded.count >= 299
    assert result.verdict.kind is VerdictKind.PASS


def test_a_repeat_that_says_the_contrary_is_counted() -> None:
    # given a step that held by chance at the rate that was too much
    plan = replace(PLAN, warm_s=0.0, start=100.0, maximum=125.0, precision=0.25, confirm=2)
    course = SaturationSequence(plan)
    turn = iter(range(100))
    while course.next is not None:
        level = course.next.level
        per_s = 100.0 if level > 100 and next(turn) != 1 else level
        rows = Simulated(slots=1, service_s=1 / per_s).open([n / level for n in range(int(level * 4))])
        course.tell(assess(plan, step(level, 4.0, phase=course.next.phase), rows))
    result = conclude(course)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert "same when repeated" not in result.verdict.reason
    assert "1 of the 5 steps at these two rates showed the contrary" in result.verdict.reason


def test_slow_requests_get_longer_steps_and_warm_ups() -> None:
    assert timing(10.0, 0.01) == (10.0, 1.0)
    assert timing(10.0, 5.0) == (50.0, 10.0)


@given(st.integers(1, 7), st.integers(0, 1 << 30))
@settings(max_examples=20)
def test_merged_agents_are_one_tester_bit_for_bit(agents: int, seed: int) -> None:
    # given so many agents, each with its part of the requests, whose findings go over the wire
    chance = random.Random(seed)
    rows = []
    for number in range(2000):
        due = number / 200
        rows.append(Sample(number, 1, True, due, due, due, due + chance.lognormvariate(-4, 1), OK))
    parts = [rows[index::agents] for index in range(agents)]
    known = {"open": True, "late_s": 0.0, "seconds": 10.0, "cpu": 0.1, "beat_s": 0.0, "throttled_s": 0.0, "unsent": 0}
    brought = [
        {**known, "agent": index, "samples": [list(one._replace(request=n)) for n, one in enumerate(part)]}
        for index, part in enumerate(parts)
    ]
    chance.shuffle(brought)
    joined = merged(json.loads(json.dumps(brought)), agents).samples
    # expect every request once, the same percentiles and intervals, and the sum of their histograms
    assert sorted(one.request for one in joined) == list(range(2000))
    mine, theirs = assess(PLAN, step(), joined), assess(PLAN, step(), rows)
    assert (mine.latency, mine.goodput, mine.growth) == (theirs.latency, theirs.goodput, theirs.growth)
    added = sum((Counter(histogram.bucket(one.latency_s) for one in part) for part in parts), Counter[int]())
    whole = Counter(histogram.bucket(one.latency_s) for one in rows)
    assert added == whole
    for share in (0.5, 0.9, 0.95, 0.99, 0.999):
        assert histogram.quantile(added, share) == histogram.quantile(whole, share)


class Table(Meeting):
    """A meeting at one table: an agent works when its order is there."""

    def __init__(self, agents: int, load: LevelLoad) -> None:
        self.agents, self.load, self.coming, self.done = agents, load, iter(range(agents)), list[dict[str, Any]]()

    def offset_s(self) -> float:
        return 0.0

    def plan(self) -> dict[str, Any]:
        return {}

    def join(self) -> int:
        return next(self.coming)

    def order(self, orders: list[dict[str, Any]]) -> None:
        self.orders = {index: [one] for index, one in enumerate(orders)}
        for _ in range(self.agents):
            serve(self, lambda plan, name: self.load, sleep=lambda seconds: None)

    def next_order(self, index: int) -> dict[str, Any] | None:
        return self.orders[index].pop() if self.orders[index] else None

    def alive(self) -> bool:
        return False

    def bring(self, number: int, found: dict[str, Any]) -> None:
        self.done.append(found)

    def brought(self, number: int) -> dict[str, Any] | None:
        return self.done.pop(0)


class Counting:
    """Ends what it is asked for at once."""

    def __init__(self) -> None:
        self.orders: list[Order] = []

    def measure(self, order: Order, stopping: Any, tell: Any) -> Measured:
        self.orders.append(order)
        return Measured([Sample(n, 1, True, 0.0, 0.0, 0.0, 0.1, OK) for n in range(order.count)], 1.0, 0, 0, 0, 0)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize(("parallel", "count"), [(1, 5), (2, 5), (5, 7), (9, 2), (1, 0), (2, 0)])
def test_agents_that_keep_nothing_in_flight_have_nothing_to_do(parallel: int, count: int) -> None:
    # given three agents under closed load; expect the whole number in flight, and exactly so many requests
    load = Counting()
    found = AgentsLoad(Table(3, load), 3).measure(Order(1.0, parallel=parallel, count=count), lambda: False, print)
    assert len(found.samples) == count
    assert sum(one.count for one in load.orders) == count
    assert sum(one.parallel for one in load.orders) == (parallel if count != 2 else 6)
    assert all(one.parallel for one in load.orders)


@given(st.integers(1, 500), st.floats(0.1, 5.0))
def test_an_exact_poisson_process_has_the_rate_that_was_asked(rate_per_s: int, long: float) -> None:
    times = list(pace.exact_poisson(rate_per_s, long, random.Random(1)))
    assert len(times) == max(1, round(rate_per_s * long))
    assert times == sorted(times) and times[0] >= 0 and times[-1] < long


SAMPLES = st.builds(
    Sample,
    st.integers(0, 1 << 40),
    st.integers(1, 100),
    st.booleans(),
    *[st.floats(0, 1e6).map(lambda value: round(value, 6))] * 4,
    st.text(min_size=1, max_size=20),
    st.integers(0, 1 << 40),
    st.none() | st.floats(0, 1e6),
    st.text(max_size=20),
    st.text(max_size=20),
    st.integers(0, 1 << 40),
)


@given(SAMPLES, st.integers(0, 1 << 30))
def test_a_sample_survives_its_line(sample: Sample, number: int) -> None:
    try:
        line = to_json(sample, number)
        line.encode()
    except UnicodeEncodeError:
        return
    assert from_json(line) == (number, sample)


@given(st.text(max_size=200) | st.binary(max_size=200))
def test_any_line_is_a_sample_or_an_error_that_says_so(text: str | bytes) -> None:
    with pytest.raises(InvalidValue):
        from_json(text)


@given(
    st.dictionaries(st.sampled_from(["step", "request", "final", "due_s", "outcome", "x"]), st.integers() | st.text())
)
def test_any_step_on_disk_is_read_or_an_error(row: dict[str, Any]) -> None:
    import json

    with pytest.raises(InvalidValue):
        SaturationStep.from_json(json.dumps(row))


@given(st.dictionaries(st.text(max_size=12), st.integers() | st.text(max_size=8) | st.none(), max_size=6))
def test_any_plan_on_disk_is_read_or_an_error(row: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        SaturationPlan.from_dict({**row, "target": 3})


def test_a_plan_survives_its_file() -> None:
    assert SaturationPlan.from_dict(PLAN.to_dict()) == PLAN


@given(st.text(max_size=40))
def test_any_header_is_a_time_or_none(text: str) -> None:
    value = server_time(text)
    assert value is None or 0 <= value < 1e9


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0.012", 0.012), ("12", 0.012), ("12ms", 0.012), ("0.5s", 0.5), ("800us", 0.0008), ("app;dur=12.5, db", 0.0125)],
)
def test_times_of_services_are_understood(text: str, seconds: float) -> None:
    assert server_time(text) == pytest.approx(seconds)


@given(st.text(max_size=30))
def test_any_latency_limit_is_read_or_an_error(text: str) -> None:
    try:
        name, limit_s = latency_limit(text)
    except InvalidValue:
        return
    assert name in ("p50", "p90", "p95", "p99") and limit_s >= 0


def test_the_five_queries_tell_the_seconds_of_different_steps_apart() -> None:
    # given two steps, the second of which began a minute after the first
    first = [
        Sample(0, 1, True, 0.0, 0.0, 0.0, 0.5, OK, agent="1"),
        Sample(1, 1, True, 0.0, 0.0, 0.0, 1.5, OK, agent="2"),
    ]
    second = [
        Sample(0, 1, True, 0.0, 0.0, 0.0, 0.75, OK, agent="2"),
        Sample(1, 1, True, 0.0, 0.0, 0.0, 1.9, "503", agent="2"),
    ]
    steps = [
        replace(step(began="1970-01-01T00:01:40.000+00:00"), number=0),
        replace(step(began="1970-01-01T00:02:40.000+00:00"), number=1),
    ]
    total, errors, seconds, clients, messages = answers("me", steps, {0: first, 1: second})
    assert total.rows == [(4,)]
    assert errors.rows == [("me-2", "503", 1)]
    assert seconds.columns == ("second", "messages", "mean_latency_s")
    assert seconds.rows == [(100, 1, 0.5), (101, 1, 1.5), (160, 1, 0.75)]
    assert clients.rows[0] == ("me-1", 100.5, 100.5, None, None, 1, 0, 1.0, 0.0)
    assert clients.rows[1] == ("me-2", 101.5, 160.75, 161.9, 161.9, 2, 1, pytest.approx(2 / 3), pytest.approx(60.4))
    assert messages.rows == [("me-1", 1), ("me-2", 3)]


def test_payloads_come_in_turn(tmp_path: Any) -> None:
    file = tmp_path / "lines.txt"
    file.write_text("one\n\ntwo\n")
    made = provided(f"lines:{file}")
    assert [made.get(number) for number in range(3)] == [b"one", b"two", b"one"]
    assert provided(f"folder:{tmp_path}").get(7) == file.read_bytes()
    assert Payloads().get(5) is None
    with pytest.raises(UsageError, match="no payload provider 'x'"):
        provided("x:y")
    with pytest.raises(UsageError, match="cannot be read"):
        provided(f"file:{tmp_path / 'none'}")


def test_a_provider_that_is_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    # given one that gives text, bytes and a value
    monkeypatch.setitem(BUILT_IN, "mine", lambda argument: [argument, b"b", {"a": 1}])
    made = provided("mine:text")
    assert [made.get(number) for number in range(3)] == [b"text", b"b", b'{"a": 1}']

    def broken(argument: str) -> list[object]:
        raise ValueError("no such account")

    monkeypatch.setitem(BUILT_IN, "mine", broken)
    with pytest.raises(UsageError, match="no such account"):
        provided("mine")


ORIGINAL = {
    "execution": {
        "autoScaling": True,
        "autoScaleIncrement": 2,
        "threadCount": 4,
        "maxThreadCount": 30,
        "threadStep": 5,
        "testCountPerThreadStep": 8,
        "retryCount": 3,
        "clientName": "vm-1",
    },
    "logDirectory": "logs",
    "defaultProvider": {"endpointUrl": "http://h/score", "fileInput": "one.json", "recordCount": 1000},
}


def test_the_original_tools_configuration_is_understood() -> None:
    found = original.settings(ORIGINAL)
    assert found == {
        "load": "closed",
        "mode": "search",
        "start": 4.0,
        "maximum": 30.0,
        "increment": 2.0,
        "most_steps": 8,
        "retries": 2,
        "client_name": "vm-1",
        "original_csv": "logs",
        "url": "http://h/score",
        "payload": "one.json",
        "method": "POST",
        "count": 1000,
    }
    sweep = original.settings({**ORIGINAL, "execution": {**ORIGINAL["execution"], "autoScaling": False}})  # type: ignore[dict-item]
    assert (sweep["mode"], sweep["increment"], sweep["repeats"]) == ("sweep", 5.0, 8)


@pytest.mark.parametrize(
    "more",
    [
        {"defaultProvider": {"endpointKey": "secret"}},
        {"eventHubConfiguration": {"hubName": "h", "connectionString": "secret"}},
        {"recordProvider": {"storage": {"storageKey": "secret"}}},
        {"recordProviderDiskLocation": "c:/dlls"},
        {"strange": 1},
        {"execution": {"threadCount": "four"}},
    ],
)
def test_what_the_original_has_and_we_do_not_is_said(more: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        original.settings({**ORIGINAL, **more})
    assert "secret" not in str(raised.value.message) or "a secret" in str(raised.value.message)


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)
ROWS = st.dictionaries(st.sampled_from(["autoScaling", "threadCount", "local", "recordCount", "fileInput"]), LEAVES)
VALUES = LEAVES | st.lists(LEAVES, max_size=2) | ROWS | st.dictionaries(st.sampled_from(["local", "storage"]), ROWS)


@given(st.dictionaries(st.sampled_from(sorted(original.SECTIONS)), VALUES))
def test_any_original_configuration_is_read_or_an_error(data: dict[str, Any]) -> None:
    try:
        original.settings(data)
    except UsageError:
        pass


def test_pods_times_stand_beside_the_clients() -> None:
    # given a pod that says 10 ms where its client saw 40, and a log that says 5, 15 and something else
    rows = [Sample(n, 1, True, 0.0, 0.0, 0.0, 0.04, OK, server_s=0.01, pod="a") for n in range(3)]
    (one,) = from_headers(rows)
    assert (one.pod, one.count, one.mean_s, one.queueing) == ("a", 3, pytest.approx(0.01), pytest.approx(0.75))
    lines = ["took 5 ms", "took 15.0 ms", "took long ms", "nothing"]
    (two,) = from_logs({"b": lines, "c": []}, r"took (\S+) ms", 0.02)
    assert (two.pod, two.count, two.mean_s, two.queueing) == ("b", 2, pytest.approx(0.01), pytest.approx(0.5))
    for pattern in ("(", "no group"):
        with pytest.raises(InvalidValue, match="--log-pattern"):
            from_logs({}, pattern, None)


def test_settings_are_all_combinations_and_ranked_by_what_they_cost() -> None:
    made = tuning.settings(["cpu=250m,1", "replicas=1,2"])
    assert made == [
        {"cpu": "250m", "replicas": "1"},
        {"cpu": "250m", "replicas": "2"},
        {"cpu": "1", "replicas": "1"},
        {"cpu": "1", "replicas": "2"},
    ]
    slow = tuning.TriedSetting(made[0], 20.0, 0.1, 1, 0.25, 0.0, used_cpu=0.25)
    dear = tuning.TriedSetting(made[2], 40.0, 0.1, 1, 1.0, 0.0, used_cpu=0.1)
    failed = tuning.TriedSetting(made[3], None, None, 2, 1.0, 0.0, trouble="no room")
    assert tuning.ranked([failed, dear, slow]) == [slow, dear, failed]
    assert slow.marks == ["CPU pegged at 100%"] and dear.marks == ["CPU idle at 10%"]
    assert slow.worth == 80.0


@given(st.lists(st.text(max_size=20) | st.sampled_from(["cpu=1,2", "cpu=3", "replicas=0", "memory=1Gi"]), max_size=4))
def test_any_settings_are_read_or_an_error(texts: list[str]) -> None:
    try:
        made = tuning.settings(texts)
    except InvalidValue:
        return
    assert len(made) <= tuning.MOST_SETTINGS


def test_a_container_is_changed_where_its_concurrency_lives() -> None:
    container = {"name": "m", "args": ["--workers=1", "x"], "env": [{"name": "W", "value": "1"}, {"name": "B"}]}
    by_env = changed(container, {"concurrency": "4"}, "W", "")
    # its place is kept: variables may refer to those before them
    assert by_env["env"] == [{"name": "W", "value": "4"}, {"name": "B"}] and by_env["args"] == container["args"]
    assert changed(container, {"concurrency": "4"}, "", "--workers")["args"] == ["--workers=4", "x"]
    assert changed({}, {"concurrency": "4"}, "", "--workers")["args"] == ["--workers=4"]
    assert with_argument(["--workers", "1"], "--workers", "4") == ["--workers", "4"]
    with pytest.raises(UsageError, match="concurrency"):
        changed(container, {"concurrency": "4"}, "", "")
    # the original is as it was
    assert container["args"] == ["--workers=1", "x"]


@pytest.mark.parametrize("text", ["model", "svc/", "svc/Model", "svc/a:b:c", "svc/a b", "pod/a"])
def test_what_is_no_service_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        reference(text)


def test_a_command_line_loses_its_secrets() -> None:
    words = [
        "saturate",
        "--url",
        "http://me:word@h/?code=abc&x=1",
        "-H",
        "Authorization: Bearer abc",
        "--header=K: abc",
    ]
    assert "abc" not in " ".join(public(words)) and "word" not in " ".join(public(words))
    assert public(["-H", "K: abc"]) == ["-H", "K: ***"]


def test_figures_of_cadvisor_are_summed_by_pod() -> None:
    page = """# HELP container_cpu_usage_seconds_total x
container_cpu_usage_seconds_total{container="a",namespace="n",pod="p",image="x{y}"} 1.5 1700000000000
container_cpu_usage_seconds_total{container="b",namespace="n",pod="p"} 2
container_cpu_usage_seconds_total{container="",namespace="n",pod="p"} 99
container_cpu_usage_seconds_total{container="a",namespace="other",pod="p"} 99
container_memory_working_set_bytes{container="a",namespace="n",pod="p"} 1e+06
container_memory_working_set_bytes{container="POD",namespace="n",pod="p"} 99
"""
    assert parsed(page, "n") == {"p": (3.5, 1e6, 1.7e9)}


@given(st.text(max_size=200))
def test_any_page_of_figures_is_read(text: str) -> None:
    assert isinstance(parsed(text, "n"), dict)
