"""Where the time of requests went, in words: a table of states, or a sentence."""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scaletest.causes.places import PLACE_TEXTS
from scaletest.model import Activity, State
from scaletest.render.blocks import Table
from scaletest.render.numbers import format_percent, format_quantity, format_seconds
from scaletest.render.text import clean_text
from scaletest.render.text_table import align_table

# In a sentence.
MOST_STATES = 4
LEAST_SHARE_OF_TIME = 0.01
# An object that holds more of its state than this is named.
MAIN_SHARE_OF_STATE = 0.5


def state_lines(activity: Activity) -> list[str]:
    """Return the states of a program as an aligned table; none where no time passed.

    States of less than a thousandth are left out.
    """
    whole_s = sum(activity.seconds.values())
    rows = []
    for state, part_s in sorted(activity.seconds.items(), key=lambda item: -item[1]):
        if part_s > 0.001 * whole_s:
            share = format_percent(part_s / whole_s, 0) if part_s >= 0.005 * whole_s else "<1%"
            waits = [wait for wait in activity.waits if wait.state is state and wait.object]
            objects = [f"{wait.object} {format_seconds(wait.seconds)}" for wait in waits]
            if len(waits) == 1:  # all of the time, which the row says already
                objects = [waits[0].object]
            texts = (share, format_seconds(part_s), clean_text(", ".join(objects)))
            rows.append((PLACE_TEXTS[state].label, *texts))
    if not rows:
        return []
    _, *table = align_table(Table(("",) * 4, rows, texts=(0, 3)))
    return table


def align_fact(name: str, text: str) -> str:
    """Join a name and its text in one line, aligned with others."""
    return f"{name:14} {text}"


def activity_lines(activity: Activity, run_s: float, own_memory: int) -> Iterator[str]:
    """Yield what one run of a program used, and where its time went.

    own_memory: bytes that a new process has before it runs the program.
    """
    cores = f", {activity.cpu_s / run_s:.2g} cores" if run_s > 0 else ""
    yield align_fact("CPU time", f"{format_seconds(activity.cpu_s)}{cores}")
    if activity.memory_bytes:
        # a new process begins with what its parent has, and may have used no more than that
        bound = "at most " if activity.memory_bytes <= own_memory * 1.02 else ""
        yield align_fact("peak memory", f"{bound}{format_quantity(activity.memory_bytes, 'B', 3)}")
    if activity.read_blocks:
        yield align_fact("disk reads", format_quantity(512 * activity.read_blocks, "B", 3))
    if activity.written_blocks:
        yield align_fact("disk writes", format_quantity(512 * activity.written_blocks, "B", 3))
    if activity.throttled_s:
        text = f"{format_seconds(activity.throttled_s)} by the container's CPU limit"
        yield align_fact("throttled", text)
    yield "where the time went:"
    for line in state_lines(activity):
        yield f"  {line}"


def states_sentence(activities: Sequence[Activity]) -> str:
    """Name the largest states of runs, each with its part and main object; "" without time."""
    seconds_by: dict[State, float] = defaultdict(float)
    waits: dict[tuple[State, str], float] = defaultdict(float)
    for activity in activities:
        for state, part_s in activity.seconds.items():
            seconds_by[state] += part_s
        for wait in activity.waits:
            waits[wait.state, wait.object] += wait.seconds
    whole_s = sum(seconds_by.values())
    main_objects: dict[State, str] = {}
    for (state, name), part_s in waits.items():
        if name and part_s > MAIN_SHARE_OF_STATE * seconds_by[state]:
            main_objects[state] = f" ({name})"
    largest = heapq.nlargest(MOST_STATES, seconds_by.items(), key=lambda item: item[1])
    texts = []
    for state, part_s in largest:
        if part_s >= LEAST_SHARE_OF_TIME * whole_s > 0:
            share = format_percent(part_s / whole_s, 0)
            texts.append(f"{PLACE_TEXTS[state].label} {share}{main_objects.get(state, '')}")
    return ", ".join(texts)
