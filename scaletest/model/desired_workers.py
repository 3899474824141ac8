"""How many workers a queue needs, by the figures of its recent window. One rule for all. Pure.

The window has slots of ten seconds. The rule is used by the exporter and by the simulator:

    wanted = ceil(S * (lambda / rho + waiting / W))

S is the mean run time and lambda the rate at which requests come, so S * lambda workers keep up
exactly (Little's law). rho, the target utilisation, leaves room: a queue served at its limit grows
without bound, and the article on load testing found 70 % to do considerably better. Requests that
wait already shall be worked off within W seconds, which takes S * waiting / W workers more. The
rate shows load before a backlog does, and does not move when workers are added: a rule that
multiplies the number of workers (HPA with a plain value) oscillates.

The wanted number falls only when all numbers of a whole window were lower, so that a quiet moment
stops no worker.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from scaletest.model.declared import Document, PositiveSeconds
from scaletest.model.queue_counts import LONGEST_WINDOW_S, SLOT_S, TimeSlot


@dataclass(frozen=True, slots=True)
class RecentWindow:
    """A queue over the last seconds. Durations in seconds, maxima 0 when nothing ended.

    submitted_per_s: requests submitted a second. ended: requests that ended. mean_run_s: their mean
    run time; when none ended the last that is known, None when none ever was. node, pod: of the
    longest run.
    """

    submitted_per_s: float = 0.0
    ended: int = 0
    mean_run_s: float | None = None
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
    node: str = ""
    pod: str = ""


def over(slots: Sequence[TimeSlot], now_s: float, window_s: float) -> RecentWindow:
    """The window that ends now. It begins with a whole slot, so it is up to ten seconds longer."""
    return _from(slots, _first(now_s, window_s), now_s)


def reach_s(now_s: float, window_s: float) -> float:
    """Seconds that `over` really reaches back: the window and less than ten seconds more."""
    return now_s - _first(now_s, window_s) * SLOT_S


def within(slots: Sequence[TimeSlot], now_s: float, limit_s: float) -> RecentWindow:
    """Whole slots of the last `limit_s` seconds, the present slot among them: nothing in it is
    older than the limit.

    limit_s: a multiple of ten seconds.
    """
    return _from(slots, math.floor(now_s / SLOT_S) - round(limit_s / SLOT_S) + 1, now_s)


def in_slots(interval_s: float) -> int:
    """An interval rounded up to whole slots, in seconds."""
    return math.ceil(interval_s / SLOT_S) * SLOT_S


def _first(now_s: float, window_s: float) -> int:
    return math.floor((now_s - window_s) / SLOT_S)


def _from(slots: Sequence[TimeSlot], first: int, now_s: float) -> RecentWindow:
    """The window from the slot with the number `first` until now."""
    last = math.floor(now_s / SLOT_S)
    recent = [slot for slot in slots if first <= slot.number <= last]
    span_s = now_s - first * SLOT_S
    submitted_per_s = 0.0
    if span_s > 0:
        submitted_per_s = sum(slot.submitted for slot in recent) / span_s
    longest = max(recent, key=lambda slot: slot.max_run_s, default=TimeSlot(0))
    return RecentWindow(
        submitted_per_s=submitted_per_s,
        ended=sum(slot.ended for slot in recent),
        mean_run_s=_mean_run_s([slot for slot in slots if slot.number <= last], recent),
        max_wait_s=max((slot.max_wait_s for slot in recent), default=0.0),
        max_run_s=longest.max_run_s,
        max_total_s=max((slot.max_total_s for slot in recent), default=0.0),
        node=longest.node,
        pod=longest.pod,
    )


def _mean_run_s(past: Sequence[TimeSlot], recent: Sequence[TimeSlot]) -> float | None:
    """The mean run time of the recent slots, else of the last slot in which requests ended."""
    used = [slot for slot in recent if slot.ended] or [slot for slot in past if slot.ended][-1:]
    if not used:
        return None
    return sum(slot.run_sum_s for slot in used) / sum(slot.ended for slot in used)


# More are a mistake: a run time of days and a thousand requests a second.
MOST_WORKERS = 1_000_000

History = tuple[tuple[float, int], ...]


@dataclass(frozen=True, slots=True)
class Targets(Document):
    """Targets for the number of workers.

    utilisation: share of time that workers are busy, above 0 to 1. wait_s: seconds in which a
    backlog is worked off. window_s: seconds over which rates and run times are measured, and for
    which a lower number must last.
    """

    utilisation: Annotated[
        float, Meta(gt=0, le=1, extra={"hint": "give a share above 0, at most 1, such as 0.7"})
    ] = 0.7
    wait_s: Annotated[PositiveSeconds, Meta(title="wait target")] = 30.0
    window_s: Annotated[
        float, Meta(gt=0, le=LONGEST_WINDOW_S, title="window", extra={"unit": "s"})
    ] = 60.0


@dataclass(frozen=True, slots=True)
class QueueDemand:
    """The present load of a queue.

    run_s: mean run time of a request in seconds, None when none ever ended.
    """

    waiting: int
    running: int
    submitted_per_s: float = 0.0
    run_s: float | None = None


def wanted(demand: QueueDemand, targets: Targets) -> int:
    """Workers wanted now. Without a known run time, one for each waiting or running request."""
    present = demand.waiting + demand.running
    if demand.run_s is None:
        return min(present, MOST_WORKERS)
    load = demand.submitted_per_s / targets.utilisation + demand.waiting / targets.wait_s
    # a billionth is noise of floating point, not a worker
    number = math.ceil(demand.run_s * load - 1e-9)
    return min(max(number, min(present, 1)), MOST_WORKERS)


def desired(
    now_s: float, wanted_now: int, history: Sequence[tuple[float, int]], window_s: float
) -> tuple[int, History]:
    """The number to act on, and the history to pass in next time.

    The number is the highest that was wanted in the last `window_s` seconds. now_s: any clock that
    does not go back. Only numbers that may still become the highest are remembered.
    """
    recent = [(at, old) for at, old in history if at > now_s - window_s]
    while recent and recent[-1][1] <= wanted_now:
        recent.pop()
    remembered = (*recent, (now_s, wanted_now))
    return remembered[0][1], remembered
