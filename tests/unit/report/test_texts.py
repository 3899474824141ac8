"""Texts beside numbers say what is true of them: times, captions, signs, counts, axes, runs that
still go on.
"""

import importlib.util
import random
from dataclasses import replace
from typing import Any

import pytest

from scaletest.lifecycle.judging.books import Fate, LifecycleProgress
from scaletest.lifecycle.report.charts import phase_charts
from scaletest.lifecycle.report.report import DETAILED, describe_throughput
from scaletest.model import Verdict, VerdictKind
from scaletest.model.texts import short_number
from scaletest.model.verdict import while_running
from scaletest.render import numbers
from scaletest.render.histogram import count_bins, histogram_ends
from scaletest.report.formats import png
from scaletest.stats.completions import Completions
from scaletest.validation.judging.drift import find_drift
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.plan import Plan
from tests.conftest import missing
from tests.unit.lifecycles import of, workload
from tests.unit.made import measured


def test_a_negligible_shift_is_shown_as_zero() -> None:
    # given a change that is certain and a hundred-thousandth
    at = 0.0
    times = [at := at + (1.0 if number < 200 else 1.00001) for number in range(400)]
    assert find_drift(Completions({"w": times})).shift == 0.0


@pytest.mark.parametrize(
    ("value", "shown"), [(-0.00004, "0.0%"), (-1e-17, "0.0%"), (-0.0006, "-0.1%"), (0.5, "50.0%")]
)
def test_a_value_that_rounds_to_zero_has_no_sign(value: float, shown: str) -> None:
    assert numbers.format_percent(value) == shown


def test_an_interval_that_rounds_to_zero_has_no_sign() -> None:
    assert numbers.percent_with_interval(-1e-9, -2e-9, 0.004) == "0.0% [0.0, 0.4]"
    assert "-0" not in numbers.percent_with_interval(-1e-9, -1e-9, -1e-9, 3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.5, "0.5"),
        (12.34, "12.3"),
        (1234.5, "1230"),
        (1e7, "10000000"),
        (0.00012, "0.00012"),
        (-1e-17, "0"),
        (-4321.0, "-4320"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_in_sentences_have_no_exponent(value: float, shown: str) -> None:
    assert short_number(value) == shown


def test_a_threshold_of_a_thousand_requests_a_second_is_shown_in_digits() -> None:
    measurements, records = measured({1: 0.0004}, count=400)
    plan = Plan(limit=1, queue="q", thresholds=("throughput(1)>=2000",))
    (threshold,) = evaluate(plan, measurements, records, random.Random(1)).thresholds
    assert threshold.reason == "2498 [2496, 2501]"


def without(milestone: str, *names: str) -> list[Any]:
    """Workloads of whose pods one milestone is not known."""
    rows = [workload(name) for name in names]
    for row in rows:
        for pod in row.pods.values():
            del pod.stamps[milestone]
    return rows


def test_pods_with_unknown_scheduling_are_not_counted_as_unscheduled() -> None:
    unknown = of(*without("scheduled", "a", "b"))
    assert unknown.books.measured == 2
    assert describe_throughput(unknown) == "2 pods seen, none with a known time of scheduling"
    assert describe_throughput(of(*without("scheduled", "a"), workload("b"))).startswith(
        "1 of 2 pods scheduled"
    )
    assert describe_throughput(of(workload("a", pods=0))) == "no pod is on record"
    assert describe_throughput(of(workload("a"), workload("b", submitted=9.0))).startswith(
        "2 pods scheduled, "
    )


def test_progress_tells_pods_that_were_seen() -> None:
    far = LifecycleProgress(40, 40, 0, {Fate.MEASURED: 40}, 0)
    assert str(far) == "40 of 40 submitted, 40 measured, 0 pods seen"
    assert str(replace(far, pods=1)).endswith(", 1 pod seen")


def test_values_that_are_nearly_alike_stand_in_the_middle_of_a_readable_axis() -> None:
    values = [1.0, 1.0002, 1.0004]
    low, high = histogram_ends(values, 0.01 * 1.0004)
    assert (low, high) == (pytest.approx(0.9952, abs=1e-4), pytest.approx(1.0052, abs=1e-4))
    assert sum(count_bins(values, 30, low, high)) == 3
    assert histogram_ends([0.0, 0.0], 0.001) == (0.0, 0.001)


def test_a_pictures_axes_show_true_values() -> None:
    if not importlib.util.find_spec("matplotlib"):
        missing("matplotlib")
    # given workloads that all took a second, but for less than a millisecond
    rows = [workload(f"j-{index}", step=1.0 + index * 1e-4) for index in range(5)]
    figure = png.draw_figure(phase_charts(of(*rows), DETAILED), "five workloads")
    figure.canvas.draw()
    for axes in figure.axes:
        for axis, (low, _) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
            assert axis.get_major_formatter().get_offset() == ""
            assert low >= 0
            for place, label in zip(axis.get_majorticklocs(), axis.get_ticklabels(), strict=True):
                assert float(label.get_text().replace("\N{MINUS SIGN}", "-")) == pytest.approx(
                    place, abs=1e-9
                )


def test_an_unfinished_run_shows_only_a_refuting_verdict() -> None:
    undecided = while_running(
        Verdict(VerdictKind.INVALID, "not every step was measured", "run it again")
    )
    assert (undecided.kind, undecided.reason) == (VerdictKind.RUNNING, "it is still being measured")
    refuted = while_running(Verdict(VerdictKind.FAIL, "3 requests failed"))
    assert refuted.reason == "it is still being measured; so far FAIL: 3 requests failed"
