"""The chart of where the time of a request goes, by state, as stacked bars, one a step."""

from scaletest.causes.places import PLACE_TEXTS, PLACES
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_percent, format_seconds, plural, unit_of
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.words import workers_label

# A place that holds less of every step is joined with others of that kind.
LEAST_SHARE = 0.01
OTHER = "other"
# Half of a bar's width, where neighbouring steps are 1 apart.
HALF = 0.36
TIME_SIZE, NARROW_TIME = (760.0, 290.0), (360.0, 300.0)


def time_spent(result: Evaluation) -> Figure | None:
    """Return where the time of a request goes, by state, as stacked bars, one a step.

    None where no request says it.
    """
    all_times = result.causes.times if result.causes else ()
    times = [time for time in all_times if any(time.seconds.values())]
    if not times:
        return None
    totals_s = [sum(time.seconds.values()) for time in times]
    size, unit = unit_of(max(totals_s))
    described = []
    for time in times:
        parts = (
            f"{_place_label(place)} {format_seconds(part)}" for place, part in time.seconds.items()
        )
        described.append(f"{plural(time.workers, 'worker')}: {', '.join(parts)}")
    chart = Chart(
        "time-spent",
        "Time of a request by state",
        "; ".join(described),
        Axis(
            workers_label(times[0].per_device),
            -0.6,
            len(times) - 0.4,
            marks=range(len(times)),
            names=[str(time.level) for time in times],
        ),
        Axis(f"{unit} per request", 0.0, axis_end(max(totals_s) / size * 1.02)),
        *TIME_SIZE,
    )
    # the places with a bar of their own, the most active at the bottom, and what is left
    least_s = [LEAST_SHARE * total_s for total_s in totals_s]
    shown: list[str] = []
    for place in map(str, PLACES):
        parts_s = [time.seconds.get(place, 0.0) for time in times]
        if any(part_s >= least for part_s, least in zip(parts_s, least_s, strict=True)):
            shown.append(place)
    others_s = [
        sum(part_s for place, part_s in time.seconds.items() if place not in shown)
        for time in times
    ]
    bars = shown
    if any(other_s >= least for other_s, least in zip(others_s, least_s, strict=True)):
        bars = [*shown, OTHER]
    for place in bars:
        chart.legend(_place_label(place), f"c-time-{place}", "area")
    for index, (time, total_s, other_s) in enumerate(zip(times, totals_s, others_s, strict=True)):
        bottom_s, parts_of_step = 0.0, {**time.seconds, OTHER: other_s}
        for place in bars:
            part_s = parts_of_step.get(place, 0.0)
            if part_s <= 0:
                continue
            tip = (
                f"{plural(time.workers, 'worker')}: {_place_label(place)} {format_seconds(part_s)},"
                f" {format_percent(part_s / total_s, 0)}"
            )
            low, high = bottom_s / size, (bottom_s + part_s) / size
            chart.bar(index - HALF, index + HALF, high, f"c-time-{place}", tip, bottom=low)
            bottom_s += part_s
    return Figure(
        chart,
        (
            "Mean time from the end of a worker's request to the end of its next one. A part that"
            " grows with the workers holds throughput back by its growth; one that stays does not,"
            " however large it is."
        ),
        NARROW_TIME,
    )


def _place_label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place
