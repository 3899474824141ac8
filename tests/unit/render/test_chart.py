"""Charts of any data are well-formed SVG."""

import math
import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

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
