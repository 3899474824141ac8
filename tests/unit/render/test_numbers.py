"""Numbers: what is shown never says more than what is known."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scaletest.render import numbers

values = st.floats(1e-6, 1e9)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0"),
        (12e-6, "12 µs"),
        (0.0123, "12.3 ms"),
        (0.99999, "1 s"),
        (1.234, "1.23 s"),
        (4321, "4321 s"),
        (None, "n/a"),
        (math.inf, "n/a"),
    ],
)
def test_durations_are_short(value: float | None, shown: str) -> None:
    assert numbers.format_seconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (42, "42 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_long_durations_are_in_minutes_and_hours(value: float, shown: str) -> None:
    assert numbers.format_duration(value) == shown


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
    assert numbers.with_half_width(value, half) == shown


@given(values, values)
def test_a_printed_interval_is_never_narrower_than_the_true_one(value: float, half: float) -> None:
    shown, width = map(float, numbers.with_half_width(value, half).split(" ± "))
    assert width >= half * (1 - 1e-6)
    assert abs(shown - value) <= max(width, 1e-3 * value)


@given(values, st.floats(0, 5), st.floats(0, 5))
def test_the_ends_of_an_interval_enclose_the_value_as_printed(
    value: float, below: float, above: float
) -> None:
    printed = re.fullmatch(
        r"(\S+) \[(\S+), (\S+)\]",
        numbers.with_interval(value, value / (1 + below), value * (1 + above)),
    )
    assert printed
    middle, low, high = map(float, printed.groups())
    assert low <= middle <= high
    assert "e" not in printed.group()


@given(st.floats(allow_nan=True, allow_infinity=True), st.integers(1, 6))
def test_plain_numbers_have_no_exponent(value: float, digits: int) -> None:
    shown = numbers.format_significant(value, digits)
    assert "e" not in shown
    if math.isfinite(value) and 1e-9 < abs(value) < 1e12:
        assert float(shown) == pytest.approx(value, rel=10.0 ** (1 - digits))


@given(st.floats(0, 1e9))
def test_durations_read_back(value: float) -> None:
    shown, _, unit = numbers.format_seconds(value).partition(" ")
    size = {"": 1.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6}[unit]
    assert float(shown) * size == pytest.approx(value, rel=0.006, abs=6e-7)


def test_instants_are_in_utc_and_unknown_ones_are_marked() -> None:
    assert numbers.format_instant(1_790_000_000) == "2026-09-21 14:13:20Z"
    assert numbers.format_instant(0) == numbers.format_instant(1e30) == "n/a"
