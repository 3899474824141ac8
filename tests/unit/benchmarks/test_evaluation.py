"""Thresholds of benchmarks: what they may be about, and how they are judged."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.judging.evaluation import (
    BenchmarkRun,
    evaluate_benchmarks,
)
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.plan import EXAMPLE, BenchmarkPlan, measurable_headlines
from scaletest.benchmarks.report import benchmark_report
from scaletest.model.errors import InvalidValue
from scaletest.model.threshold import UNITS, parse_threshold
from scaletest.report import formats

HEADLINES = [headline for kind in KINDS.values() for headline in kind.headlines]
TABLE = measurable_headlines(HEADLINES)


def plan(*thresholds: str, repetitions: int = 2) -> BenchmarkPlan:
    spec = {
        "template": {"kind": "IPerf", "spec": {"duration": 1}},
        "permutations": {"product": {"streams": [1, 8]}},
        "repetitions": repetitions,
        "thresholds": list(thresholds),
    }
    return plan_of({"kind": "BenchmarkSet", "metadata": {"name": "net"}, "spec": spec}, list)[0]


def run(planned: BenchmarkPlan, values: list[float]) -> BenchmarkRun:
    """One value a benchmark, in the plan's order; those that are left over were not measured."""
    ended = {}
    for benchmark, value in zip(planned.benchmarks, values, strict=False):
        ended[benchmark.name] = BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.COMPLETED,
            {"bandwidth": value},
        )
    return evaluate_benchmarks(planned, ended, name="run", folder="/run")


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("bandwidth>=5Gbit/s", 5e9),
        ("bandwidth > 5e9", 5e9),
        ("readBandwidth>=2MiB/s", 2 * 2**20),
        ("minimumLatency<20us", 20e-6),
        ("readIops>=1000/s", 1000.0),
        ("lost<1%", 0.01),
        ("cpuMemory<=2GiB", 2.0 * 2**30),
    ],
)
def test_bounds_are_in_base_units(text: str, bound: float) -> None:
    assert parse_threshold(text, TABLE, EXAMPLE).bound == pytest.approx(bound)


def test_every_unit_of_a_headline_has_bounds() -> None:
    assert {headline.unit for headline in HEADLINES} <= set(UNITS)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cannot be read"),
        ("bandwidth", "cannot be read"),
        ("bandwidth>=-1", "never below 0"),
        ("bandwith>=1", "did you mean bandwidth"),
        ("bandwidth==1", "compares with =="),
        ("bandwidth>=1s", "has the unit s"),
        ("bandwidth>=1e999", "too large"),
        ("bandwidth(8)>=1", "KEY=VALUE"),
        ("bandwidth(streams=3)>=1", "no permutation has"),
        ("writeIops>=1", "not measured"),
    ],
)
def test_a_senseless_threshold_is_refused_before_anything_is_measured(text: str, why: str) -> None:
    with pytest.raises(InvalidValue) as error:
        plan(text)
    assert why in f"{error.value.message} {error.value.hint}"


def sweep(
    kind: str, spec: dict[str, Any], threshold: str, product: dict[str, Any] | None = None
) -> dict[str, Any]:
    body = {"template": {"kind": kind, "spec": spec}, "thresholds": [threshold]}
    more = {"permutations": {"product": product}} if product else {}
    return {"kind": "BenchmarkSet", "metadata": {"name": "s"}, "spec": {**body, **more}}


def test_a_number_that_the_tool_did_not_report_is_not_waited_for() -> None:
    streams_plan = plan("retransmits<100")
    verdict = run(streams_plan, [9e9] * 4).verdict
    assert verdict.kind.exit_code == 4 and "did not report" in verdict.reason
    assert "to the end" not in verdict.remedy


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        threshold = parse_threshold(text, TABLE, EXAMPLE)
    except InvalidValue:
        return
    assert threshold.bound >= 0


@pytest.mark.parametrize(
    ("threshold", "values", "code", "reason"),
    [
        # the whole interval, or none of it, or part
        ("bandwidth>=5Gbit/s", [9e9, 9.01e9, 9e9, 9.01e9], 0, "1 threshold met"),
        ("bandwidth>=5Gbit/s", [9e9, 9.01e9, 3e9, 3.01e9], 3, "streams 8: 3.005 Gbit/s"),
        ("bandwidth>=5Gbit/s", [9e9, 9.01e9, 4e9, 7e9], 4, "streams 8"),
        # of the permutations that it names only
        ("bandwidth(streams=1)>=5Gbit/s", [9e9, 9.01e9, 3e9, 3.01e9], 0, "met"),
        ("bandwidth<5Gbit/s", [4e9, 4.01e9, 3e9, 3.01e9], 0, "met"),
        # what is refuted stays so, whatever is still to come
        ("bandwidth>=5Gbit/s", [3e9, 3.01e9], 3, "not met"),
        ("bandwidth>=5Gbit/s", [9e9, 9.01e9], 4, "were not measured"),
        ("bandwidth>=0.1Gbit/s", [0.0, 9e9, 9e9, 9e9], 4, "[0 bit/s"),
    ],
)
def test_the_verdict_follows_the_interval(
    threshold: str, values: list[float], code: int, reason: str
) -> None:
    report = run(plan(threshold), values)
    assert (report.verdict.kind.exit_code, reason in report.verdict.reason) == (code, True), (
        report.verdict
    )


def test_one_repetition_is_judged_by_its_value_with_a_remark() -> None:
    report = run(plan("bandwidth>=5Gbit/s", repetitions=1), [6e9, 7e9])
    assert report.verdict.kind.exit_code == 0
    assert report.thresholds[0].reason == "streams 1: 6.000 Gbit/s (one repetition, no interval)"


@pytest.mark.parametrize("form", sorted(set(formats.texts()) - {"csv"}))
def test_thresholds_stand_in_every_form(form: str) -> None:
    text = formats.render(
        benchmark_report(run(plan("bandwidth(streams=8)>=5Gbit/s"), [9e9, 9e9, 3e9, 3e9])), form
    )
    assert ("streams=8" in text and "FAIL" in text) or "failure" in text
