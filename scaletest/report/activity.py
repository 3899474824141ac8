"""Where one program's time went: its states as rows, longest first, the same in all reports."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scaletest.analysis.request_time import PLACE_TEXTS
from scaletest.model import Activity, State
from scaletest.render.numbers import percent, quantity, seconds
from scaletest.render.text import clean

LEAST_SHARE = 0.001
# So much beyond our own memory, a program may have used no more than what it began with.
_NOISE = 1.02
# In a sentence: so many states, each of so much of the time. An object that holds so much of its
# state is named.
MOST_STATES, LEAST_TOLD, MOST_OF_STATE = 4, 0.01, 0.5


@dataclass(frozen=True, slots=True)
class StateRow:
    """One state in words. objects: waited for, longest first, with times if there are several."""

    label: str
    share: str
    time: str
    objects: str


def rows(activity: Activity) -> list[StateRow]:
    """The states, but for those of less than a thousandth; none where no time passed."""
    whole_s = sum(activity.seconds.values())
    longest = sorted(activity.seconds.items(), key=lambda item: -item[1])
    return [
        StateRow(
            PLACE_TEXTS[state].label,
            _share(part_s / whole_s),
            seconds(part_s),
            _objects(activity, state),
        )
        for state, part_s in longest
        if part_s > LEAST_SHARE * whole_s
    ]


def lines(activity: Activity) -> list[str]:
    """The rows as an aligned table in plain text."""
    table = rows(activity)
    label = max((len(row.label) for row in table), default=0)
    time = max((len(row.time) for row in table), default=0)
    return [
        f"{row.label:{label}}  {row.share:>4}  {row.time:>{time}}  {clean(row.objects)}".rstrip()
        for row in table
    ]


def fact(name: str, text: str) -> str:
    """A name and its text in one line, aligned with others."""
    return f"{name:15}{text}"


def summary(activity: Activity, run_s: float, own_memory: int) -> Iterator[str]:
    """What one run used, and where its time went. own_memory: bytes that a new program has."""
    cores = f", {activity.cpu_s / run_s:.2g} cores" if run_s > 0 else ""
    yield fact("CPU time", f"{seconds(activity.cpu_s)}{cores}")
    if activity.memory_bytes:
        # a new process begins with what its parent has
        bound = "at most " if activity.memory_bytes <= own_memory * _NOISE else ""
        yield fact("peak memory", f"{bound}{quantity(activity.memory_bytes, 'B', 3)}")
    for name, blocks in (
        ("disk reads", activity.read_blocks),
        ("disk writes", activity.written_blocks),
    ):
        if blocks:
            yield fact(name, quantity(512 * blocks, "B", 3))
    if activity.throttled_s:
        yield fact("throttled", f"{seconds(activity.throttled_s)} by the container's CPU limit")
    yield "where the time went:"
    for line in lines(activity):
        yield f"  {line}"


def sentence(activities: Sequence[Activity]) -> str:
    """The largest states of several runs, each with its part and main object; "" without time."""
    whole_s = sum(sum(activity.seconds.values()) for activity in activities)
    seconds_by: dict[State, float] = defaultdict(float)
    waits: dict[tuple[State, str], float] = defaultdict(float)
    for activity in activities:
        for state, part_s in activity.seconds.items():
            seconds_by[state] += part_s
        for wait in activity.waits:
            waits[wait.state, wait.object] += wait.seconds
    named: dict[State, str] = {}
    for (state, name), part_s in waits.items():
        if name and part_s > MOST_OF_STATE * seconds_by[state]:
            named[state] = name
    parts = [
        f"{PLACE_TEXTS[state].label} {percent(part_s / whole_s, 0)}"
        + (f" ({named[state]})" if state in named else "")
        for state, part_s in heapq.nlargest(
            MOST_STATES, seconds_by.items(), key=lambda item: item[1]
        )
        if part_s >= LEAST_TOLD * whole_s > 0
    ]
    return ", ".join(parts)


def _share(part: float) -> str:
    return percent(part, 0) if part >= 0.005 else "<1%"


def _objects(activity: Activity, state: State) -> str:
    waits = [wait for wait in activity.waits if wait.state is state and wait.object]
    if len(waits) == 1:
        return waits[0].object
    return ", ".join(f"{wait.object} {seconds(wait.seconds)}" for wait in waits)
