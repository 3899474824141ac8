"""Thresholds: what can be written is read back, what cannot is explained, and intervals decide."""

import itertools
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import VerdictKind
from scaletest.model.errors import InvalidValue
from scaletest.model.threshold import (
    OPERATORS,
    UNITS,
    VALIDATION_MEASURES,
    Threshold,
    parse_step_threshold,
)
from scaletest.stats.estimate import Estimate
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Rank
from scaletest.validation.judging.steps import Step, summarise
from scaletest.validation.judging.thresholds import evaluate_thresholds
from scaletest.validation.plan import Plan
from tests.unit.made import measured

PASS, FAIL, INVALID = VerdictKind.PASS, VerdictKind.FAIL, VerdictKind.INVALID


@st.composite
def thresholds(draw: st.DrawFn) -> Threshold:
    name = draw(st.sampled_from(sorted(VALIDATION_MEASURES)))
    measurable = VALIDATION_MEASURES[name]
    workers = draw(st.none() | st.integers(1, 10_000)) if measurable.keys else None
    where = (("workers", str(workers)),) if workers else ()
    unit = draw(st.sampled_from(sorted(UNITS[measurable.unit])))
    value = float(draw(st.integers(0, 1))) if name == "failures" else draw(st.floats(0, 1))
    operator = draw(st.sampled_from(sorted(OPERATORS)))
    return Threshold(name, where, operator, value, unit, measurable.unit)


@given(thresholds())
def test_what_is_written_is_read_back(threshold: Threshold) -> None:
    assert parse_step_threshold(str(threshold)) == threshold


@given(
    st.text(max_size=60)
    | st.from_regex(r"[a-z.]{1,12}(\([0-9]{0,3}\))?[<>=]{0,3}[0-9.eE+-]{0,9}[a-z%/]{0,4}")
)
def test_an_invalid_threshold_is_refused_with_a_hint(text: str) -> None:
    try:
        assert parse_step_threshold(str(parse_step_threshold(text))) == parse_step_threshold(text)
    except InvalidValue as error:
        assert error.hint


@pytest.mark.parametrize(
    ("text", "metric", "workers", "bound"),
    [
        ("efficiency(8)>=0.8", "efficiency", 8, 0.8),
        ("efficiency( 8 ) >= 80%", "efficiency", 8, 0.8),
        ("ratio(4) >= 1.9", "ratio", 4, 1.9),
        ("throughput(8)>=720/min", "throughput", 8, 12),
        ("failures<1%", "failures", None, 0.01),
        ("failures<=3", "failures", None, 3),
        ("wait.p95(8)<200ms", "wait.p95", 8, 0.2),
        ("run.p99.9<=2e0s", "run.p99.9", None, 2),
    ],
)
def test_bounds_are_in_base_units(
    text: str, metric: str, workers: int | None, bound: float
) -> None:
    outcome = parse_step_threshold(text)
    assert (outcome.measure, outcome.workers) == (metric, workers)
    assert outcome.bound == pytest.approx(bound)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("eficiency(8)>=0.8", "did you mean efficiency?"),
        ("speed>3", "there are ratio, efficiency"),
        ("wait.p42<1s", "did you mean wait.p99"),
        ("wait<1s", "did you mean wait.p99"),
        ("latency<50ms", "figures.NAME"),
        ("efficiency(8)", "in quotes"),
        ("efficiency(8)==0.8", "use one of >= > <= <"),
        ("efficiency(3)>=0.8", "the steps are 1, 2, 4, 8"),
        ("ratio(1)>=1.8", "name a later step"),
        ("efficiency>=80", "write 0.8 or 80%"),
        ("failures<=0.5", "whole number"),
        ("run.p95<3/s", "takes us, µs, ms, s, min"),
        # 50 ms or 50 s?
        ("run.p50<50", "takes us, µs, ms, s, min, m, h, ns, e.g."),
        ("throughput>1e999", "finite"),
        ("efficiency(8)>=-1", "never below 0"),
        ("figures.>3", "figures.NAME"),
        ("figures..p95>3", "figures.NAME"),
    ],
)
def test_mistakes_are_explained_when_the_plan_is_made(text: str, problem: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        Plan(limit=8, thresholds=(text,))
    assert caught.match("threshold")
    assert re.search(problem, caught.value.hint)


def judged(text: str, cycles: dict[int, float], **measuring: Any) -> ThresholdResult:
    """The threshold judged on steps of the given seconds a request."""
    plan = Plan(limit=measuring.pop("limit", max(cycles)), thresholds=(text,))
    (result,) = evaluate_thresholds(plan, steps(plan, cycles, **measuring))
    assert result.to_dict()["kind"] == result.kind
    return result


def steps(plan: Plan, cycles: dict[int, float], **measuring: Any) -> list[Step]:
    return summarise(plan, *measured(cycles, **measuring))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ratio(4)>=1.5", PASS),
        ("ratio(4)>=1.7", FAIL),
        ("ratio>=1.7", FAIL),
        ("ratio(2)>=1.9", PASS),
        ("efficiency(4)>0.7", PASS),
        ("efficiency(4)>=90%", FAIL),
        ("efficiency>=90%", FAIL),
        ("efficiency(1)>=1", PASS),
        ("throughput(4)>=30/s", PASS),
        ("throughput(4)<30/s", FAIL),
        ("throughput>=9", PASS),
        ("run.p95(4)<150ms", PASS),
        ("run.p50<110ms", FAIL),
        ("failures<1%", PASS),
        ("failures<=0", PASS),
    ],
)
def test_a_threshold_is_decided_only_by_a_whole_interval(text: str, kind: VerdictKind) -> None:
    # given 10, 20 and 32 requests/s with 1, 2 and 4 workers, with little scatter
    result = judged(text, {1: 0.1, 2: 0.1, 4: 0.125}, count=200)
    assert (result.kind, result.text) == (kind, text)
    assert result.low <= result.value <= result.high


def test_a_threshold_inside_the_interval_is_undecided() -> None:
    result = judged("ratio(2)>=1.9", {1: 0.1, 2: 0.11}, scatter=0.2)
    assert result.kind is INVALID
    assert result.low < 1.9 < (result.high or 0)
    assert "<step_time>" in result.remedy


@pytest.mark.parametrize(
    ("text", "ends", "shown"),
    [
        ("run.p50<5s", (4.498, 4.496, 4.5), "4.498 s [4.496, 4.5]"),
        ("run.p50<5s", (4.4, 4.3, 4.5), "4.4 s [4.3, 4.5]"),
        ("run.p50<5s", (4.4, 4.4, 4.4), "4.4 s"),
        ("run.p50<5000ms", (4.498, 4.498, 4.499), "4498 ms [4498, 4499]"),
        # floating-point noise is no interval
        ("run.p50<5s", (1 / 3, 1 / 3, 1 / 3 + 1e-12), "0.333 s"),
    ],
)
def test_an_interval_is_not_rounded_away(
    text: str, ends: tuple[float, float, float], shown: str
) -> None:
    assert judge_threshold(parse_step_threshold(text), [Measured(Estimate(*ends))]).reason == shown


def test_a_threshold_is_about_one_place() -> None:
    with pytest.raises(InvalidValue, match="gives a key two values"):
        parse_step_threshold("efficiency(workers=8, workers=4)>=0.8")


def test_without_workers_the_worst_step_is_shown() -> None:
    assert judged("efficiency>=0.5", {1: 0.1, 2: 0.11, 4: 0.125}).workers == 4
    assert judged("throughput>=1", {1: 0.1, 2: 0.11, 4: 0.125}).workers == 1
    assert judged("run.p50<1s", {1: 0.1, 2: 0.15, 4: 0.125}).workers == 2
    # what fails comes before what is undecided and what holds
    assert judged("efficiency>=0.95", {1: 0.1, 2: 0.1, 4: 0.125}).workers == 4
    assert "4 workers: " in judged("efficiency>=0.95", {1: 0.1, 2: 0.1, 4: 0.125}).reason


def test_a_percentile_says_how_many_requests_it_needs() -> None:
    result = judged("run.p99(2)<=2s", {1: 0.1, 2: 0.1}, count=40)
    assert (result.kind, result.value) == (INVALID, None)
    assert "p99 needs 299 requests, there are 80" in result.reason
    assert judged("run.p99(2)<=2s", {1: 0.1, 2: 0.1}, count=400).kind is PASS


def test_missing_steps_leave_a_threshold_undecided() -> None:
    assert judged("efficiency(8)>=0.5", {1: 0.1, 2: 0.1}, limit=8).kind is INVALID
    assert judged("efficiency>=0.5", {1: 0.1, 2: 0.1}, limit=8).kind is INVALID
    assert judged("failures<=1", {1: 0.1}, limit=8).kind is INVALID
    assert judged("ratio>=1.5", {1: 0.1}, limit=1).kind is INVALID
    # but what refutes is enough
    assert judged("efficiency>=0.99", {1: 0.1, 2: 0.2}, limit=8).kind is FAIL


def test_failures_are_counted_exactly() -> None:
    # given 3 failures and 297 successes in each of two steps
    measured: dict[str, Any] = {"count": {1: 297, 2: 149}, "failed": 3}
    assert judged("failures(1)<=3", {1: 0.1, 2: 0.1}, **measured).kind is PASS
    assert judged("failures<=5", {1: 0.1, 2: 0.1}, **measured).value == 6
    assert judged("failures(1)<1%", {1: 0.1, 2: 0.1}, **measured).kind is FAIL
    assert judged("failures(1)<1.1%", {1: 0.1, 2: 0.1}, **measured).kind is PASS
    assert judged("failures(1)<1%", {1: 0.1, 2: 0.1}, **measured).reason == "1 %"


def test_an_unsteady_step_decides_no_rate() -> None:
    # given a step with two requests
    result = judged("efficiency(2)>=0.5", {1: 0.1, 2: 0.1}, count={1: 100, 2: 1})
    assert (result.kind, "2 workers" in result.reason) == (INVALID, True)


def test_the_verdict_names_the_first_and_counts() -> None:
    plan = Plan(
        limit=2, thresholds=("ratio(2)>=1.5", "efficiency(2)>=0.95", "run.p99<=2s", "failures<=0")
    )
    results = evaluate_thresholds(plan, steps(plan, {1: 0.1, 2: 0.12}, count=100))
    assert [result.kind for result in results] == [PASS, FAIL, INVALID, PASS]
    fail, undecided = ground_of(results, Rank.REFUTED), ground_of(results, Rank.OPEN)
    assert fail.reason.startswith("1 of 4 thresholds not met: efficiency(2)>=0.95: 0.83")
    assert undecided.reason.startswith(
        "1 of 4 thresholds undecided: run.p99<=2s: 1 worker: p99 needs 299"
    )
    assert fail.remedy
    assert undecided.remedy
    assert ground_of(results[:1], Rank.REFUTED) is None
    assert evaluate_thresholds(Plan(), []) == ()


def figures_of(number: int) -> dict[str, float | int | str]:
    return {
        "latency": 0.010 + 0.001 * (number % 5),
        "fps": 24 + number % 3,
        "codec": "h264",
        "p95": 7.0,
        "log-loss": -2.0,
    }


@pytest.mark.parametrize(
    ("text", "kind", "reason"),
    [
        ("figures.latency<50ms", PASS, "1 worker: 12 ms ["),
        ("figures.latency.p95<13ms", FAIL, "1 worker: 14 ms"),
        ("figures.latency.p50(1)<=20ms", PASS, "12 ms"),
        ("figures.fps>=26", FAIL, "1 worker: 25 ["),
        ("figures.p95>8", FAIL, "1 worker: 7"),
        ("figures.p95.p50>6", PASS, "1 worker: 7"),
        ("figures.log-loss>=-3", PASS, "1 worker: -2"),
        ("figures.log-loss.p50>-1", FAIL, "1 worker: -2"),
        # what is no number, and what nobody reports
        ("figures.codec<1", INVALID, "1 worker: no request reported a number as codec"),
        ("figures.energy<1", INVALID, "no request reported a number as energy"),
        ("figures.latency.p99.9<1s", INVALID, "p99.9 needs"),
    ],
)
def test_a_threshold_may_be_about_a_figure_of_the_workload(
    text: str, kind: VerdictKind, reason: str
) -> None:
    plan = Plan(limit=1, thresholds=(text,))
    measurements, records = measured({1: 0.1}, count=80)
    numbers = itertools.count()
    for rows in records.values():
        for index, row in enumerate(rows):
            reply = replace(row.reply, figures=figures_of(next(numbers)))
            rows[index] = replace(row, reply=reply)
    (result,) = evaluate_thresholds(plan, summarise(plan, measurements, records))
    assert (result.kind, str(parse_step_threshold(text))) == (kind, text)
    assert reason in result.reason


def test_an_unmeasured_plan_is_undecided_everywhere() -> None:
    texts = tuple(
        f"{name}<1{'s' if measurable.unit == 's' else ''}"
        for name, measurable in VALIDATION_MEASURES.items()
    )
    results = evaluate_thresholds(Plan(thresholds=texts), [])
    assert {result.kind for result in results} == {INVALID}
