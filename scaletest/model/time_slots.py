"""Time slots of ten seconds: recent submissions and ends of a queue, as the broker's scripts pack
them.

A queue has a ring of RING slots, so that everybody can read the last minutes without a reset. A
slot that was not written again for a turn of the ring stays: it has the last run time of an idle
queue.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SLOT_S = 10
RING = 64
# the slot that is being written, and the next one, are not complete
LONGEST_WINDOW_S = float((RING - 2) * SLOT_S)

_ENDED = struct.Struct("<dddddd")
_ARRIVED = struct.Struct("<dd")
# A double counts exactly up to here.
_MOST = 2.0**53


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """Events of ten seconds from number * 10 s on, on the Redis clock. Durations within 1 %.

    run_sum_s: sum of the run times of requests that ended in it. node, pod: of its longest run.
    """

    number: int
    submitted: int = 0
    ended: int = 0
    run_sum_s: float = 0.0
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
    node: str = ""
    pod: str = ""


def unpack(fields: Mapping[bytes, bytes], ended: Iterable[TimeSlot] = ()) -> tuple[TimeSlot, ...]:
    """The slots of a ring, oldest first. Slots that cannot be read are left out.

    fields: of the hash, by the slot's place in the ring: a<i> submissions, at<i> where the longest
    run was, and <i> ends as workers of earlier versions count them. ended: ends as model/ended.py
    reads them.
    """
    known = {slot.number: slot for slot in ended}
    for name, packed in sorted(fields.items(), reverse=True):
        try:
            slot = _slot(name, packed)
        except (struct.error, ValueError, OverflowError):
            continue
        before = known.get(slot.number)
        if before is None and not name.startswith(b"at"):
            known[slot.number] = slot
        elif before is not None:
            known[slot.number] = _together(before, slot)
    return tuple(known[number] for number in sorted(known))


def _slot(name: bytes, packed: bytes) -> TimeSlot:
    if name.startswith(b"at"):
        slot, _, place = packed.decode("utf-8", "replace").rstrip("\n").partition("\n")
        node, _, pod = place.partition("\n")
        return TimeSlot(int(slot), node=node, pod=pod)
    if name.startswith(b"a"):
        number, submitted = _sane(_ARRIVED.unpack(packed))
        return TimeSlot(int(number), int(submitted))
    return _ended(packed)


def _together(first: TimeSlot, second: TimeSlot) -> TimeSlot:
    """One slot from two parts; the place of the longest run is that of its part."""
    has_place = bool(first.node or first.pod)
    place = second if second.max_run_s > first.max_run_s or not has_place else first
    return TimeSlot(
        first.number,
        first.submitted + second.submitted,
        first.ended + second.ended,
        first.run_sum_s + second.run_sum_s,
        max(first.max_wait_s, second.max_wait_s),
        max(first.max_run_s, second.max_run_s),
        max(first.max_total_s, second.max_total_s),
        node=place.node,
        pod=place.pod,
    )


def _sane(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the numbers; ValueError, also for NaN, unless the scripts may have written them."""
    if not all(0.0 <= value <= _MOST for value in values):
        raise ValueError("a slot contains an impossible number")
    return values


def _ended(packed: bytes) -> TimeSlot:
    number, ended, total_us, wait_us, run_us, longest_us = _sane(
        _ENDED.unpack(packed[: _ENDED.size])
    )
    node, _, pod = packed[_ENDED.size :].decode("utf-8", "replace").rstrip("\n").partition("\n")
    return TimeSlot(
        int(number),
        0,
        int(ended),
        total_us / 1e6,
        wait_us / 1e6,
        run_us / 1e6,
        longest_us / 1e6,
        node=node,
        pod=pod,
    )
