"""How the times of requests spread: boxes that compare steps, and a histogram for each step."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.percentiles import quantile
from scaletest.analysis.steps import Rows
from scaletest.render import ticks
from scaletest.render.numbers import plural, seconds, unit_of
from scaletest.render.svg import Axis, Chart

LEAST_FOR_BOX = 5
LEAST_FOR_HISTOGRAM = 20
MOST_BINS = 30
# A histogram narrower than this part of the median would show the noise of the clock as if it
# mattered.
NARROWEST = 0.05
WIDTH, HEIGHT = 430.0, 270.0
SMALL_WIDTH, SMALL_HEIGHT = 360.0, 190.0
BOX_CAPTION = (
    "Boxes hold the middle half of the successful requests, the line in them is the median,"
    " whiskers reach from p5 to p95, dots are the extremes that fit into the frame. Run times that"
    " grow with the workers mean that they share something; long waits mean that the workers were"
    " not ready to take."
)
HISTOGRAM_CAPTION = (
    "Two heaps instead of one mean two kinds of requests, devices or nodes: compare them below."
)


@dataclass(frozen=True, slots=True)
class Times:
    """Sorted times of the successful requests of one step, in s."""

    workers: int
    values: list[float]

    def at(self, p: float) -> float:
        """The p-quantile."""
        return quantile(self.values, p)


def times(result: Evaluation, records: Rows, kind: str) -> list[Times]:
    """kind: wait_s or run_s."""
    found = []
    for step in result.steps:
        keys = (one.measurement.key for one in step.samples)
        values = sorted(
            getattr(row.reply, kind) for key in keys for row in records.get(key, ()) if row.ok
        )
        if len(values) >= LEAST_FOR_BOX:
            found.append(Times(step.workers, values))
    return found


def boxes(result: Evaluation, records: Rows, kind: str) -> Chart | None:
    """All steps beside each other; None when none has enough requests."""
    found = times(result, records, kind)
    if not found:
        return None
    reach = max(one.at(0.95) for one in found)
    size, unit = unit_of(reach)
    word = kind.removesuffix("_s")
    count = len(found)
    chart = Chart(
        f"box-{word}",
        f"{word.capitalize()} of the successful requests by number of workers",
        "; ".join(
            f"{plural(one.workers, 'worker')}: median {seconds(one.at(0.5))}" for one in found
        ),
        Axis(
            "workers",
            -0.5,
            count - 0.5,
            marks=range(count),
            names=[str(one.workers) for one in found],
        ),
        Axis(f"{word} in {unit}", 0.0, ticks.ceiling(reach / size * 1.1 or 1.0)),
        WIDTH,
        HEIGHT,
    )
    for index, one in enumerate(found):
        _box(chart, index, one, size)
    return chart


def _box(chart: Chart, at: int, one: Times, size: float) -> None:
    low, quarter, middle, upper, high = (one.at(p) / size for p in (0.05, 0.25, 0.5, 0.75, 0.95))
    tip = (
        f"{plural(one.workers, 'worker')}: median {seconds(middle * size)}, p95"
        f" {seconds(high * size)}"
    )
    chart.error(at, low, quarter, "c-error")
    chart.error(at, upper, high, "c-error")
    chart.bar(at - 0.22, at + 0.22, upper, "c-box", tip, bottom=quarter)
    chart.stroke(at - 0.22, at + 0.22, middle, "c-median")
    for extreme in (one.values[0] / size, one.values[-1] / size):
        if extreme < low or high < extreme <= chart.y.high:
            chart.dot(at, extreme, "c-faint", seconds(extreme * size), radius=2.6)


def histograms(result: Evaluation, records: Rows, kind: str) -> list[Chart]:
    """One for each step with requests enough."""
    found = [one for one in times(result, records, kind) if len(one.values) >= LEAST_FOR_HISTOGRAM]
    return [_histogram(one, kind.removesuffix("_s")) for one in found]


def _histogram(one: Times, word: str) -> Chart:
    low, high = _edges(one)
    bins = min(MOST_BINS, max(8, round(len(one.values) ** 0.5 * 1.5)))
    width = (high - low) / bins
    counts = [0] * bins
    for value in one.values:
        counts[min(bins - 1, max(0, int((value - low) / width)))] += 1
    size, unit = unit_of(high)
    chart = Chart(
        f"histogram-{word}-{one.workers}",
        f"{plural(one.workers, 'worker')}, {plural(len(one.values), 'request')}",
        f"{word} from {seconds(one.values[0])} to {seconds(one.values[-1])}, median"
        f" {seconds(one.at(0.5))}",
        Axis(f"{word} in {unit}", low / size, high / size, most=5),
        Axis("requests", 0.0, ticks.ceiling(max(counts) * 1.02, 4), most=4),
        SMALL_WIDTH,
        SMALL_HEIGHT,
    )
    for index, count in enumerate(counts):
        if count:
            left, right = low + index * width, low + (index + 1) * width
            tip = f"{plural(count, 'request')} from {seconds(left)} to {seconds(right)}"
            chart.bar(left / size, right / size, count, "c-bar", tip)
    return chart


def _edges(one: Times) -> tuple[float, float]:
    low, high = one.values[0], one.values[-1]
    least = NARROWEST * one.at(0.5) or 1e-6
    if high - low < least:
        middle = (low + high) / 2
        return max(0.0, middle - least / 2), middle + least / 2
    return low, high
