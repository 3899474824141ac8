"""Ten-second slots: what came to a queue and what ended in it lately, as the scripts of the broker pack it.

A ring of RING slots, so that the last minutes are known to everybody who asks and nobody resets anything. A slot that
was not written again for a turn of the ring stays: it tells the last known run time of a queue at rest.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace

SLOT_S = 10
RING = 64
# the slot that is being written and the one that is about to be are not whole
LONGEST_WINDOW_S = float((RING - 2) * SLOT_S)

_ENDED = struct.Struct("<dddddd")
_ARRIVED = struct.Struct("<dd")
# Beyond that a double is no count any more.
_MOST = 2.0**53


@dataclass(frozen=True, slots=True)
class TimeSlot:
    """What happened from number * 10 s on, for ten seconds, on the Redis clock. Durations in seconds, within 1 %.

    run_sum_s: run times of the requests that ended in it, added up. node, pod: where its longest run was.
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
    """The slots of a ring, oldest first. What cannot be read is left out: anybody may write to Redis."""
    found: dict[int, TimeSlot] = {}
    for name, row in fields.items():
        try:
            if name.startswith(b"a"):
                number, submitted = _sane(_ARRIVED.unpack(row))
                slot = found.get(int(number), TimeSlot(int(number)))
                found[slot.number] = replace(slot, submitted=int(submitted))
            else:
                slot = _ended(row)
                found[slot.number] = replace(slot, submitted=found.get(slot.number, slot).submitted)
        except (struct.error, ValueError, OverflowError):
            continue
    return tuple(found[number] for number in sorted(found))


def _sane(values: tuple[float, ...]) -> tuple[float, ...]:
    """As they are; ValueError for what no script of ours writes. Not a number is not in the range either."""
    if not all(0.0 <= value <= _MOST for value in values):
        raise ValueError("a slot holds a number that cannot be")
    return values


def _ended(row: bytes) -> TimeSlot:
    number, ended, total_us, wait_us, run_us, longest_us = _sane(_ENDED.unpack(row[: _ENDED.size]))
    node, _, pod = row[_ENDED.size :].decode("utf-8", "replace").rstrip("\n").partition("\n")
    return TimeSlot(
        int(number), 0, int(ended), total_us / 1e6, wait_us / 1e6, run_us / 1e6, longest_us / 1e6, node=node, pod=pod
    )
