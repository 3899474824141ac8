"""The chart of where the time of a request goes, by state, as stacked bars, one a step."""

from collections.abc import Sequence

from scaletest.causes.causes import StepTime
from scaletest.causes.places import PLACE_TEXTS, PLACES
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_percent, format_seconds, plural, unit_of
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.words import workers_label

# A place that holds less than this share of every step's time has no bar of its own: such places
# are joined.
LEAST_SHARE = 0.01
OTHER = "other"
# Steps are 1 apart. Bars reach so far to both sides, which leaves gaps between them; the axis ends
# as far outside the first and the last bar as looks even.
HALF_BAR, HALF_STEP = 0.36, 0.6
# Room above the highest bar, so that it does not touch the top.
HEADROOM = 1.02
# In px: of the chart, and of the same chart on phones.
WIDE_SIZE, NARROW_SIZE = (760.0, 290.0), (360.0, 300.0)


def draw_time_by_state(result: Evaluation) -> Figure | None:
    """Return the chart with its caption; None where no request says where its time went."""
    all_times = result.causes.times if result.causes else ()
    times = [time for time in all_times if any(time.seconds.values())]
    if not times:
        return None

    # the axes, and the numbers in words
    highest_s = max(sum(time.seconds.values()) for time in times)
    unit_s, unit = unit_of(highest_s)
    described = []
    for time in times:
        parts = (
            f"{_place_label(place)} {format_seconds(part)}" for place, part in time.seconds.items()
        )
        described.append(f"{plural(time.workers, 'worker')}: {', '.join(parts)}")
    width, height = WIDE_SIZE
    chart = Chart(
        id="time-spent",
        title="Time of a request by state",
        description="; ".join(described),
        x=Axis(
            workers_label(times[0].per_device),
            low=-HALF_STEP,
            high=len(times) - 1 + HALF_STEP,
            marks=range(len(times)),
            names=[str(time.level) for time in times],
        ),
        y=Axis(f"{unit} per request", low=0.0, high=axis_end(highest_s / unit_s * HEADROOM)),
        width=width,
        height=height,
    )

    # one bar a step, of a part for each place
    places = _places_to_draw(times)
    for place in places:
        chart.legend(_place_label(place), f"c-time-{place}", shape="area")
    for index, time in enumerate(times):
        total_s, bottom_s = sum(time.seconds.values()), 0.0
        other_s = _seconds_outside(places, time)
        for place in places:
            part_s = other_s if place == OTHER else time.seconds.get(place, 0.0)
            if part_s <= 0:
                continue
            share = format_percent(part_s / total_s, 0)
            chart.bar(
                low=index - HALF_BAR,
                high=index + HALF_BAR,
                top=(bottom_s + part_s) / unit_s,
                css=f"c-time-{place}",
                tip=(
                    f"{plural(time.workers, 'worker')}: {_place_label(place)}"
                    f" {format_seconds(part_s)}, {share}"
                ),
                bottom=bottom_s / unit_s,
            )
            bottom_s += part_s
    return Figure(
        chart,
        caption=(
            "Mean cycle time per request (gap + run). Only the parts that grow limit scaling; a"
            " large but constant part does not."
        ),
        narrow_size=NARROW_SIZE,
    )


def _places_to_draw(times: Sequence[StepTime]) -> list[str]:
    """Return the places with a bar of their own, the most active first, and OTHER if that has one.

    times: each with some time.
    """
    least_s = [LEAST_SHARE * sum(time.seconds.values()) for time in times]
    places: list[str] = []
    for place in map(str, PLACES):
        parts_s = [time.seconds.get(place, 0.0) for time in times]
        if any(part_s >= least for part_s, least in zip(parts_s, least_s, strict=True)):
            places.append(place)
    others_s = [_seconds_outside(places, time) for time in times]
    if any(other_s >= least for other_s, least in zip(others_s, least_s, strict=True)):
        places.append(OTHER)
    return places


def _seconds_outside(places: Sequence[str], time: StepTime) -> float:
    """Return the time of a step that is spent in none of these places, in s per request."""
    return sum(part_s for place, part_s in time.seconds.items() if place not in places)


def _place_label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place
