"""Charts of any data are well-formed SVG; axes have few round marks and room for every number."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render import axis
from scaletest.render.axis import Axis
from scaletest.render.chart import Chart
from scaletest.render.svg import draw_chart


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
    root = ElementTree.fromstring(draw_chart(chart))
    numbers_drawn = [
        float(n)
        for e in root.iter()
        for n in re.findall(r"-?\d+\.\d+", e.get("d", "") + e.get("cx", ""))
    ]
    assert all(-400 <= number <= 1200 for number in numbers_drawn)


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(2, 12))
def test_marks_are_round_few_and_within(low: float, length: float, most: int) -> None:
    high = low + length
    if not high - low > 1e-6 * abs(low):
        return
    marks = axis.round_marks(low, high, most)
    slack = 1e-6 * (high - low)
    assert len(marks) <= most + 1
    assert all(low - slack <= mark <= high + slack for mark in marks)
    assert marks == sorted(set(marks))


@given(st.floats(1e-6, 1e9), st.integers(3, 9))
def test_an_axis_ends_at_a_mark_not_below_the_data(high: float, most: int) -> None:
    assert high <= axis.axis_end(high, most) <= 6 * high


@given(
    st.lists(
        st.sampled_from([0.0, 0.5, 1.0, 20.0, 5000.0, 15000.0, 2.5e6]), min_size=1, unique=True
    )
)
def test_labels_of_different_marks_differ(marks: list[float]) -> None:
    assert len(set(axis.label_marks(marks))) == len(marks)


def test_powers_of_two_are_thinned_out() -> None:
    assert axis.powers_of_two(1, 8) == [1, 2, 4, 8]
    assert axis.powers_of_two(1, 1024, 6) == [1, 4, 16, 64, 256, 1024]


@pytest.mark.parametrize(
    ("low", "high", "marks"),
    [
        (8, 130, [10, 20, 50, 100]),
        (0.008, 2.5, [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2]),
        (0.9, 2000, [1, 5, 20, 100, 500, 2000]),
        (0.0208, 0.035, [0.025, 0.03, 0.035]),
    ],
)
def test_decades_are_few_and_never_less_than_two(
    low: float, high: float, marks: list[float]
) -> None:
    assert axis.decades(low, high) == pytest.approx(marks)
    latency = Axis("latency", low, high, "log10")
    parts = [latency.position(mark) for mark, _ in latency.labelled_marks]
    assert parts == sorted(parts) and -1e-9 <= parts[0] < parts[-1] <= 1 + 1e-9
    assert latency.position(math.sqrt(low * high)) == pytest.approx(0.5)


def test_a_logarithmic_axis_puts_doublings_at_equal_distances() -> None:
    axis = Axis("workers", 1.0, 16.0, "log2")
    assert [axis.position(n) for n in (1, 2, 4, 8, 16)] == [0, 0.25, 0.5, 0.75, 1]
    assert axis.labelled_marks[-1] == (16.0, "16")
