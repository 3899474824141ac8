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
from scaletest.saturation.judging.step_sequence import PHASES_BESIDE_SEARCH
from scaletest.stats.estimate import Estimate
from scaletest.stats.percentiles import Percentile

SIZE, PHONE_SIZE = (460.0, 340.0), (360.0, 320.0)  # width and height in px
LATENCY_CHART, GOODPUT_CHART = "latency", "goodput"  # ids on the page
# states of a step and of a level, as a tip says them
HELD, SATURATED, UNDECIDED, TESTER = "held", "saturated", "undecided", "tester"
# A growth of the backlog that may be chance does not fail a step. Where it is more than this part
# of the offered rate, the chart does not show the step as held either, but as undecided.
DOUBTFUL_GROWTH = 0.05
# The highest of these that two levels have is drawn beside the median.
TAILS = {"p99": "99th percentile", "p95": "95th percentile", "p90": "90th percentile"}
# CSS classes of dots by the state of their level, for the median and throughput, and for the tail.
DOT_CLASSES = {HELD: "c-dot", SATURATED: "c-dot c-hollow"}
TAIL_DOT_CLASSES = {HELD: "c-run-dot c-run-dot-1", SATURATED: "c-hollow-next"}
FAINT_DOT = "c-faint"  # of the other states


def step_state(assessed: AssessedStep) -> str:
    """Return the state of a step: what was decided about it, the tester's lateness first."""
    reasons = {
        TESTER: assessed.tester,
        SATURATED: assessed.saturated,
        UNDECIDED: assessed.undecided,
    }
    has_grown = assessed.growth and assessed.growth.value > DOUBTFUL_GROWTH * assessed.offered
    return next(
        (name for name, reason in reasons.items() if reason), UNDECIDED if has_grown else HELD
    )


@dataclass(frozen=True, slots=True)
class Level:
    """All measurings of one level."""

    load: float  # requests/s offered, or requests in flight under closed load
    steps: Sequence[AssessedStep]

    @property
    def state(self) -> str:
        """The state of most of its steps; of two equally often the worse one."""
        states = list(map(step_state, self.steps))
        return max((SATURATED, UNDECIDED, TESTER, HELD), key=states.count)

    @property
    def goodput(self) -> Estimate:
        """The mean of the measurings, and the interval that holds those of all of them."""
        rates = [step.goodput for step in self.steps]
        mean = statistics.fmean(rate.value for rate in rates)
        return Estimate(mean, min(rate.low for rate in rates), max(rate.high for rate in rates))

    def latency_s(self, name: str) -> float | None:
        """Return a percentile of the latency, the median of the measurings; None if unknown.

        name: "p50", or one of TAILS.
        """
        percentiles: list[Percentile | None] = [getattr(step.latency, name) for step in self.steps]
        values_s = [percentile.value for percentile in percentiles if percentile]
        return statistics.median(values_s) if values_s else None

    def tip(self, text: str) -> str:
        """Return what a dot shows under the pointer: the load, this text, and the state."""
        measurings = f", {plural(len(self.steps), 'measuring')}" if len(self.steps) > 1 else ""
        return f"{self.load:g}: {text}, {self.state}{measurings}"


def draw_charts(result: SaturationResult, point_sentence: str) -> Charts | None:
    """Draw latency and throughput beside each other; None with fewer than two levels.

    point_sentence: the saturation point in words, without a capital or a full stop.
    """
    # the levels of the search in order; steps that the tester spoilt count only where there is no
    # other of their level
    by_level: dict[float, list[AssessedStep]] = defaultdict(list)
    for assessed in result.steps:
        if assessed.step.phase not in PHASES_BESIDE_SEARCH:
            by_level[assessed.step.level].append(assessed)
    levels = []
    for load, steps in sorted(by_level.items()):
        in_time = [assessed for assessed in steps if not assessed.tester]
        levels.append(Level(load, in_time or steps))
    if len(levels) < 2:
        return None
    # the note explains what the charts show, and nothing that they do not
    since = "from the intended start" if result.plan.open else "from when it was sent"
    sentences = {
        f"{point_sentence[:1].upper()}{point_sentence[1:]}.": True,
        "The dotted line is that point, and the shaded area its interval.": _has_interval(result),
        "Hollow points are saturated levels.": SATURATED in _states_of(levels),
        "Measurements of one level are one point, in the state that most of them had.": any(
            len(level.steps) > 1 for level in levels
        ),
        f"Latency is counted {since}; its axis is logarithmic.": True,
    }
    note = " ".join(sentence for sentence, holds in sentences.items() if holds)
    drawn = [_draw_latency(result, levels), _draw_throughput(result, levels)]
    return Charts([chart for chart in drawn if chart], "two", note=note, narrow_size=PHONE_SIZE)


def _has_interval(result: SaturationResult) -> bool:
    """Whether the saturation point has an interval that can be drawn."""
    point = result.point
    return point is not None and point.low < point.high < math.inf


def _draw_latency(result: SaturationResult, levels: Sequence[Level]) -> Chart | None:
    """Draw the hockey stick; None where fewer than two levels have a median."""
    # the median, and the highest percentile that two levels have
    names = {"p50": "median"}
    for name, text in TAILS.items():
        if len(_percentile_points(levels, name)) >= 2:
            names[name] = text
            break
    curves = {name: _percentile_points(levels, name) for name in names}
    if len(curves["p50"]) < 2:
        return None
    all_values_s = [value_s for _, value_s in chain.from_iterable(curves.values())]
    # room below the lowest dot and above the highest, so that none lies on the frame
    low_s, high_s = min(all_values_s) * 0.8, max(all_values_s) * 1.25
    marks = decades(low_s, high_s)
    chart = Chart(
        LATENCY_CHART,
        "Latency",
        "; ".join(level.tip(format_seconds(value_s)) for level, value_s in curves["p50"]),
        _load_axis(result, levels),
        Axis("latency", low_s, high_s, "log10", marks, list(map(format_seconds, marks))),
        *SIZE,
    )
    _draw_saturation_point(chart, result)
    for number, (name, points) in enumerate(curves.items()):
        css = f"c-run c-run-{number}"
        dot_classes = TAIL_DOT_CLASSES if name in TAILS else DOT_CLASSES
        chart.legend(names[name], css)
        chart.line([(level.load, value_s) for level, value_s in points], css)
        for level, value_s in points:
            tip = level.tip(f"{names[name]} {format_seconds(value_s)}")
            chart.dot(level.load, value_s, dot_classes.get(level.state, FAINT_DOT), tip)
    _add_state_legend(chart, levels)
    return chart


def _percentile_points(levels: Sequence[Level], name: str) -> list[tuple[Level, float]]:
    """Return a percentile in s at the levels at which it is known, in the order of the levels.

    One of 0 s has no place on a logarithmic axis, and is left out.
    """
    points = [(level, level.latency_s(name)) for level in levels]
    return [(level, value_s) for level, value_s in points if value_s]


def _draw_throughput(result: SaturationResult, levels: Sequence[Level]) -> Chart:
    """Draw what succeeded, with intervals, beside the offered load."""
    rates = [level.goodput for level in levels]
    # a wide interval is cut by the frame, rather than making all others small
    top = max(min(rate.high, 1.5 * rate.value) for rate in rates)
    chart = Chart(
        GOODPUT_CHART,
        "What succeeded",
        "; ".join(level.tip(f"{format_significant(level.goodput.value)}/s") for level in levels),
        _load_axis(result, levels),
        Axis("requests/s", 0.0, axis_end(top * 1.05)),
        *SIZE,
    )
    _draw_saturation_point(chart, result)
    chart.legend("succeeded, 95 % interval", "c-dot", "dot")
    if result.plan.open:
        chart.legend("offered load", "c-ideal")
        # a line that left the frame would lose its slope
        end = min(chart.x.high, chart.y.high)
        chart.line([(0.0, 0.0), (end, end)], "c-ideal")
    for level, rate in zip(levels, rates, strict=True):
        if math.isfinite(rate.high):
            chart.error(level.load, rate.low, rate.high, "c-error")
        tip = level.tip(f"{format_significant(rate.value)}/s")
        chart.dot(level.load, rate.value, DOT_CLASSES.get(level.state, FAINT_DOT), tip)
    _add_state_legend(chart, levels)
    return chart


def _draw_saturation_point(chart: Chart, result: SaturationResult) -> None:
    """Draw the saturation point and its interval, as far as the axes of a chart have them.

    It is a rate, so throughput shows it on its vertical axis. The other chart shows it on the axis
    of the load: under open load as that rate, under closed load as the number in flight, which has
    no interval.
    """
    point = result.point
    if point is None:
        return
    chart.legend("saturation point", "c-wanted")
    if chart.id == GOODPUT_CHART:
        if _has_interval(result):
            chart.bar(chart.x.low, chart.x.high, point.high, "c-band", bottom=point.low)
        chart.stroke(chart.x.low, chart.x.high, point.value, "c-wanted")
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
        chart.legend(SATURATED, DOT_CLASSES[SATURATED], "dot")
    if states & {UNDECIDED, TESTER}:
        chart.legend("not decided", FAINT_DOT, "dot")


def _states_of(levels: Sequence[Level]) -> set[str]:
    return {level.state for level in levels}


def _load_axis(result: SaturationResult, levels: Sequence[Level]) -> Axis:
    label = "requests/s offered" if result.plan.open else "requests in flight"
    return Axis(label, 0.0, 1.05 * max(level.load for level in levels))
