"""Where the time of a request goes, by state, against the number of workers: stacked bars, one a
step.
"""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.analysis.causes import StepTime
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.request_time import PLACE_TEXTS, PLACES
from scaletest.render import svg
from scaletest.render.contents import Figure
from scaletest.render.numbers import percent, plural, seconds, unit_of
from scaletest.render.svg import Axis, Chart

SIZES = ((720.0, 380.0), (400.0, 340.0))
# A place that holds less of every step is joined with others of that kind.
LEAST_SHARE = 0.01
OTHER = "other"
# Half of a bar's width, where neighbouring steps are 1 apart.
HALF = 0.36


def time_spent(result: Evaluation) -> Figure | None:
    """The chart; None where no request says where its time went."""
    causes = result.causes
    times = [time for time in causes.times if any(time.seconds.values())] if causes else []
    if not times:
        return None
    wide, narrow = (_chart(times, f"time-spent-{index}", *size) for index, size in enumerate(SIZES))
    caption = (
        "Mean time from the end of a worker's request to the end of its next one. A part that grows"
        " with the workers holds throughput back by its growth; one that stays does not, however"
        " large it is."
    )
    return Figure(wide, narrow, caption)


def _chart(times: Sequence[StepTime], name: str, width: float, height: float) -> Chart:
    size, unit = unit_of(max(sum(time.seconds.values()) for time in times))
    highest = max(sum(time.seconds.values()) for time in times) / size
    label = "workers on each device" if times[0].per_device else "workers"
    chart = Chart(
        name,
        "Time of a request by state",
        "; ".join(f"{plural(time.workers, 'worker')}: {_described(time)}" for time in times),
        Axis(
            label,
            -0.6,
            len(times) - 0.4,
            "linear",
            list(range(len(times))),
            [str(time.level) for time in times],
        ),
        Axis(f"{unit} per request", 0.0, svg.ceiling(highest * 1.02)),
        width,
        height,
    )
    shown = _shown(times)
    for place in shown:
        chart.legend(_label(place), f"c-time-{place}", "area")
    for index, time in enumerate(times):
        _stack(chart, index, time, shown, size)
    return chart


def _stack(chart: Chart, index: int, time: StepTime, shown: Sequence[str], size: float) -> None:
    bottom_s, whole_s = 0.0, sum(time.seconds.values())
    for place in shown:
        part_s = time.seconds.get(place, 0.0) if place != OTHER else _rest(time, shown)
        if part_s <= 0:
            continue
        tip = (
            f"{plural(time.workers, 'worker')}: {_label(place)} {seconds(part_s)},"
            f" {percent(part_s / whole_s, 0)}"
        )
        top_s = bottom_s + part_s
        chart.bar(index - HALF, index + HALF, top_s / size, f"c-time-{place}", tip, bottom_s / size)
        bottom_s = top_s


def _shown(times: Sequence[StepTime]) -> list[str]:
    """The places with a bar of their own, the most active at the bottom, and what is left."""
    least = {place for place in PLACES for time in times if _share(time, place) >= LEAST_SHARE}
    shown = [str(place) for place in PLACES if place in least]
    other = any(_rest(time, shown) >= LEAST_SHARE * sum(time.seconds.values()) for time in times)
    return [*shown, OTHER] if other else shown


def _share(time: StepTime, place: str) -> float:
    return time.seconds.get(place, 0.0) / sum(time.seconds.values())


def _rest(time: StepTime, shown: Sequence[str]) -> float:
    return sum(part_s for place, part_s in time.seconds.items() if place not in shown)


def _label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place


def _described(time: StepTime) -> str:
    return ", ".join(f"{_label(place)} {seconds(part_s)}" for place, part_s in time.seconds.items())
