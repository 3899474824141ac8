"""Comparing two runs: what is slower is found, what is not is left alone, and the rest is said to
be undecided.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.model import VerdictKind
from scaletest.report import formats
from scaletest.report.comparison import comparison_report
from scaletest.stats.change import Change, MeasureChange
from scaletest.stats.comparison import (
    TOLERANCE,
    Comparison,
    Contrast,
    Difference,
    Side,
    compare_runs,
)
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import WHOLE_RUN, Measure
from scaletest.stats.rank_test import mann_whitney
from scaletest.validation.judging.step_parts import group_by_pair, throughput_of_parts
from scaletest.validation.judging.steps import Step, summarise
from scaletest.validation.plan import Background, Plan
from scaletest.validation.run_type import RUN_TYPE, measures_of_step
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
    assert comparison.larger == pytest.approx(other.statistic / (len(first) * len(second)))
    if len({*first, *second}) > 1:
        assert comparison.p == pytest.approx(other.pvalue, rel=1e-9)
    else:
        assert (comparison.larger, comparison.p) == (0.5, 1.0)


def test_few_values_are_not_ranked() -> None:
    assert mann_whitney([1.0] * 7, [2.0] * 100) is None


@dataclass(frozen=True)
class Measured:
    """A plan with the steps that were measured, as a stored validation has them."""

    plan: Plan
    steps: Sequence[Step]

    @property
    def result(self) -> Measured:
        """Itself, where the plan and the steps of a validation are."""
        return self


def run(
    cycles: dict[int, float], *, plan: dict[str, Any] | None = None, **measuring: Any
) -> Measured:
    """A run with the given seconds a request at each number of workers."""
    chosen = Plan(**{"limit": max(cycles), "repeats": measuring.get("repeats", 1), **(plan or {})})
    return Measured(chosen, summarise(chosen, *measured(cycles, **measuring)))


def side(name: str, run: Measured) -> Side:
    """A validation as one side of a comparison."""
    return Side(
        name, "", list(chain.from_iterable(measures_of_step(step, None) for step in run.steps))
    )


def contrast(base: Measured, candidate: Measured) -> Contrast:
    """What the plans of two validations have to do with each other."""
    runs: Any = base, candidate
    return RUN_TYPE.contrast(*runs)


def compared(base: Measured, *candidates: Measured, **options: Any) -> Comparison:
    """The comparison of the first run with the others."""
    sides = [(side("candidate", run), contrast(base, run)) for run in candidates]
    return compare_runs("validation", side("base", base), sides, **options)


def steps_of(comparison: Comparison) -> list[MeasureChange]:
    """The changes on which the verdict rests: those of throughput."""
    return comparison.candidates[0].deciding


BASE = {1: 0.1, 2: 0.1, 4: 0.11}


def changes(comparison: Comparison) -> list[Change]:
    return [step.change for step in steps_of(comparison)]


@pytest.mark.parametrize("repeats", [1, 2, 3, 5])
def test_equal_runs_are_equivalent(repeats: int) -> None:
    comparison = compared(run(BASE, repeats=repeats), run(BASE, repeats=repeats, seed=2))
    assert changes(comparison) == [Change.EQUIVALENT] * 3
    assert checked(comparison.to_dict(), "comparison")["verdict"]["kind"] == "PASS"
    assert {step.repeated for step in steps_of(comparison)} == {repeats >= 3}
    for step in steps_of(comparison):
        assert step.ratio.low <= 1.01
        assert step.ratio.high >= 0.99


@pytest.mark.parametrize("repeats", [1, 3])
def test_one_slower_step_is_found_and_fails(repeats: int) -> None:
    # given a candidate that is 10 % slower with 4 workers
    comparison = compared(
        run(BASE, repeats=repeats), run({**BASE, 4: 0.11 / 0.9}, repeats=repeats, seed=2)
    )
    assert changes(comparison) == [Change.EQUIVALENT, Change.EQUIVALENT, Change.REGRESSION]
    assert comparison.verdict.kind is VerdictKind.FAIL
    reason = "worse by more than 5 % in 1 of 3 measures: throughput (workers 4)"
    assert reason in comparison.verdict.reason
    step = steps_of(comparison)[2]
    assert step.ratio.value == pytest.approx(0.9, rel=0.01)
    # and the second look agrees: run times tend to be larger
    (run_times,) = (
        change
        for change in comparison.candidates[0].changes
        if change.base.text == "run.p50 (workers 4)"
    )
    assert run_times.change is Change.REGRESSION
    assert run_times.ranks.larger > 0.99
    assert run_times.ranks.p < 1e-6


TWO_PERCENT_SLOWER = {n: cycle / 0.98 for n, cycle in BASE.items()}


@pytest.mark.parametrize(
    ("base", "candidate", "tolerance", "expected", "kind", "words"),
    [
        (
            run(BASE),
            run({1: 0.1, 2: 0.09, 4: 0.1}, seed=2),
            TOLERANCE,
            [Change.EQUIVALENT, Change.IMPROVEMENT, Change.IMPROVEMENT],
            VerdictKind.PASS,
            "2 better",
        ),
        (
            run(BASE),
            run(TWO_PERCENT_SLOWER, seed=2),
            0.03,
            [Change.EQUIVALENT] * 3,
            VerdictKind.PASS,
            "",
        ),
        (
            run(BASE),
            run(TWO_PERCENT_SLOWER, seed=2),
            0.01,
            [Change.REGRESSION] * 3,
            VerdictKind.FAIL,
            "",
        ),
        # 2 % more with an interval of some percent, which ends above -3 %
        (
            run({1: 0.1}, scatter=0.08),
            run({1: 0.098}, scatter=0.08, seed=6),
            0.03,
            [Change.NOT_WORSE],
            VerdictKind.PASS,
            "",
        ),
    ],
)
def test_a_change_is_judged_by_the_tolerance_and_by_its_interval(
    base: Measured,
    candidate: Measured,
    tolerance: float,
    expected: list[Change],
    kind: VerdictKind,
    words: str,
) -> None:
    comparison = compared(base, candidate, tolerance=tolerance)
    assert changes(comparison) == expected
    assert comparison.verdict.kind is kind
    assert words in comparison.verdict.reason


def test_noisy_runs_are_undecided() -> None:
    comparison = compared(run(BASE, scatter=0.6), run(BASE, scatter=0.6, seed=2))
    assert Change.UNDECIDED in changes(comparison)
    assert comparison.verdict.kind is VerdictKind.INVALID
    assert "<repeats>" in comparison.verdict.remedy


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
        steps_of(compared(step, other, tolerance=tolerance)),
        steps_of(compared(other, step, tolerance=tolerance)),
    )
    assert forward.ratio is not None
    assert forward.ratio.value == pytest.approx(1 / back.ratio.value)
    assert forward.ratio.low == pytest.approx(1 / back.ratio.high)
    mirror = {Change.REGRESSION: Change.IMPROVEMENT, Change.IMPROVEMENT: Change.REGRESSION}
    if back.change in (Change.EQUIVALENT, Change.REGRESSION, Change.IMPROVEMENT):
        assert forward.change is mirror.get(back.change, back.change)


def test_welch_on_repeats_is_scipys() -> None:
    base, candidate = (run({1: 0.1}, repeats=n, between=0.05, seed=n) for n in (3, 5))
    (step,) = steps_of(compared(base, candidate))
    logs = [
        [math.log(throughput_of_parts(pair).per_s) for pair in group_by_pair(run.steps[0].parts)]
        for run in (candidate, base)
    ]
    interval = oracle("scipy.stats").ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    assert math.log(step.ratio.low) == pytest.approx(interval.low, rel=1e-4)
    assert math.log(step.ratio.high) == pytest.approx(interval.high, rel=1e-4)


def test_an_unsteady_step_is_undecided_and_names_its_run() -> None:
    comparison = compared(run(BASE), run(BASE, count={1: 100, 2: 1, 4: 100}, seed=2))
    assert steps_of(comparison)[1].change is Change.UNDECIDED
    assert "candidate" in steps_of(comparison)[1].reason
    candidate = checked(comparison.to_dict(), "comparison")["candidates"][0]
    rows = [row for row in candidate["measures"] if row["decides"]]
    assert (rows[1]["where"], rows[1]["ratio"]) == ({"workers": 2}, None)


def test_only_common_steps_are_compared() -> None:
    comparison = compared(run({1: 0.1, 2: 0.1, 4: 0.1}), run({1: 0.1, 2: 0.1, 3: 0.1}, seed=2))
    assert [step.base.where for step in steps_of(comparison)] == [{"workers": 1}, {"workers": 2}]
    alone = comparison.candidates[0]
    assert alone.only_base == ("throughput (workers 4)",)
    assert alone.only_candidate == ("throughput (workers 3)",)
    nothing = compared(run({1: 0.1}), Measured(Plan(), []))
    assert (nothing.verdict.kind, nothing.verdict.reason) == (
        VerdictKind.INVALID,
        "the runs have no measure in common that decides",
    )


def test_different_workloads_are_compared_only_by_force() -> None:
    base, candidate = (
        run(BASE),
        run(BASE, plan={"command": ("true",), "device_glob": "/dev/x"}, seed=2),
    )
    comparison = compared(base, candidate)
    assert (comparison.verdict.kind, steps_of(comparison)) == (VerdictKind.INVALID, [])
    assert "command: none and true" in comparison.verdict.reason
    row = checked(comparison.to_dict(), "comparison")["candidates"][0]
    assert row["differences"][0]["candidate"] == ["true"]
    differences = comparison.candidates[0].contrast.differences
    assert [(step.field, step.workload) for step in differences] == [
        ("command", True),
        ("device_glob", False),
    ]
    assert compared(base, candidate, force=True).verdict.kind is VerdictKind.PASS


def test_a_candidate_that_was_not_measured_to_its_end_does_not_pass() -> None:
    # given equal runs, the second without its last step, and then with one that was cut short,
    # expect INVALID
    plan = {"limit": 4}
    comparison = compared(run(BASE), run({1: 0.1, 2: 0.1}, plan=plan, seed=2))
    assert comparison.verdict.kind is VerdictKind.INVALID
    assert comparison.verdict.reason == "not measured in both runs: 4 workers"
    chosen = Plan(limit=4)
    measurements, records = measured(BASE, seed=2)
    measurements[-1] = replace(measurements[-1], stop="ended early")
    assert (
        compared(run(BASE), Measured(chosen, summarise(chosen, measurements, records))).verdict.kind
        is VerdictKind.INVALID
    )
    # and a plan that never had that step compares at those that both have
    assert compared(run(BASE), run({1: 0.1, 2: 0.1}, seed=2)).verdict.kind is VerdictKind.PASS


DEVICES = Plan(limit=2, per_device=(1, 2), devices=1, device_glob="/dev/x*", queue="q")


@pytest.mark.parametrize(
    ("base", "changes", "fields"),
    [
        (Plan(), {"seconds": 2}, ["seconds"]),
        (Plan(), {"seconds": 2, "command": ("x",)}, ["command"]),
        (Plan(), {"background": (Background("other"),)}, ["background"]),
        (Plan(), {"repeats": 3, "warmup_s": 1.0}, []),
        (Plan(), {"scale": 1.2, "limit": 2, "queue": "other", "thresholds": ("ratio>1",)}, []),
        # 2 workers that share one device, and 2 workers with a device each
        (DEVICES, {"limit": 4, "devices": 2}, ["devices"]),
        (DEVICES, {"per_device": (2,)}, ["per_device"]),
        # which is how numbers are compared on Kubernetes
        (replace(DEVICES, per_device=(2,)), {"per_device": (3,)}, []),
    ],
)
def test_runs_compare_whatever_their_targets_but_not_whatever_their_workloads(
    base: Plan, changes: dict[str, Any], fields: list[str]
) -> None:
    found = contrast(Measured(base, []), Measured(replace(base, **changes), [])).differences
    assert [each.field for each in found if each.workload] == fields
    assert "scale" not in changes or not found


def measure(*values: float, **fields: Any) -> Measure:
    """A measure of which more is better, with these repeats, that decides."""
    mean = sum(values) / len(values)
    made = {"repeats": values, "decides": True, **fields}
    return Measure("rate", WHOLE_RUN, Estimate(mean, mean, mean), "1/s", True, **made)


def compare_measures(
    base: Measure, *candidates: Measure, tolerance: float = TOLERANCE
) -> Comparison:
    """The comparison of runs that have one measure each."""
    sides = [(Side(f"run {n}", "", [each]), Contrast()) for n, each in enumerate(candidates)]
    return compare_runs("toy", Side("base", "", [base]), sides, tolerance)


TEN = (10.0, 10.1, 9.9, 10.0)


def test_of_several_candidates_the_worst_decides_and_is_named() -> None:
    slower = tuple(0.8 * value for value in TEN)
    comparison = compare_measures(measure(*TEN), measure(*TEN), measure(*slower))
    assert comparison.verdict.kind is VerdictKind.FAIL
    assert "in 1 of 2 measures: rate 0.800" in comparison.verdict.reason
    assert comparison.verdict.reason.endswith("in run 1")
    changes = [each.deciding[0].change for each in comparison.candidates]
    assert changes == [Change.EQUIVALENT, Change.REGRESSION]
    assert checked(comparison.to_dict(), "comparison")["candidates"][1]["run"] == "run 1"


def test_less_is_better_where_the_measure_says_so_and_neither_where_it_says_nothing() -> None:
    more = tuple(2 * value for value in TEN)
    for is_better, change in (
        (True, Change.IMPROVEMENT),
        (False, Change.REGRESSION),
        (None, Change.CHANGED),
    ):
        sides = [replace(measure(*values), more_is_better=is_better) for values in (TEN, more)]
        (row,) = compare_measures(*sides).candidates[0].changes
        assert row.change is change
        assert row.ratio is not None and row.ratio.value == pytest.approx(2.0)


def test_a_measure_that_decides_nothing_changes_no_verdict() -> None:
    slower = measure(*(0.5 * value for value in TEN), decides=False)
    sides = [
        Side(name, "", [measure(*TEN), replace(other, name="other")])
        for name, other in (("base", measure(*TEN, decides=False)), ("candidate", slower))
    ]
    comparison = compare_runs("toy", sides[0], [(sides[1], Contrast())])
    assert comparison.verdict.kind is VerdictKind.PASS
    assert comparison.candidates[0].changes[1].change is Change.REGRESSION


def test_what_the_clock_cannot_tell_apart_is_equivalent() -> None:
    def median(low: float, value: float, high: float) -> Measure:
        estimate = Estimate(value, low, high)
        return Measure("ready.p50", WHOLE_RUN, estimate, "s", False, resolution=1.0, decides=True)

    base = median(0.0, 0.0, 1.0)
    for candidate, change in (
        (median(1.0, 1.0, 1.0), Change.EQUIVALENT),
        (median(0.9, 1.0, 1.1), Change.EQUIVALENT),
        (median(4.9, 5.0, 5.1), Change.REGRESSION),
    ):
        row = compare_measures(base, candidate).candidates[0].changes[0]
        assert row.change in (change, Change.UNDECIDED)
        assert (row.change is Change.UNDECIDED) == (row.ratio is None)


def test_a_number_without_an_interval_is_undecided_unless_it_is_equal() -> None:
    counted = replace(measure(3.0), repeats=())
    assert compare_measures(counted, counted).verdict.kind is VerdictKind.PASS
    (row,) = compare_measures(counted, replace(measure(4.0), repeats=())).candidates[0].changes
    assert (row.change, row.ratio, row.significant) == (Change.UNDECIDED, None, False)
    nothing = replace(measure(0.0), repeats=())
    assert compare_measures(nothing, nothing).verdict.kind is VerdictKind.PASS


def test_equal_runs_are_seldom_flagged_however_many_measures_and_candidates_they_have() -> None:
    chance = random.Random(3)

    def noisy(name: str) -> Side:
        values = [[chance.lognormvariate(0, 0.05) for _ in range(4)] for _ in range(8)]
        measures = [
            replace(measure(*repeats), name=f"h{n}", decides=n < 4)
            for n, repeats in enumerate(values)
        ]
        return Side(name, "", measures)

    flagged = {True: 0, False: 0}
    for _ in range(200):
        sides = [(noisy(name), Contrast()) for name in ("a", "b")]
        comparison = compare_runs("toy", noisy("base"), sides, 0.0)
        rows = [row for each in comparison.candidates for row in each.changes if row.significant]
        for decides in flagged:
            flagged[decides] += any(row.base.decides is decides for row in rows)
    # 5 % of 200 is 10; more than 20 would be seen once in a thousand
    assert max(flagged.values()) <= 20


def test_a_long_difference_is_cut() -> None:
    text = Difference("template", "a: 1\n" * 500, "a: 2\n" * 500).text
    assert len(text) < 200 and "\n" not in text


def test_two_runs_of_one_name_both_have_their_notes() -> None:
    base, candidate = (
        Side("run", "", [replace(measure(1.0, 1.1), name=name)]) for name in ("first", "second")
    )
    comparison = compare_runs("toy", base, [(candidate, Contrast())], 0.05)
    text = formats.render(comparison_report(comparison), "text")
    assert "only run has first" in text
    assert "only run has second" in text


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("file lock a", "disk b", "the cause changed: file lock a in base, disk b in new"),
        ("file lock a", "", "the cause changed: file lock a in base, none in new"),
        ("disk b", "disk b", "new has the same cause as base: disk b"),
    ],
)
def test_a_comparison_says_whether_the_cause_changed(before: str, after: str, told: str) -> None:
    base, candidate = (
        Side(name, "", [measure(1.0, 1.1)], cause)
        for name, cause in (("base", before), ("new", after))
    )
    report = comparison_report(compare_runs("toy", base, [(candidate, Contrast())]))
    for name in ("text", "md", "html"):
        assert told.lower() in formats.render(report, name).lower()


def test_a_page_has_whole_numbers_of_workers_and_no_figures_of_what_was_not_compared() -> None:
    cycles = {1: 0.1, 2: 0.1}
    page = formats.render(comparison_report(compared(run(cycles), run(cycles, seed=2))), "html")
    across = re.search(r'id="compare-throughput-workers-title".*?</svg>', page, re.DOTALL)
    assert across is not None and ">workers<" in across[0] and ">2<" in across[0]
    assert ">1.5<" not in across[0] and ">per second<" in across[0]
    assert "measures decide" in page
    other = compared(run(cycles), run(cycles, plan={"command": ("true",)}))
    assert "measures decide" not in formats.render(comparison_report(other), "html")


@pytest.mark.parametrize("force", [False, True])
def test_the_command_line_of_runs_of_different_workloads_forces_again(force: bool) -> None:
    cycles = {1: 0.1, 2: 0.1}
    other = compared(run(cycles), run(cycles, plan={"command": ("true",)}), force=force)
    line = comparison_report(other).head.environment["command_line"]
    assert ("--force" in line) is force
