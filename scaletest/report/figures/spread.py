"""How the times of requests spread: boxes that compare steps, and a histogram for each step."""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.estimate import quantile
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.steps import Rows
from scaletest.render import svg
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
    by_step = []
    for step in result.steps:
        keys = (sample.measurement.key for sample in step.samples)
        values = sorted(
            getattr(row.reply, kind) for key in keys for row in records.get(key, ()) if row.ok
        )
        if len(values) >= LEAST_FOR_BOX:
            by_step.append(Times(step.workers, values))
    return by_step


def boxes(result: Evaluation, records: Rows, kind: str) -> Chart | None:
    """All steps beside each other; None when none has enough requests."""
    steps = times(result, records, kind)
    if not steps:
        return None
    reach = max(step.at(0.95) for step in steps)
    size, unit = unit_of(reach)
    word = kind.removesuffix("_s")
    count = len(steps)
    chart = Chart(
        f"box-{word}",
        f"{word.capitalize()} of the successful requests by number of workers",
        "; ".join(
            f"{plural(step.workers, 'worker')}: median {seconds(step.at(0.5))}" for step in steps
        ),
        Axis(
            "workers",
            -0.5,
            count - 0.5,
            marks=range(count),
            names=[str(step.workers) for step in steps],
        ),
        Axis(f"{word} in {unit}", 0.0, svg.ceiling(reach / size * 1.1 or 1.0)),
        WIDTH,
        HEIGHT,
    )
    for index, step in enumerate(steps):
        _box(chart, index, step, size)
    return chart


def _box(chart: Chart, at: int, step: Times, size: float) -> None:
    low, quarter, middle, upper, high = (step.at(p) / size for p in (0.05, 0.25, 0.5, 0.75, 0.95))
    tip = (
        f"{plural(step.workers, 'worker')}: median {seconds(middle * size)}, p95"
        f" {seconds(high * size)}"
    )
    chart.error(at, low, quarter, "c-error")
    chart.error(at, upper, high, "c-error")
    chart.bar(at - 0.22, at + 0.22, upper, "c-box", tip, bottom=quarter)
    chart.stroke(at - 0.22, at + 0.22, middle, "c-median")
    for extreme in (step.values[0] / size, step.values[-1] / size):
        if extreme < low or high < extreme <= chart.y.high:
            chart.dot(at, extreme, "c-faint", seconds(extreme * size), radius=2.6)


def histograms(result: Evaluation, records: Rows, kind: str) -> list[Chart]:
    """One for each step with requests enough."""
    steps = [
        step for step in times(result, records, kind) if len(step.values) >= LEAST_FOR_HISTOGRAM
    ]
    return [_histogram(step, kind.removesuffix("_s")) for step in steps]


def _histogram(step: Times, word: str) -> Chart:
    low, high = _edges(step)
    bins = min(MOST_BINS, max(8, round(len(step.values) ** 0.5 * 1.5)))
    width = (high - low) / bins
    counts = [0] * bins
    for value in step.values:
        counts[min(bins - 1, max(0, int((value - low) / width)))] += 1
    size, unit = unit_of(high)
    chart = Chart(
        f"histogram-{word}-{step.workers}",
        f"{plural(step.workers, 'worker')}, {plural(len(step.values), 'request')}",
        f"{word} from {seconds(step.values[0])} to {seconds(step.values[-1])}, median"
        f" {seconds(step.at(0.5))}",
        Axis(f"{word} in {unit}", low / size, high / size, most=5),
        Axis("requests", 0.0, svg.ceiling(max(counts) * 1.02, 4), most=4),
        SMALL_WIDTH,
        SMALL_HEIGHT,
    )
    for index, count in enumerate(counts):
        if count:
            left, right = low + index * width, low + (index + 1) * width
            tip = f"{plural(count, 'request')} from {seconds(left)} to {seconds(right)}"
            chart.bar(left / size, right / size, count, "c-bar", tip)
    return chart


def _edges(step: Times) -> tuple[float, float]:
    low, high = step.values[0], step.values[-1]
    least = NARROWEST * step.at(0.5) or 1e-6
    if high - low < least:
        middle = (low + high) / 2
        return max(0.0, middle - least / 2), middle + least / 2
    return low, high
