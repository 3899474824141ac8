"""Time slots of ten seconds: recent submissions and ends of a queue, as the broker's scripts pack them.

A queue has a ring of RING slots, so that everybody can read the last minutes without a reset. A slot
that was not written again for a turn of the ring stays: it has the last run time of an idle queue.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

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


def unpack(fields: Mapping[bytes, bytes]) -> tuple[TimeSlot, ...]:
    """The slots of a ring, oldest first. Slots that cannot be read are left out."""
    slots: dict[int, TimeSlot] = {}
    for name, packed in fields.items():
        try:
            if name.startswith(b"a"):
                number, submitted = _sane(_ARRIVED.unpack(packed))
                slot = slots.get(int(number), TimeSlot(int(number)))
                slots[slot.number] = replace(slot, submitted=int(submitted))
            else:
                slot = _ended(packed)
                slots[slot.number] = replace(slot, submitted=slots.get(slot.number, slot).submitted)
        except (struct.error, ValueError, OverflowError):
            continue
    return tuple(slots[number] for number in sorted(slots))


def _sane(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return the numbers; ValueError, also for NaN, when the broker's scripts cannot have written them."""
    if not all(0.0 <= value <= _MOST for value in values):
        raise ValueError("a slot contains an impossible number")
    return values


def _ended(packed: bytes) -> TimeSlot:
    number, ended, total_us, wait_us, run_us, longest_us = _sane(_ENDED.unpack(packed[: _ENDED.size]))
    node, _, pod = packed[_ENDED.size :].decode("utf-8", "replace").rstrip("\n").partition("\n")
    return TimeSlot(
        int(number), 0, int(ended), total_us / 1e6, wait_us / 1e6, run_us / 1e6, longest_us / 1e6, node=node, pod=pod
    )
