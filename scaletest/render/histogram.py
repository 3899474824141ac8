"""Histograms: how values spread, as bars of one width."""

from collections.abc import Sequence

from scaletest.render.axis import Axis, axis_end
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_seconds, plural, unit_of


def histogram_ends(values: Sequence[float], least: float) -> tuple[float, float]:
    """Return the low and the high end of a histogram.

    least: how far the ends are apart at least. Values that are nearly alike stand in the middle of
    that, because a narrower histogram shows the noise of the clock as if it mattered.
    """
    low, high = min(values), max(values)
    if high - low < least:
        middle = (low + high) / 2
        return max(0.0, middle - least / 2), max(least, middle + least / 2)
    return low, high


def count_bins(values: Sequence[float], number: int, low: float, high: float) -> list[int]:
    """Count how many values lie in each of `number` bins between the ends."""
    width = (high - low) / number
    counts = [0] * number
    for value in values:
        counts[min(number - 1, max(0, int((value - low) / width)))] += 1
    return counts


def draw_histogram(
    chart_id: str,
    title: str,
    description: str,
    durations_s: Sequence[float],
    *,
    number: int,
    least_s: float,
    names: tuple[str, str],
    size: tuple[float, float],
) -> Chart:
    """Draw a histogram of durations in seconds, in the unit of the longest.

    number: of bins. least_s: as for `histogram_ends`. names: what lasts, and what each duration is
    one of, as in ("run time", "request"). size: width and height.
    """
    low_s, high_s = histogram_ends(durations_s, least_s)
    counts = count_bins(durations_s, number, low_s, high_s)
    measure, noun = names
    length_s, unit = unit_of(high_s)
    chart = Chart(
        chart_id,
        title,
        description,
        Axis(f"{measure} in {unit}", low=low_s / length_s, high=high_s / length_s, max_marks=5),
        Axis(f"{noun}s", low=0.0, high=axis_end(max(counts) * 1.02, max_marks=4), max_marks=4),
        *size,
    )
    draw_bars(chart, counts, (low_s, high_s), noun)
    return chart


def draw_bars(
    chart: Chart,
    counts: Sequence[int],
    ends_s: tuple[float, float],
    noun: str,
    size: float = 1.0,
) -> None:
    """Draw the bars, in the unit of the high end. size: what a bar of the height 1 counts."""
    low_s, high_s = ends_s
    length_s, _ = unit_of(high_s)
    width_s = (high_s - low_s) / len(counts)
    for index, count in enumerate(counts):
        if count:
            left_s, right_s = low_s + index * width_s, low_s + (index + 1) * width_s
            tip = (
                f"{plural(count, noun)} from {format_seconds(left_s)} to {format_seconds(right_s)}"
            )
            chart.bar(left_s / length_s, right_s / length_s, count / size, "c-bar", tip)
