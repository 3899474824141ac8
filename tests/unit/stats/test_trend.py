"""The trend of a measure: in which runs it changed, and which measure is meant."""

import re

import pytest

from scaletest.model.errors import UsageError
from scaletest.report import formats
from scaletest.report.trend import trend_report
from scaletest.stats.change import Change
from scaletest.stats.comparison import TOLERANCE, Contrast, Difference, Side
from scaletest.stats.estimate import Estimate
from scaletest.stats.measure import Measure
from scaletest.stats.trend import Trend, find_trend

NO_CONTRAST = Contrast()


def side(name: str, per_s: float | None, cause: str = "") -> Side:
    """A run with a throughput at two numbers of workers, known to 1 %."""
    measures = []
    for workers, factor in ((4, 0.5), (8, 1.0)):
        if per_s is not None:
            value = factor * per_s
            estimate = Estimate(value, 0.99 * value, 1.01 * value)
            where = {"workers": workers}
            measures.append(Measure("throughput", where, estimate, "1/s", True, decides=True))
    return Side(name, f"/runs/{name}", measures, cause)


def trend_of(*rates: float | None, wanted: str = "", contrast: Contrast = NO_CONTRAST) -> Trend:
    """The trend of runs a, b, c, ..."""
    sides = [side(chr(ord("a") + number), rate) for number, rate in enumerate(rates)]
    return find_trend("validation", sides, lambda base, other: contrast, wanted, TOLERANCE)


def test_a_measure_is_followed_from_change_to_change() -> None:
    trend = trend_of(100.0, 101.0, 80.0, 80.5, 120.0, None, 119.0)
    assert trend.name == "throughput(8)"
    assert [(point.side.name, point.change) for point in trend.flagged] == [
        ("c", Change.REGRESSION),
        ("e", Change.IMPROVEMENT),
    ]
    # what follows a change is compared with the run that changed
    assert [point.change for point in trend.points][3:] == [
        Change.EQUIVALENT,
        Change.IMPROVEMENT,
        None,
        Change.EQUIVALENT,
    ]
    assert trend.points[5].note == "not measured"


def test_a_slow_slide_is_flagged_once_it_is_large_enough() -> None:
    trend = trend_of(*(100.0 * 0.98**number for number in range(6)))
    assert [point.side.name for point in trend.flagged] == ["d"]


def test_runs_of_another_workload_begin_anew() -> None:
    other = Contrast((Difference("command", ["a"], ["b"], workload=True),))
    trend = trend_of(100.0, 50.0, contrast=other)
    assert not trend.flagged and "different workloads" in trend.points[1].note


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("", "throughput(8)"),
        ("throughput", "throughput(8)"),
        ("throughput(4)", "throughput(4)"),
        ("throughput (workers=4)", "throughput(4)"),
    ],
)
def test_a_measure_is_named_as_in_a_threshold(wanted: str, name: str) -> None:
    assert trend_of(100.0, 100.0, wanted=wanted).name == name


@pytest.mark.parametrize("wanted", ["throughput(3)", "speed"])
def test_a_measure_that_no_run_has_is_refused(wanted: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"none of the runs measured {wanted}")) as error:
        trend_of(100.0, 100.0, wanted=wanted)
    assert "throughput(" in error.value.hint


def test_a_trend_has_all_forms() -> None:
    sides = [side("one", 100.0), side("two", 60.0, "file lock the.lock"), side("three", None)]
    trend = find_trend("validation", sides, lambda base, other: Contrast(), "", TOLERANCE)
    report = trend_report(trend, "nightly")
    # what got worse last is bad news, though nothing is judged
    assert (report.head.word, report.head.verdict.kind) == ("TREND", "FAIL")
    text = formats.render(report, "md")
    assert "regression in two (0.60x)" in text and "file lock the.lock (new)" in text
    assert "60.00 [59.40, 60.60] /s" in text
    page = formats.render(report, "html")
    assert "measured, 95 % interval" in page and page.count("c-mark") >= 2
    rows = formats.render(report, "csv").splitlines()
    assert rows[2].startswith("two,60.0,59.4,60.6,regression,0.59")
    assert report.data()["runs"][1]["cause"] == "file lock the.lock"
