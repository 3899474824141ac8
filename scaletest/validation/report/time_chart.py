"""The chart of where the time of a request goes, by state, as stacked bars, one a step."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from scaletest.causes.causes import StepTime
from scaletest.causes.places import PLACE_TEXTS, PLACES
from scaletest.render import svg
from scaletest.render.contents import Figure
from scaletest.render.numbers import percent, plural, seconds, unit_of
from scaletest.render.svg import Axis, Chart
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.words import workers_label

# A place that holds less of every step is joined with others of that kind.
LEAST_SHARE = 0.01
OTHER = "other"
# Half of a bar's width, where neighbouring steps are 1 apart.
HALF = 0.36
TIME_SIZE, NARROW_TIME = (760.0, 290.0), (360.0, 300.0)
TIME_CAPTION = (
    "Mean time from the end of a worker's request to the end of its next one. A part that grows"
    " with the workers holds throughput back by its growth; one that stays does not, however large"
    " it is."
)


def time_spent(result: Evaluation) -> Figure | None:
    """Where the time of a request goes, by state, as stacked bars, one a step; None where no
    request says it.
    """
    times = result.causes.times if result.causes else ()
    known = [time for time in times if any(time.seconds.values())]
    return Figure(_time_spent(known), TIME_CAPTION, NARROW_TIME) if known else None


def _time_spent(times: Sequence[StepTime]) -> Chart:
    highest_s = max(_whole(time) for time in times)
    size, unit = unit_of(highest_s)
    numbers = range(len(times))
    chart = Chart(
        "time-spent",
        "Time of a request by state",
        "; ".join(f"{plural(time.workers, 'worker')}: {_described(time)}" for time in times),
        Axis(
            workers_label(times[0].per_device),
            -0.6,
            len(times) - 0.4,
            marks=numbers,
            names=[str(time.level) for time in times],
        ),
        Axis(f"{unit} per request", 0.0, svg.ceiling(highest_s / size * 1.02)),
        *TIME_SIZE,
    )
    shown = _shown(times)
    for place in shown:
        chart.legend(_label(place), f"c-time-{place}", "area")
    for index, time in enumerate(times):
        _stack(chart, index, time, shown, size)
    return chart


def _stack(chart: Chart, index: int, time: StepTime, shown: Sequence[str], size: float) -> None:
    bottom_s, parts = 0.0, {**time.seconds, OTHER: _rest(time, shown)}
    for place in shown:
        part_s = parts.get(place, 0.0)
        if part_s <= 0:
            continue
        tip = (
            f"{plural(time.workers, 'worker')}: {_label(place)} {seconds(part_s)},"
            f" {percent(part_s / _whole(time), 0)}"
        )
        top_s = bottom_s + part_s
        chart.bar(index - HALF, index + HALF, top_s / size, f"c-time-{place}", tip, bottom_s / size)
        bottom_s = top_s


def _shown(times: Sequence[StepTime]) -> list[str]:
    """The places with a bar of their own, the most active at the bottom, and what is left."""
    shown = [str(place) for place in PLACES if any(map(partial(_is_large, place), times))]
    other = any(_rest(time, shown) >= LEAST_SHARE * _whole(time) for time in times)
    return [*shown, OTHER] if other else shown


def _is_large(place: str, time: StepTime) -> bool:
    return time.seconds.get(place, 0.0) >= LEAST_SHARE * _whole(time)


def _whole(time: StepTime) -> float:
    return sum(time.seconds.values())


def _rest(time: StepTime, shown: Sequence[str]) -> float:
    return sum(part_s for place, part_s in time.seconds.items() if place not in shown)


def _label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place


def _described(time: StepTime) -> str:
    return ", ".join(f"{_label(place)} {seconds(part_s)}" for place, part_s in time.seconds.items())
