"""The chart of the overview: requests of all queues together, over the last ten minutes."""

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from scaletest.broker.snapshot import QueueSnapshot
from scaletest.model.time_slots import SLOT_S
from scaletest.render.axis import Axis, axis_end
from scaletest.render.blocks import Figure
from scaletest.render.chart import Chart

MINUTES = 10
# What the lines show, with their classes.
LINES = {"submitted": "c-ideal", "ended": "c-data", "failed": "c-fail"}
# Width and height of the chart on a screen, and on a phone.
WIDE = (1150.0, 220.0)
PHONE = (380.0, 240.0)


def draw_activity(queues: Sequence[QueueSnapshot], at_s: float) -> Figure | None:
    """Draw the requests per second in each slot of the ring; None where there was none."""
    last = int(at_s // SLOT_S)
    # the present slot is not over, so it would look like a fall
    numbers = range(last - MINUTES * 60 // SLOT_S, last)
    counts = {name: Counter[int]() for name in LINES}
    for slot in chain.from_iterable(queue.slots for queue in queues):
        for name, by_slot in counts.items():
            by_slot[slot.number] += getattr(slot, name)
    per_s = {
        name: [by_slot[number] / SLOT_S for number in numbers] for name, by_slot in counts.items()
    }
    top = max(map(max, per_s.values()))
    if not top:
        return None
    chart = Chart(
        "activity",
        f"Requests per second in the last {MINUTES} minutes",
        f"submitted, ended and failed requests of all queues, at most {top:g} per second",
        Axis("minutes before now", -MINUTES, 0.0),
        Axis("requests/s", 0.0, axis_end(top, 4), max_marks=4),
        *WIDE,
    )
    for name, values in per_s.items():
        if any(values):
            chart.legend(name, LINES[name])
            minutes = [(slot + 0.5 - last) * SLOT_S / 60 for slot in numbers]
            chart.line(list(zip(minutes, values, strict=True)), LINES[name])
    return Figure(chart, "", PHONE)
