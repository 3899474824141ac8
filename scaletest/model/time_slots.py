"""The recent submissions and ends of a queue, in slots of ten seconds, and its figures over them.

A queue has a ring of RING slots, so that everybody can read the last minutes without a reset. A
slot that was not written again for a turn of the ring stays: it has the last run time of an idle
queue.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

SLOT_S = 10
RING = 64
# the slot that is being written, and the next one, are not complete
LONGEST_WINDOW_S = float((RING - 2) * SLOT_S)
# How a slot's number and its submissions are packed, both as doubles.
_SUBMISSIONS = struct.Struct("<dd")
# A double counts exactly up to here.
_MOST = 2.0**53


class TimeSlot(NamedTuple):
    """Events of ten seconds, from number * 10 s on, on the Redis clock.

    There are thousands of slots where there are many queues, so they are tuples.
    """

    number: int
    submitted: int = 0
    ended: int = 0
    run_sum_s: float = 0.0  # of the run times of requests that ended in it
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
    # where its longest run was: node and pod with line feeds between and after them
    place: str = ""
    failed: int = 0  # of those that ended, with those that timed out

    @property
    def node(self) -> str:
        """The node of its longest run."""
        return self.place.partition("\n")[0]

    @property
    def pod(self) -> str:
        """The pod of its longest run."""
        return self.place.rstrip("\n").partition("\n")[2]


def unpack_slots(
    fields: Mapping[bytes, bytes], ended: Iterable[TimeSlot] = ()
) -> tuple[TimeSlot, ...]:
    """Return the slots of a ring, oldest first. Slots that cannot be read are left out.

    fields: of the queue's hash, where i is a slot's place in the ring: a<i> has the submissions,
    at<i> where the longest run was. ended: slots with the ends alone, as `queue_counts.read` gives
    them.
    """
    places: dict[int, str] = {}
    submissions: Counter[int] = Counter()
    for name, packed in fields.items():
        if name.startswith(b"at"):
            with suppress(ValueError):
                number, _, place = packed.decode("utf-8", "replace").partition("\n")
                places[int(number)] = place
        if name.startswith(b"a") and len(packed) == _SUBMISSIONS.size:
            slot_number, submitted = _SUBMISSIONS.unpack(packed)
            if 0.0 <= slot_number <= _MOST and 0.0 <= submitted <= _MOST:
                submissions[int(slot_number)] += int(submitted)
    # cheaper than naming the fields: there are thousands of slots
    slots = {
        slot.number: TimeSlot(
            slot.number,
            submissions.pop(slot.number, 0),
            *slot[2:7],
            places.get(slot.number, ""),
            slot.failed,
        )
        for slot in ended
    }
    slots |= {number: TimeSlot(number, submitted) for number, submitted in submissions.items()}
    return tuple(slots[number] for number in sorted(slots))


@dataclass(frozen=True, slots=True)
class RecentWindow:
    """A queue over the last seconds; maxima are 0 when nothing ended."""

    submitted_per_s: float = 0.0
    ended: int = 0
    # of the requests that ended; when none did the last that is known, None when none ever was
    mean_run_s: float | None = None
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
    node: str = ""  # node and pod of the longest run
    pod: str = ""
    failed: int = 0  # of the requests that ended, with those that timed out


def window_until(slots: Sequence[TimeSlot], now_s: float, window_s: float) -> RecentWindow:
    """Return the window that ends now; it begins with a slot, so it is up to 10 s longer."""
    return _window_from(slots, _first_slot(now_s, window_s), now_s)


def reach_s(now_s: float, window_s: float) -> float:
    """Return the seconds that `window_until` really reaches back."""
    return now_s - _first_slot(now_s, window_s) * SLOT_S


def window_within(slots: Sequence[TimeSlot], now_s: float, limit_s: float) -> RecentWindow:
    """Return the window of whole slots in which nothing is older than the limit.

    limit_s: a multiple of ten seconds; the present slot counts as whole.
    """
    return _window_from(slots, math.floor(now_s / SLOT_S) - round(limit_s / SLOT_S) + 1, now_s)


def round_up_to_slots(interval_s: float) -> int:
    """Return an interval rounded up to whole slots, in seconds."""
    return math.ceil(interval_s / SLOT_S) * SLOT_S


def _first_slot(now_s: float, window_s: float) -> int:
    return math.floor((now_s - window_s) / SLOT_S)


def _window_from(slots: Sequence[TimeSlot], first: int, now_s: float) -> RecentWindow:
    """Return the window from the slot with the number `first` until now."""
    last = math.floor(now_s / SLOT_S)
    recent = [slot for slot in slots if first <= slot.number <= last]
    span_s = now_s - first * SLOT_S
    # the mean of the recent slots, else of the last slot in which requests ended
    ended = [slot for slot in recent if slot.ended]
    ended = ended or [slot for slot in slots if slot.number <= last and slot.ended][-1:]
    mean_run_s = None
    if ended:
        mean_run_s = sum(slot.run_sum_s for slot in ended) / sum(slot.ended for slot in ended)
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
        failed=sum(slot.failed for slot in recent),
    )
