"""The search for saturation, against services with a known capacity, and how long it takes."""

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.model import VerdictKind
from scaletest.model.attempt import Attempt
from scaletest.runs.progress import ExpectedEnd, narrow_end
from scaletest.saturation.judging.backlog import pool_estimates
from scaletest.saturation.judging.forecast import DRAIN_S, forecast, most_measured, time_left
from scaletest.saturation.judging.search_closed_load import search_closed_load
from scaletest.saturation.judging.search_open_load import search_open_load
from scaletest.saturation.judging.step import AssessedStep, step_timing
from scaletest.saturation.judging.step_sequence import (
    MOST_LENGTHS,
    OPERATING_STEPS,
    SaturationSequence,
)
from scaletest.saturation.judging.trial import Bracket, Finding, Probe, Trial
from scaletest.saturation.measure.runner import Runner
from scaletest.saturation.plan import Phase, SaturationPlan
from scaletest.stats.estimate import Estimate
from tests.unit.simulated import PLAN, Simulated, run
from tests.unit.told import telling

CAPACITY = 800.0


def noisy(seed: int) -> Simulated:
    """Service times with a standard deviation of a fifth."""
    chance = random.Random(seed)
    return Simulated(noise=lambda: chance.lognormvariate(-0.02, 0.2))


@pytest.mark.parametrize("kind", ["M/D/8", "refuses", "noisy"])
def test_open_load_finds_the_capacity_in_19_of_20_runs(kind: str) -> None:
    hits = []
    for seed in range(20):
        service = {"M/D/8": Simulated(), "refuses": Simulated(room=64), "noisy": noisy(seed)}[kind]
        result = run(PLAN, service, seed)
        assert result.searched <= 12
        hits.append(result.point is not None and abs(result.point.value / CAPACITY - 1) <= 0.03)
    assert sum(hits) >= 19


class Mortal(Simulated):
    """It serves so many steps, then every request ends so."""

    def __init__(self, lives: int, outcome: str) -> None:
        super().__init__()
        self._lives, self._outcome = lives, outcome

    def open(self, due: list[float]) -> list[Attempt]:
        self._lives -= 1
        return (
            super().open(due)
            if self._lives >= 0
            else [self._failed(n, at) for n, at in enumerate(due)]
        )

    def closed(self, parallel: int, seconds: float) -> list[Attempt]:
        self._lives -= 1
        return (
            super().closed(parallel, seconds)
            if self._lives >= 0
            else [self._failed(n, n * seconds / 99) for n in range(99)]
        )

    def _failed(self, number: int, at: float) -> Attempt:
        return Attempt(number, at, at, at, at + 0.001, self._outcome)


@pytest.mark.parametrize("outcome", ["refused", "timed out"])
@pytest.mark.parametrize("load", ["open", "closed"])
def test_a_service_that_ends_in_the_midst_of_a_run_ends_the_run(load: str, outcome: str) -> None:
    plan = replace(PLAN, load=load, maximum=64.0 if load == "closed" else 0.0)
    whole = len(run(plan, Simulated(), 1).steps)
    for lives in range(2, whole, 2):
        result = run(plan, Mortal(lives, outcome), 1)
        # then the search does not follow it down for minutes, and says no point that it has not
        # measured
        assert (
            result.verdict.kind is VerdictKind.INVALID
            and "the service is gone" in result.verdict.reason
        ), lives
        assert outcome in result.verdict.reason and len(result.steps) <= lives + (
            3 if outcome == "refused" else 20
        )


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
    covered = 0
    for seed in range(30):
        result = run(plan, make(seed), seed)
        assert result.point is not None and result.searched <= 12
        covered += result.point.low <= 100 <= result.point.high
    assert covered >= 27


def test_uneven_throughput_makes_the_run_invalid() -> None:
    # given a machine that stands still every third of a second, for as long
    result = run(PLAN, Simulated(slots=2, stalls=[(n / 1.5, n / 1.5 + 0.6) for n in range(90)]), 1)
    assert result.point is not None and result.point.low <= 200 <= result.point.high
    assert result.verdict.kind is VerdictKind.INVALID and "too uneven" in result.verdict.reason


@pytest.mark.parametrize(("slots", "service_s"), [(1, 1.0), (1, 0.6), (2, 2.0)])
def test_a_slow_service_is_not_taken_for_one_that_holds_everything(
    slots: int, service_s: float
) -> None:
    # given one that ends fewer than 16 requests in a step
    plan = replace(PLAN, step_s=10.0, start=0.2, wanted=10 * slots / service_s)
    result = run(plan, Simulated(slots, service_s), 1)
    # expect it no farther up than twice its capacity, with an interval that says how little is
    # known
    assert result.point.low <= slots / service_s <= result.point.high < 2.5 * slots / service_s
    assert result.verdict.kind is VerdictKind.FAIL
    assert (
        run(replace(plan, wanted=0.0), Simulated(slots, service_s), 1).verdict.kind
        is VerdictKind.INVALID
    )


def test_a_level_with_unknown_growth_makes_the_run_invalid() -> None:
    # given steps of a few requests each
    result = run(replace(PLAN, start=1.0, maximum=2.0, wanted=1.5), Simulated(), 1)
    assert result.point == Estimate(2.0, 0.0, math.inf)
    assert result.verdict.kind is VerdictKind.INVALID and "0/s for sure" in result.verdict.reason


def test_a_level_refuted_by_all_trials_together_is_no_limit_of_the_tester() -> None:
    # given an upper end whose trials each leave open what they refute together
    plan = SaturationPlan("x", precision=0.25, start=100.0, maximum=125.0)
    course = search_open_load(plan, 100.0)
    probe, end = next(course), None
    while end is None:
        grown = 3.0 if probe.level > 100 else 0.0
        trial = Trial(
            probe.level,
            probe.phase == "ramp" and grown > 0,
            100.0,
            False,
            Estimate(grown, grown - 4, grown + 4),
        )
        try:
            probe = course.send(trial)
        except StopIteration as stop:
            end = stop.value
    assert (end.low, end.high, end.confirmed, end.tester_was_late) == (100.0, 125.0, True, False)


def test_undecided_trials_may_refute_a_level_together() -> None:
    # given a backlog that grows by 50 a second beyond 800, as far as each step can tell also by
    # nothing
    unsure, steady = Estimate(50.0, -10.0, 110.0), Estimate(0.0, -5.0, 5.0)

    def measure(level: float) -> Trial:
        return Trial(
            level, level > 900, min(level, 800.0), backlog_growth=unsure if level > 800 else steady
        )

    bracket = answer_with(search_open_load(PLAN, 100.0), measure)
    assert bracket.low is not None and bracket.low <= 800
    assert pool_estimates([unsure] * 4) == Estimate(50.0, 20.0, 80.0)


def test_closed_load_finds_the_plateau_and_the_fewest_in_flight() -> None:
    result = run(replace(PLAN, load="closed"), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.PASS
    assert result.point is not None and result.point.value == pytest.approx(CAPACITY, rel=0.01)
    assert result.parallel == 8


def test_closed_load_stays_below_its_latency_limit() -> None:
    # given 8 slots of 10 ms: with 9 in flight and more, requests wait
    result = run(replace(PLAN, load="closed", limit="p95<10.5ms"), Simulated(), 1)
    assert result.verdict.kind is VerdictKind.PASS, result.verdict
    assert result.parallel == 8 and result.point is not None
    assert result.point.value == pytest.approx(CAPACITY, rel=0.01)


def test_a_number_in_flight_that_fails_when_repeated_is_off_the_plateau() -> None:
    # given 32 in flight that hold once, and fail whenever they are repeated
    calls = Counter[float]()

    def measure(level: float) -> Trial:
        calls[level] += 1
        return Trial(
            level, level == 32 and calls[level] > 1, 10 * min(level, 32.0) if level < 64 else 300.0
        )

    bracket = answer_with(
        search_closed_load(replace(PLAN, load="closed", maximum=64.0), 1), measure
    )
    assert calls[32.0] == 2
    assert (bracket.low, bracket.plateau_per_s) == (31.0, 310.0)


def test_the_operating_point_has_the_latency_of_theory() -> None:
    # given M/D/8 at 70 % of its capacity: wait of M/M/8 by Erlang C, over 2 and corrected
    # (Cosmetatos 1975)
    result = run(replace(PLAN, step_s=60.0, start=400.0), Simulated(), 3)
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


@given(st.floats(1.0, 50_000.0), st.floats(0.0, 1.0), st.floats(0.5, 2000.0))
@settings(max_examples=200)
def test_any_capacity_ends_in_a_bracket_around_it(
    capacity: float, left: float, start: float
) -> None:
    # given a service without noise that keeps `left` of its capacity under overload
    with patch("scaletest.saturation.judging.search_open_load.MOST_STEPS", 40):
        bracket = answer_with(
            search_open_load(PLAN, start),
            lambda level: Trial(level, level > capacity, min(level, capacity * left)),
        )
    if bracket.low is not None and bracket.high is not None:
        assert bracket.low <= capacity < bracket.high
        assert bracket.confirmed
        assert bracket.high / bracket.low <= 1.0 + 1.01 * PLAN.precision


def test_an_end_of_the_bracket_that_fails_when_repeated_moves() -> None:
    # given a level that held by chance once and never again
    calls: dict[float, int] = {}

    def measure(level: float) -> Trial:
        calls[level] = calls.get(level, 0) + 1
        return Trial(level, level > 800 or (level > 700 and calls[level] > 1), min(level, 800.0))

    bracket = answer_with(search_open_load(PLAN, 100.0), measure)
    assert bracket.low is not None and bracket.low <= 700 and bracket.confirmed


def test_a_limit_of_the_tester_is_never_taken_for_one_of_the_service() -> None:
    # given a tester that is late in most repeats of a level that was saturated once
    calls: dict[float, int] = {}

    def measure(level: float) -> Trial:
        calls[level] = calls.get(level, 0) + 1
        return Trial(
            level,
            level > 800 and calls[level] == 1,
            min(level, 800.0),
            tester_was_late=level > 800 and calls[level] > 1,
        )

    assert answer_with(search_open_load(PLAN, 100.0), measure).tester_was_late


@pytest.mark.parametrize(
    ("start", "capacity", "overloaded"),
    [
        # a ramp that begins too high
        (6400.0, 90.0, 90.0),
        # a service that does next to nothing when it is given more than it holds
        (50.0, 500.0, 5.0),
    ],
)
def test_a_capacity_is_bracketed_from_either_side(
    start: float, capacity: float, overloaded: float
) -> None:
    bracket = answer_with(
        search_open_load(PLAN, start),
        lambda level: Trial(level, level > capacity, level if level <= capacity else overloaded),
    )
    assert bracket.low <= capacity < bracket.high
    assert bracket.high / bracket.low <= 1.1 and bracket.steps <= 12


def answer_with(search: Any, measure: Any) -> Bracket:
    """Drive a search."""
    probe: Probe = next(search)
    while True:
        try:
            probe = search.send(measure(probe.level))
        except StopIteration as stop:
            assert isinstance(stop.value, Bracket)
            return stop.value


@given(
    st.lists(st.tuples(st.sampled_from(Finding), st.floats(0.1, 1.2)), min_size=1, max_size=40),
    st.sampled_from(["open", "closed"]),
)
@settings(max_examples=200)
def test_a_search_ends_within_the_steps_that_its_plan_is_said_to_take(
    findings: list[tuple[Finding, float]], load: str
) -> None:
    # given answers by chance, over and over
    plan = replace(PLAN, load=load)
    answers_by_chance, steps = itertools.cycle(findings), 0

    def measure(level: float) -> Trial:
        nonlocal steps
        steps += 1
        finding, part = next(answers_by_chance)
        return Trial(
            level, finding is Finding.FAILED, part * level, undecided=finding is Finding.OPEN
        )

    search = search_open_load(plan, 100.0) if load == "open" else search_closed_load(plan, 1)
    answer_with(search, measure)
    assert steps <= most_measured(plan)


def test_slow_requests_get_longer_steps_and_warm_ups() -> None:
    assert step_timing(10.0, 0.01) == (10.0, 1.0)
    assert step_timing(10.0, 5.0) == (50.0, 10.0)


class OnItsOwnClock:
    """A simulated service as a load that takes as long as its requests do."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def measure(self, order: LoadOrder, stopping: Any, tell: Any) -> LoadResult:
        if order.pace is None:
            rows = Simulated().closed(order.parallel, order.seconds)
        else:
            due = itertools.takewhile(lambda at: at < order.seconds, order.pace)
            rows = Simulated().open(list(itertools.islice(due, order.count or None)))
        ended = max(attempt.ended_s for attempt in rows)
        self.now_s += ended if order.count else max(order.seconds, ended)
        return LoadResult(rows, ended if order.count else order.seconds, 0.1, 0.0, 0.0, 0)

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("load", ["open", "closed"])
def test_a_dry_run_tells_how_long_a_run_takes(load: str) -> None:
    plan = replace(PLAN, load=load)
    load, silent = OnItsOwnClock(), telling([])

    def sleep(seconds: float) -> None:
        load.now_s += seconds

    runner = Runner(
        plan,
        load,
        lambda step, samples: None,
        silent,
        clock=lambda: load.now_s,
        sleep=sleep,
    )
    result = runner.run()
    expected = forecast(plan)
    assert expected.least_s and expected.most_s and expected.longest_s
    assert expected.least_s <= result.elapsed_s <= expected.most_s
    assert result.elapsed_s <= expected.longest_s
    measured = sum(step.step.phase not in ("warm", "operate") for step in result.steps)
    assert measured <= expected.most


def test_a_dry_run_marks_the_time_that_it_cannot_forecast() -> None:
    # given steps that end by a number of requests whose rate the search is to find
    assert forecast(replace(PLAN, count=100)).most_s is None
    # expect a latency limit to make it four times as long at most, and agents half a second a step
    plain, limited = forecast(PLAN), forecast(replace(PLAN, limit="p99<50ms"))
    assert 3 * plain.longest_s < limited.longest_s <= MOST_LENGTHS * plain.longest_s
    agents = forecast(replace(PLAN, agents=4))
    assert agents.most_s - plain.most_s == pytest.approx(0.5 * 20)


@pytest.mark.parametrize("kind", ["M/D/8", "noisy", "closed"])
def test_the_end_lies_in_what_was_promised_in_nine_of_ten_searches(kind: str) -> None:
    plan = replace(PLAN, load="closed", maximum=64.0) if kind == "closed" else PLAN
    held, widest = 0, 0.0
    for seed in range(20):
        steps = run(plan, Simulated() if kind == "M/D/8" else noisy(seed), seed).steps
        promises, now_s = promised_ends(plan, steps)
        held += all(end.earliest_s <= now_s <= end.latest_s for _, end in promises)
        late = [end for said_s, end in promises if said_s >= now_s / 3]
        widest = max(widest, *(end.latest_s / end.earliest_s for end in late))
    assert held >= 18 and widest <= 2.5


def promised_ends(
    plan: SaturationPlan, steps: Sequence[AssessedStep]
) -> tuple[list[tuple[float, ExpectedEnd]], float]:
    """What was said of the end and when, and when it came, if all steps last as planned."""
    sequence, said, promises = SaturationSequence(plan), None, []
    now_s = searched_s = 0.0
    for assessed in steps:
        left = time_left(sequence, searched_s)
        assert left is not None
        said = narrow_end(said, left, now_s)
        promises.append((now_s, said))
        length_s = plan.step_s + DRAIN_S
        if assessed.step.phase == Phase.WARM:
            length_s = plan.warm_s
        else:
            length_s *= OPERATING_STEPS if assessed.step.phase == Phase.OPERATE else 1
            searched_s += length_s
        now_s += length_s
        sequence.tell(assessed)
    return promises, now_s
