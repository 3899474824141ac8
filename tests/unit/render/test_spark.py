"""Spark lines: their shape, and what is drawn of values of any kind and number."""

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render.spark import HEIGHT, MARGIN, MOST_POINTS, WIDTH, sparkline


def paths(values: list[float]) -> list[str]:
    root = ElementTree.fromstring(sparkline(values, "requests per second"))
    return [path.attrib["d"] for path in root.findall("path")]


def places(values: list[float]) -> list[tuple[float, float]]:
    numbers = [float(text) for path in paths(values) for text in re.findall(r"-?[\d.]+", path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


@pytest.mark.parametrize(
    ("values", "drawn"),
    [
        ([0, 1, 2], ["M0.0 18.5L50.0 10.0 100.0 1.5"]),
        # values below zero lie below the others
        ([-1, 0, 1], ["M0.0 18.5L50.0 10.0 100.0 1.5"]),
        # the line breaks where a value is unknown
        ([1, 1, math.nan, 1], ["M0.0 1.5L33.3 1.5", "M100.0 1.5h1"]),
        # a single value is a stroke and nothing is no path
        ([5], ["M0.0 1.5h1"]),
        ([], []),
    ],
)
def test_a_line_goes_from_the_first_value_to_the_last(
    values: list[float], drawn: list[str]
) -> None:
    assert paths(values) == drawn


def test_equal_values_lie_at_the_top_and_zeros_at_the_bottom() -> None:
    assert {y for _, y in places([3, 3, 3])} == {MARGIN}
    assert {y for _, y in places([0, 0])} == {HEIGHT - MARGIN}


def test_an_ideal_line_has_the_same_scale() -> None:
    root = ElementTree.fromstring(sparkline([1, 2], "title", [1, 4]))
    drawn = {path.attrib["class"]: path.attrib["d"] for path in root.findall("path")}
    assert drawn["c-ideal"].endswith("100.0 1.5") and drawn["c-spark"].endswith("100.0 10.0")


def test_of_very_many_values_the_peaks_are_drawn() -> None:
    values = [0.0] * 10_000
    values[5_000] = 7.0
    drawn = places(values)
    assert len(drawn) <= MOST_POINTS
    assert min(y for _, y in drawn) == MARGIN


def test_the_title_is_text_for_everybody() -> None:
    drawn = sparkline([1, 2], '<b onclick="x">&')
    root = ElementTree.fromstring(drawn)
    assert root.findtext("title") == root.attrib["aria-label"] == '<b onclick="x">&'
    assert "<b" not in drawn
    assert "style" not in root.attrib


@given(st.lists(st.floats(width=32), max_size=400))
def test_every_line_lies_in_its_picture(values: list[float]) -> None:
    for path in paths(values):
        numbers = [float(text) for text in re.findall(r"-?[\d.]+", path.partition("h")[0])]
        assert all(0 <= x <= WIDTH for x in numbers[::2])
        assert all(0 <= y <= HEIGHT for y in numbers[1::2])
