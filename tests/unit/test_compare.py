"""Comparing two runs: what is slower is found, what is not is left alone, and the rest is said to
be undecided.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.compare import Change, Side, ValidationComparison, compare, differences
from scaletest.analysis.rank_test import mann_whitney
from scaletest.analysis.steps import summarise
from scaletest.model import Background, Plan, VerdictKind
from tests.unit.made import measured
from tests.unit.oracle import oracle
from tests.unit.valid import checked

values = st.lists(st.integers(0, 20).map(float) | st.floats(0, 20), min_size=8, max_size=60)


@given(values, values)
def test_the_rank_test_is_scipys(first: list[float], second: list[float]) -> None:
    comparison = mann_whitney(first, second)
    assert comparison is not None
    other = oracle("scipy.stats").mannwhitneyu(
        first, second, method="asymptotic", use_continuity=True
    )
    assert comparison.u == pytest.approx(other.statistic)
    if len({*first, *second}) > 1:
        assert comparison.p == pytest.approx(other.pvalue, rel=1e-9)
    else:
        assert (comparison.larger, comparison.p) == (0.5, 1.0)


def test_few_values_are_not_ranked() -> None:
    assert mann_whitney([1.0] * 7, [2.0] * 100) is None


def run(cycles: dict[int, float], *, plan: dict[str, Any] | None = None, **measuring: Any) -> Side:
    """A run with the given seconds a request at each number of workers."""
    chosen = Plan(**{"limit": max(cycles), "repeats": measuring.get("repeats", 1), **(plan or {})})
    return Side(chosen, summarise(chosen, *measured(cycles, **measuring)))


BASE = {1: 0.1, 2: 0.1, 4: 0.11}


def changes(comparison: ValidationComparison) -> list[Change]:
    return [step.change for step in comparison.steps]


@pytest.mark.parametrize("repeats", [1, 2, 3, 5])
def test_equal_runs_are_equivalent(repeats: int) -> None:
    comparison = compare(run(BASE, repeats=repeats), run(BASE, repeats=repeats, seed=2))
    assert changes(comparison) == [Change.EQUIVALENT] * 3
    assert checked(comparison.to_dict(), "comparison")["verdict"]["kind"] == "PASS"
    assert {step.between for step in comparison.steps} == {repeats >= 3}
    for step in comparison.steps:
        assert step.ratio is not None
        assert step.ratio.low <= 1.01
        assert step.ratio.high >= 0.99


@pytest.mark.parametrize("repeats", [1, 3])
def test_one_slower_step_is_found_and_fails(repeats: int) -> None:
    # given a candidate that is 10 % slower with 4 workers
    comparison = compare(
        run(BASE, repeats=repeats), run({**BASE, 4: 0.11 / 0.9}, repeats=repeats, seed=2)
    )
    assert changes(comparison) == [Change.EQUIVALENT, Change.EQUIVALENT, Change.REGRESSION]
    assert comparison.verdict.kind is VerdictKind.FAIL
    assert "slower by more than 3 % in 1 of 3 steps: 4 workers" in comparison.verdict.reason
    step = comparison.steps[2]
    assert step.ratio is not None
    assert step.ratio.value == pytest.approx(0.9, rel=0.01)
    # and the second look agrees: run times tend to be larger
    assert step.run_times is not None
    assert step.run_times.larger > 0.99
    assert step.run_times.p < 1e-6


def test_a_faster_candidate_passes_and_is_reported_as_faster() -> None:
    comparison = compare(run(BASE), run({1: 0.1, 2: 0.09, 4: 0.1}, seed=2))
    assert changes(comparison) == [Change.EQUIVALENT, Change.IMPROVEMENT, Change.IMPROVEMENT]
    assert (comparison.verdict.kind, "2 faster" in comparison.verdict.reason) == (
        VerdictKind.PASS,
        True,
    )


def test_a_change_within_the_tolerance_is_no_regression() -> None:
    base, candidate = run(BASE), run({n: cycle / 0.98 for n, cycle in BASE.items()}, seed=2)
    assert set(changes(compare(base, candidate, 0.03))) == {Change.EQUIVALENT}
    assert set(changes(compare(base, candidate, 0.01))) == {Change.REGRESSION}


def test_a_step_that_is_faster_within_chance_is_not_slower() -> None:
    # given 2 % more with an interval of some percent, which ends above -3 %
    comparison = compare(run({1: 0.1}, scatter=0.08), run({1: 0.098}, scatter=0.08, seed=6))
    assert changes(comparison) == [Change.NOT_SLOWER]
    assert comparison.verdict.kind is VerdictKind.PASS


def test_noisy_runs_are_undecided() -> None:
    comparison = compare(run(BASE, scatter=0.6), run(BASE, scatter=0.6, seed=2))
    assert Change.UNDECIDED in changes(comparison)
    assert comparison.verdict.kind is VerdictKind.INVALID
    assert "--repeats" in comparison.verdict.remedy


@given(
    st.integers(0, 10_000),
    st.floats(0.8, 1.25),
    st.sampled_from([1, 3]),
    st.sampled_from([0.0, 0.03, 0.1]),
)
def test_exchanging_base_and_candidate_mirrors_the_comparison(
    seed: int, factor: float, repeats: int, tolerance: float
) -> None:
    measured_runs: dict[str, Any] = {"count": 30, "repeats": repeats, "scatter": 0.1}
    step, other = (
        run({1: 0.1}, seed=seed, **measured_runs),
        run({1: 0.1 * factor}, seed=seed + 1, **measured_runs),
    )
    (forward,), (back,) = (
        compare(step, other, tolerance).steps,
        compare(other, step, tolerance).steps,
    )
    assert forward.ratio is not None
    assert back.ratio is not None
    assert forward.ratio.value == pytest.approx(1 / back.ratio.value)
    assert forward.ratio.low == pytest.approx(1 / back.ratio.high)
    mirror = {Change.REGRESSION: Change.IMPROVEMENT, Change.IMPROVEMENT: Change.REGRESSION}
    if back.change in (Change.EQUIVALENT, Change.REGRESSION, Change.IMPROVEMENT):
        assert forward.change is mirror.get(back.change, back.change)


def test_welch_on_repeats_is_scipys() -> None:
    base, candidate = (run({1: 0.1}, repeats=n, between=0.05, seed=n) for n in (3, 5))
    (step,) = compare(base, candidate).steps
    logs = [
        [math.log(sample.throughput.per_s) for sample in run.steps[0].samples]
        for run in (candidate, base)
    ]
    interval = oracle("scipy.stats").ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert step.ratio is not None
    assert math.log(step.ratio.low) == pytest.approx(interval.low, rel=1e-4)
    assert math.log(step.ratio.high) == pytest.approx(interval.high, rel=1e-4)


def test_chance_flags_no_more_than_its_share_of_runs() -> None:
    # given 100 comparisons of equal plans with 3 steps, no tolerance, and repeats that differ
    chance = random.Random(7)
    flagged = 0
    for _ in range(100):
        measured_runs: dict[str, Any] = {"count": 10, "repeats": 4, "between": 0.02}
        base, other = (
            run({1: 0.1, 2: 0.1, 4: 0.1}, seed=chance.randrange(10**9), **measured_runs)
            for _ in range(2)
        )
        flagged += any(step.significant for step in compare(base, other, 0.0).steps)
    # then 4 % have any step flagged, and 12 % had without the correction (1500 comparisons)
    assert flagged <= 8


def test_an_unsteady_step_is_undecided_and_names_its_run() -> None:
    comparison = compare(run(BASE), run(BASE, count={1: 100, 2: 1, 4: 100}, seed=2))
    assert comparison.steps[1].change is Change.UNDECIDED
    assert "candidate" in comparison.steps[1].reason
    assert checked(comparison.to_dict(), "comparison")["steps"][1]["ratio"] is None


def test_only_common_steps_are_compared() -> None:
    comparison = compare(run({1: 0.1, 2: 0.1, 4: 0.1}), run({1: 0.1, 2: 0.1, 3: 0.1}, seed=2))
    assert [step.workers for step in comparison.steps] == [1, 2]
    assert (comparison.only_base, comparison.only_candidate) == ((4,), (3,))
    nothing = compare(run({1: 0.1}), Side(Plan(), []))
    assert (nothing.verdict.kind, nothing.verdict.reason) == (
        VerdictKind.INVALID,
        "the runs have no step in common",
    )


def test_different_workloads_are_compared_only_by_force() -> None:
    base, candidate = (
        run(BASE),
        run(BASE, plan={"command": ("true",), "device_glob": "/dev/x"}, seed=2),
    )
    comparison = compare(base, candidate)
    assert (comparison.verdict.kind, comparison.steps) == (VerdictKind.INVALID, ())
    assert "command differ" in comparison.verdict.reason
    assert checked(comparison.to_dict(), "comparison")["differences"][0]["candidate"] == ["true"]
    differences = comparison.differences
    assert [(step.field, step.workload) for step in differences] == [
        ("command", True),
        ("device_glob", False),
    ]
    assert compare(base, candidate, force=True).verdict.kind is VerdictKind.PASS


def test_runs_compare_whatever_their_targets_but_not_whatever_their_workloads() -> None:
    def fields(**changed: Any) -> list[str]:
        return [step.field for step in differences(Plan(), Plan(**changed)) if step.workload]

    assert (
        differences(
            Plan(), Plan(scale=1.2, limit=2, queue="other", thresholds=("ratio>1",), seed=3)
        )
        == ()
    )
    assert fields(seconds=2) == ["seconds"]
    assert fields(seconds=2, command=("x",)) == ["command"]
    assert fields(background=(Background("other"),)) == ["background"]
    assert fields(repeats=3, warmup_s=1.0) == []


def test_a_candidate_that_was_not_measured_to_its_end_does_not_pass() -> None:
    # given equal runs, the second without its last step, and then with one that was cut short,
    # expect INVALID
    plan = {"limit": 4}
    comparison = compare(run(BASE), run({1: 0.1, 2: 0.1}, plan=plan, seed=2))
    assert comparison.verdict.kind is VerdictKind.INVALID
    assert comparison.verdict.reason == "not measured in both runs: 4 workers"
    chosen = Plan(limit=4)
    measurements, records = measured(BASE, seed=2)
    measurements[-1] = replace(measurements[-1], stop="ended early")
    assert (
        compare(run(BASE), Side(chosen, summarise(chosen, measurements, records))).verdict.kind
        is VerdictKind.INVALID
    )
    # and a plan that never had that step compares at those that both have
    assert compare(run(BASE), run({1: 0.1, 2: 0.1}, seed=2)).verdict.kind is VerdictKind.PASS


def test_steps_on_other_numbers_of_devices_have_nothing_in_common() -> None:
    # given 2 workers that share one device, and 2 workers with a device each
    step = Plan(limit=2, per_device=(1, 2), devices=1, device_glob="/dev/x*", queue="q")
    two = Plan(limit=4, per_device=(1, 2), devices=2, device_glob="/dev/x*", queue="q")
    assert [row.field for row in differences(step, two) if row.workload] == ["devices"]
    alone = Plan(limit=2, per_device=(2,), devices=1, device_glob="/dev/x*", queue="q")
    assert [row.field for row in differences(step, alone) if row.workload] == ["per_device"]
    # and runs of one number each are compared, which is how numbers are compared on Kubernetes
    assert not any(row.workload for row in differences(alone, replace(alone, per_device=(3,))))
