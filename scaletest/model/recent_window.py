"""A queue's figures over the last seconds, made of its time slots."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.model.time_slots import SLOT_S, TimeSlot


@dataclass(frozen=True, slots=True)
class RecentWindow:
    """A queue over the last seconds. Durations in seconds, maxima 0 when nothing ended."""

    submitted_per_s: float = 0.0  # requests submitted a second
    ended: int = 0  # requests that ended
    # their mean run time; when none ended the last that is known, None when none ever was
    mean_run_s: float | None = None
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
    # of the longest run
    node: str = ""
    pod: str = ""


def over(slots: Sequence[TimeSlot], now_s: float, window_s: float) -> RecentWindow:
    """Return the window that ends now. It begins with a whole slot, so it is up to ten seconds
    longer.
    """
    return _from(slots, _first(now_s, window_s), now_s)


def reach_s(now_s: float, window_s: float) -> float:
    """Return the seconds that `over` really reaches back: the window and less than ten
    seconds more.
    """
    return now_s - _first(now_s, window_s) * SLOT_S


def within(slots: Sequence[TimeSlot], now_s: float, limit_s: float) -> RecentWindow:
    """Return whole slots of the last `limit_s` seconds, the present slot among them: nothing in it
    is older than the limit.

    limit_s: a multiple of ten seconds.
    """
    return _from(slots, math.floor(now_s / SLOT_S) - round(limit_s / SLOT_S) + 1, now_s)


def in_slots(interval_s: float) -> int:
    """Return an interval rounded up to whole slots, in seconds."""
    return math.ceil(interval_s / SLOT_S) * SLOT_S


def _first(now_s: float, window_s: float) -> int:
    return math.floor((now_s - window_s) / SLOT_S)


def _from(slots: Sequence[TimeSlot], first: int, now_s: float) -> RecentWindow:
    """Return the window from the slot with the number `first` until now."""
    last = math.floor(now_s / SLOT_S)
    recent = [slot for slot in slots if first <= slot.number <= last]
    span_s = now_s - first * SLOT_S
    # of the recent slots, else of the last slot in which requests ended
    used = [slot for slot in recent if slot.ended]
    used = used or [slot for slot in slots if slot.number <= last and slot.ended][-1:]
    mean_run_s = None
    if used:
        mean_run_s = sum(slot.run_sum_s for slot in used) / sum(slot.ended for slot in used)
    longest = max(recent, key=lambda slot: slot.max_run_s, default=TimeSlot(0))
    return RecentWindow(
        submitted_per_s=sum(slot.submitted for slot in recent) / span_s if span_s > 0 else 0.0,
        ended=sum(slot.ended for slot in recent),
        mean_run_s=mean_run_s,
        max_wait_s=max((slot.max_wait_s for slot in recent), default=0.0),
        max_run_s=longest.max_run_s,
        max_total_s=max((slot.max_total_s for slot in recent), default=0.0),
        node=longest.node,
        pod=longest.pod,
    )
