"""The charts of a saturation run: latency against the load that was asked for, and what succeeded.

Latency bends upwards where the service saturates, as a hockey stick, so saturated levels belong to
the chart. Its axis is logarithmic: both arms can be read. Measurements of one level are one point.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scaletest.render.axis import Axis, axis_end, decades
from scaletest.render.blocks import Charts
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_seconds, format_significant, plural
from scaletest.saturation.judging.evaluation import SaturationResult
from scaletest.saturation.judging.step import AssessedStep
from scaletest.saturation.judging.step_sequence import OUTSIDE
from scaletest.stats.estimate import Estimate
from scaletest.stats.percentiles import Percentile

SIZE, NARROW = (460.0, 340.0), (360.0, 320.0)
HELD, SATURATED, UNDECIDED, TESTER = "held", "saturated", "undecided", "tester"
# A backlog that grew by more than this part of the offered rate, although that may be chance, shows
# no level that held.
GREW = 0.05
# The highest of these that two levels have is drawn beside the median.
TAILS = {"p99": "99th percentile", "p95": "95th percentile", "p90": "90th percentile"}
# Classes of dots of the median, of the tail and of throughput, by the state of their level.
DOTS = {HELD: "c-dot", SATURATED: "c-dot c-hollow"}
TAIL_DOTS = {HELD: "c-run-dot c-run-dot-1", SATURATED: "c-hollow-next"}
FAINT = "c-faint"


def step_state(assessed: AssessedStep) -> str:
    """Return what was decided about a step, in a word."""
    reasons = {
        TESTER: assessed.tester,
        SATURATED: assessed.saturated,
        UNDECIDED: assessed.undecided,
    }
    has_grown = assessed.growth and assessed.growth.value > GREW * assessed.offered
    return next(
        (name for name, reason in reasons.items() if reason), UNDECIDED if has_grown else HELD
    )


@dataclass(frozen=True, slots=True)
class Level:
    """All measurings of one level."""

    at: float  # requests/s offered, or requests in flight
    steps: Sequence[AssessedStep]

    @property
    def state(self) -> str:
        """What was decided most often; of two equally often the worse one."""
        states = list(map(step_state, self.steps))
        return max((SATURATED, UNDECIDED, TESTER, HELD), key=states.count)

    @property
    def goodput(self) -> Estimate:
        """The mean of the measurings, and the interval that holds those of all of them."""
        rates = [step.goodput for step in self.steps]
        mean = statistics.fmean(rate.value for rate in rates)
        return Estimate(mean, min(rate.low for rate in rates), max(rate.high for rate in rates))

    def latency_s(self, name: str) -> float | None:
        """Return a percentile of the latency, the median of the measurings; None if unknown."""
        percentiles: list[Percentile | None] = [getattr(step.latency, name) for step in self.steps]
        values_s = [percentile.value for percentile in percentiles if percentile]
        return statistics.median(values_s) if values_s else None

    def tip(self, text: str) -> str:
        """Return what a point shows under the pointer."""
        measurings = f", {plural(len(self.steps), 'measuring')}" if len(self.steps) > 1 else ""
        return f"{self.at:g}: {text}, {self.state}{measurings}"


def draw_charts(result: SaturationResult, point: str) -> Charts | None:
    """Draw latency and throughput beside each other; None with fewer than two levels.

    point: the saturation point as a sentence.
    """
    # the levels of the search in order; steps that the tester spoilt count only where there is no
    # other of their level
    by_level: dict[float, list[AssessedStep]] = defaultdict(list)
    for assessed in result.steps:
        if assessed.step.phase not in OUTSIDE:
            by_level[assessed.step.level].append(assessed)
    levels = []
    for at in sorted(by_level):
        sound = [assessed for assessed in by_level[at] if not assessed.tester]
        levels.append(Level(at, sound or by_level[at]))
    if len(levels) < 2:
        return None
    since = "from the intended start" if result.plan.open else "from when it was sent"
    sentences = {
        f"{point[:1].upper()}{point[1:]}.": True,
        "The dotted line is that point, and the shaded area its interval.": _has_interval(result),
        "Hollow points are saturated levels.": SATURATED in _states_of(levels),
        "Measurements of one level are one point, in the state that most of them had.": any(
            len(level.steps) > 1 for level in levels
        ),
        f"Latency is counted {since}; its axis is logarithmic.": True,
    }
    note = " ".join(sentence for sentence, holds in sentences.items() if holds)
    drawn = [_draw_latency(result, levels), _draw_throughput(result, levels)]
    return Charts([chart for chart in drawn if chart], "two", note=note, narrow_size=NARROW)


def _has_interval(result: SaturationResult) -> bool:
    """Whether the saturation point has an interval that can be drawn."""
    point = result.point
    return point is not None and point.low < point.high < math.inf


def _draw_latency(result: SaturationResult, levels: Sequence[Level]) -> Chart | None:
    """Draw the hockey stick; None where fewer than two levels have a median."""
    # the median, and the highest percentile that two levels have
    names = {"p50": "median"}
    for name, text in TAILS.items():
        if len(names) == 1 and len(_percentile_points(levels, name)) > 1:
            names[name] = text
    curves = {name: _percentile_points(levels, name) for name in names}
    if len(curves["p50"]) < 2:
        return None
    all_values_s = [value_s for _, value_s in chain.from_iterable(curves.values())]
    low_s, high_s = min(all_values_s) * 0.8, max(all_values_s) * 1.25
    marks = decades(low_s, high_s)
    chart = Chart(
        "latency",
        "Latency",
        "; ".join(level.tip(format_seconds(value_s)) for level, value_s in curves["p50"]),
        _load_axis(result, levels),
        Axis("latency", low_s, high_s, "log10", marks, list(map(format_seconds, marks))),
        *SIZE,
    )
    _draw_point(chart, result)
    for number, (name, points) in enumerate(curves.items()):
        css, dots = f"c-run c-run-{number}", TAIL_DOTS if number else DOTS
        chart.legend(names[name], css)
        chart.line([(level.at, value_s) for level, value_s in points], css)
        for level, value_s in points:
            tip = level.tip(f"{names[name]} {format_seconds(value_s)}")
            chart.dot(level.at, value_s, dots.get(level.state, FAINT), tip)
    _add_state_legend(chart, levels)
    return chart


def _percentile_points(levels: Sequence[Level], name: str) -> list[tuple[Level, float]]:
    """Return a percentile in s at the levels at which it is known, in the order of the levels."""
    points = [(level, level.latency_s(name)) for level in levels]
    return [(level, value_s) for level, value_s in points if value_s]


def _draw_throughput(result: SaturationResult, levels: Sequence[Level]) -> Chart:
    """Draw what succeeded, with intervals, beside the offered load."""
    rates = [level.goodput for level in levels]
    top = max(min(rate.high, 1.5 * rate.value) for rate in rates)
    chart = Chart(
        "goodput",
        "What succeeded",
        "; ".join(level.tip(f"{format_significant(level.goodput.value)}/s") for level in levels),
        _load_axis(result, levels),
        Axis("requests/s", 0.0, axis_end(top * 1.05)),
        *SIZE,
    )
    _draw_point(chart, result)
    chart.legend("succeeded, 95 % interval", "c-dot", "dot")
    if result.plan.open:
        chart.legend("offered load", "c-ideal")
        # a line that left the frame would lose its slope
        end = min(chart.x.high, chart.y.high)
        chart.line([(0.0, 0.0), (end, end)], "c-ideal")
    for level, rate in zip(levels, rates, strict=True):
        if math.isfinite(rate.high):
            chart.error(level.at, rate.low, rate.high, "c-error")
        tip = level.tip(f"{format_significant(rate.value)}/s")
        chart.dot(level.at, rate.value, DOTS.get(level.state, FAINT), tip)
    _add_state_legend(chart, levels)
    return chart


def _draw_point(chart: Chart, result: SaturationResult) -> None:
    """Draw the saturation point with its interval, which a number in flight does not have."""
    point = result.point
    if point is None:
        return
    chart.legend("saturation point", "c-wanted")
    if chart.id == "goodput":
        if _has_interval(result):
            chart.bar(chart.x.low, chart.x.high, point.high, "c-band", bottom=point.low)
        chart.horizontal_line(point.value, "c-wanted")
    elif result.plan.open:
        if _has_interval(result):
            chart.shade(point.low, point.high, "c-band")
        chart.vertical_line(
            point.value, "c-wanted", f"{format_significant(point.value)} requests/s"
        )
    elif result.parallel:
        chart.vertical_line(result.parallel, "c-wanted", f"{result.parallel} in flight")


def _add_state_legend(chart: Chart, levels: Sequence[Level]) -> None:
    """Explain the dots of states other than held, as far as they occur."""
    states = _states_of(levels)
    if SATURATED in states:
        chart.legend(SATURATED, DOTS[SATURATED], "dot")
    if states & {UNDECIDED, TESTER}:
        chart.legend("not decided", FAINT, "dot")


def _states_of(levels: Sequence[Level]) -> set[str]:
    return {level.state for level in levels}


def _load_axis(result: SaturationResult, levels: Sequence[Level]) -> Axis:
    label = "requests/s offered" if result.plan.open else "requests in flight"
    return Axis(label, 0.0, 1.05 * max(level.at for level in levels))
