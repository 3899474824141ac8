"""Numbers, text, marks and charts: what is shown never says more than what is known."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render import axis, numbers, text
from scaletest.render.axis import Axis
from scaletest.render.chart import Chart

values = st.floats(1e-6, 1e9)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (12e-6, "12 us"),
        (0.0123, "12.3 ms"),
        (0.99999, "1 s"),
        (1.234, "1.23 s"),
        (4321, "4321 s"),
        (None, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_durations_are_short(value: float | None, shown: str) -> None:
    assert numbers.seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (42, "42 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_long_durations_are_in_minutes_and_hours(value: float, shown: str) -> None:
    assert numbers.duration(value) == shown


@pytest.mark.parametrize(
    ("value", "half", "shown"),
    [
        (12.0213, 0.312, "12.02 ± 0.32"),
        (1.94, 0.02, "1.940 ± 0.020"),
        (15.92778, 0.0193, "15.93 ± 0.02"),
        (3.992, 0.0, "3.992 ± 0.000"),
        (12345.0, 210.0, "12340 ± 210"),
        (99.996, 0.5, "100.0 ± 0.5"),
        (1.2, math.inf, "1.20 ± n/a"),
        (math.nan, 1.0, "n/a"),
    ],
)
def test_a_value_has_the_digits_of_its_interval(value: float, half: float, shown: str) -> None:
    assert numbers.measured(value, half) == shown


@given(values, values)
def test_a_printed_interval_is_never_narrower_than_the_true_one(value: float, half: float) -> None:
    shown, width = map(float, numbers.measured(value, half).split(" ± "))
    assert width >= half * (1 - 1e-6)
    assert abs(shown - value) <= max(width, 1e-3 * value)


@given(values, st.floats(0, 5), st.floats(0, 5))
def test_the_ends_of_an_interval_enclose_the_value_as_printed(
    value: float, below: float, above: float
) -> None:
    printed = re.fullmatch(
        r"(\S+) \[(\S+), (\S+)\]", numbers.between(value, value / (1 + below), value * (1 + above))
    )
    assert printed
    middle, low, high = map(float, printed.groups())
    assert low <= middle <= high
    assert "e" not in printed.group()


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(1, 6))
def test_plain_numbers_have_no_exponent(value: float, digits: int) -> None:
    shown = numbers.significant(value, digits)
    assert "e" not in shown
    if math.isfinite(value) and 1e-9 < abs(value) < 1e12:
        assert float(shown) == pytest.approx(value, rel=10.0 ** (1 - digits))


@given(st.floats(0, 1e9))
def test_durations_read_back(value: float) -> None:
    shown, _, unit = numbers.seconds(value).partition(" ")
    size = {"": 1.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}[unit]
    assert float(shown) * size == pytest.approx(value, rel=0.006, abs=6e-7)


def test_instants_are_in_utc_and_unknown_ones_are_marked() -> None:
    assert numbers.instant(1_790_000_000) == "2026-09-21 14:13:20Z"
    assert numbers.instant(0) == numbers.instant(1e30) == "n/a"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 12))
def test_marks_are_round_few_and_within(low: float, length: float, most: int) -> None:
    high = low + length
    if not high - low > 1e-6 * abs(low):
        return
    marks = axis.nice(low, high, most)
    slack = 1e-6 * (high - low)
    assert len(marks) <= most + 1
    assert all(low - slack <= mark <= high + slack for mark in marks)
    assert marks == sorted(set(marks))


@given(st.floats(1e-6, 1e9), st.integers(3, 9))
def test_an_axis_ends_at_a_mark_not_below_the_data(high: float, most: int) -> None:
    end = axis.ceiling(high, most)
    assert high <= end <= 6 * high


@given(
    st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 20.0, 5000.0, 15000.0, 2.5e6]), min_size=1, unique=True
    )
)
def test_labels_of_different_marks_differ(marks: list[float]) -> None:
    assert len(set(axis.labels(marks))) == len(marks)


def test_powers_of_two_are_thinned_out() -> None:
    assert axis.powers(1, 8) == [1, 2, 4, 8]
    assert axis.powers(1, 1024, 6) == [1, 4, 16, 64, 256, 1024]


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from("`|<>&\\\n")))
def test_a_code_span_ends_where_it_should(foreign: str) -> None:
    span = text.code(foreign)
    fence = re.match("`+", span)
    assert fence and "\n" not in span
    inner = span[fence.end() : -fence.end()]
    assert fence.group() not in re.findall("`+", inner)
    assert not re.search(r"(?<!\\)\|", inner)


@pytest.mark.parametrize("formula", ["=1+1", "+1", "-1", "@x"])
def test_a_spreadsheet_gets_no_formula(formula: str) -> None:
    assert text.cell(formula) == f"'{formula}"


def test_elements_escape_what_is_no_markup() -> None:
    markup = text.element("p", "<b>", text.element("i", "x"), title='"', data_x=1, missing=None)
    assert markup == '<p title="&#34;" data-x="1">&lt;b&gt;<i>x</i></p>'


@given(
    st.lists(st.tuples(st.floats(-10, 1e6), st.floats()), max_size=8),
    st.sampled_from(["linear", "log2", "log10"]),
)
def test_any_data_makes_a_well_formed_chart(points: list[tuple[float, float]], kind: str) -> None:
    chart = Chart("c", "<t>", "d & e", Axis("x", 1.0, 64.0, kind), Axis("y", 1.0, 8.0, kind))
    chart.legend("<line>", "c-data")
    chart.line(points, "c-data")
    for x, y in points:
        if math.isfinite(y):
            chart.dot(x, y, "c-dot", "<tip>")
            chart.bar(x, x + 1, y, "c-bar")
    root = ElementTree.fromstring(chart.svg())
    numbers_drawn = [
        float(n)
        for e in root.iter()
        for n in re.findall(r"-?\d+\.\d+", e.get("d", "") + e.get("cx", ""))
    ]
    assert all(-400 <= number <= 1200 for number in numbers_drawn)


def test_a_logarithmic_axis_puts_doublings_at_equal_distances() -> None:
    axis = Axis("workers", 1.0, 16.0, "log2")
    assert [axis.part(n) for n in (1, 2, 4, 8, 16)] == [0, 0.25, 0.5, 0.75, 1]
    assert axis.labelled[-1] == (16.0, "16")


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (8, 130, [10, 20, 50, 100]),
        (0.008, 2.5, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]),
        (0.9, 2000, [1, 10, 100, 1000]),
        (0.0208, 0.035, [0.025, 0.03, 0.035]),
    ],
)
def test_decades_are_few_and_never_less_than_two(
    low: float, high: float, marks: list[float]
) -> None:
    assert axis.decades(low, high) == pytest.approx(marks)
    latency = Axis("latency", low, high, "log10")
    parts = [latency.part(mark) for mark, _ in latency.labelled]
    assert parts == sorted(parts) and -1e-9 <= parts[0] < parts[-1] <= 1 + 1e-9
    assert latency.part(math.sqrt(low * high)) == pytest.approx(0.5)
