"""Sentences about runs of several types: the same on a terminal, in a page and in a comment.

Where one program's time went is told here too: its states as rows, longest first.
"""

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scaletest.causes.places import PLACE_TEXTS
from scaletest.model import Activity, State, Verdict, VerdictKind
from scaletest.render.blocks import Table
from scaletest.render.numbers import format_percent, format_quantity, format_seconds
from scaletest.render.text import clean_text
from scaletest.render.text_table import align_table
from scaletest.stats.percentiles import Distribution

# Of charts whose axis does not reach to the end of a long interval.
CUT = "An interval without an upper end goes on above its chart."
# Units of axes in words, where their sign alone says little.
AXES = {"/s": "per second", "x": "times the step before"}
# In a sentence: so many states, each of so much of the time. An object that holds so much of its
# state is named.
MOST_STATES, LEAST_TOLD, MOST_OF_STATE = 4, 0.01, 0.5


def run_warnings(verdict: Verdict, interrupted: str, lines: Sequence[str]) -> list[str]:
    """Return the warnings of a run; an interruption first, where the verdict does not say it."""
    if not interrupted or interrupted in verdict.reason or verdict.kind is VerdictKind.RUNNING:
        return list(lines)
    return [f"interrupted: {interrupted}; the verdict rests on what was measured before", *lines]


def format_percentile(times: Distribution, name: str) -> str:
    """Word p50, p90, p95 or p99 of durations."""
    known = getattr(times, name)
    return format_seconds(known.value if known else None)


def lines(activity: Activity) -> list[str]:
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
            if len(waits) == 1:  # all of the time
                objects = [waits[0].object]
            rows.append(
                (
                    PLACE_TEXTS[state].label,
                    share,
                    format_seconds(part_s),
                    clean_text(", ".join(objects)),
                )
            )
    if not rows:
        return []
    _, *table = align_table(Table(("",) * 4, rows, texts=(0, 3)))
    return table


def fact(name: str, text: str) -> str:
    """Join a name and its text in one line, aligned with others."""
    return f"{name:14} {text}"


def summary(activity: Activity, run_s: float, own_memory: int) -> Iterator[str]:
    """Say what one run used, and where its time went. own_memory: bytes that a new program has."""
    cores = f", {activity.cpu_s / run_s:.2g} cores" if run_s > 0 else ""
    yield fact("CPU time", f"{format_seconds(activity.cpu_s)}{cores}")
    if activity.memory_bytes:
        # a new process begins with what its parent has, and may have used no more than that
        bound = "at most " if activity.memory_bytes <= own_memory * 1.02 else ""
        yield fact("peak memory", f"{bound}{format_quantity(activity.memory_bytes, 'B', 3)}")
    for name, blocks in (
        ("disk reads", activity.read_blocks),
        ("disk writes", activity.written_blocks),
    ):
        if blocks:
            yield fact(name, format_quantity(512 * blocks, "B", 3))
    if activity.throttled_s:
        yield fact(
            "throttled", f"{format_seconds(activity.throttled_s)} by the container's CPU limit"
        )
    yield "where the time went:"
    for line in lines(activity):
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
    named: dict[State, str] = {}
    for (state, name), part_s in waits.items():
        if name and part_s > MOST_OF_STATE * seconds_by[state]:
            named[state] = f" ({name})"
    largest = heapq.nlargest(MOST_STATES, seconds_by.items(), key=lambda item: item[1])
    return ", ".join(
        f"{PLACE_TEXTS[state].label} {format_percent(part_s / whole_s, 0)}{named.get(state, '')}"
        for state, part_s in largest
        if part_s >= LEAST_TOLD * whole_s > 0
    )
