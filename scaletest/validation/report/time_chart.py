"""The chart of where the time of a request goes, by state, as stacked bars, one a step."""

from scaletest.causes.causes import StepTime
from scaletest.causes.places import PLACE_TEXTS, PLACES
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart
from scaletest.render.numbers import format_percent, format_seconds, plural, unit_of
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.report.words import workers_label

# A place that holds less than this share of a step's time has no bar of its own.
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

    # one bar a step, of a part for each place, in the same order in every step
    stacks = [_join_small_parts(time) for time in times]
    for place in [*map(str, PLACES), OTHER]:
        if any(place in stack for stack in stacks):
            chart.legend(_place_label(place), f"c-time-{place}", shape="area")
    for index, (time, stack) in enumerate(zip(times, stacks, strict=True)):
        bottom_s = 0.0
        for place, part_s in stack.items():
            share = format_percent(part_s / sum(stack.values()), 0)
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


def _join_small_parts(time: StepTime) -> dict[str, float]:
    """Return the parts of a step's time with a bar, in s per request, the most active place first.

    Places with little of it are joined to OTHER, which stands last.
    """
    total_s = sum(time.seconds.values())
    parts = {place: time.seconds.get(place, 0.0) for place in map(str, PLACES)}
    stack = {place: part_s for place, part_s in parts.items() if part_s >= LEAST_SHARE * total_s}
    rest_s = total_s - sum(stack.values())
    if rest_s >= LEAST_SHARE * total_s:
        stack[OTHER] = rest_s
    return stack


def _place_label(place: str) -> str:
    return PLACE_TEXTS[place].label if place in PLACE_TEXTS else place
