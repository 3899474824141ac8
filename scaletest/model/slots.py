"""Ten-second slots: what came to a queue and what ended in it lately, as the scripts of the broker pack it.

A ring of RING slots, so that the last minutes are known to everybody who asks and nobody resets anything. A slot that
was not written again for a turn of the ring stays: it tells the last known run time of a queue at rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SLOT_S = 10
RING = 64
# the slot that is being written and the one that is about to be are not whole
LONGEST_WINDOW_S = float((RING - 2) * SLOT_S)

_ENDED = struct.Struct("<dddddd")
_ARRIVED = struct.Struct("<dd")
# Beyond that a double is no count any more.
_MOST = 2.0**53


@dataclass(frozen=True, slots=True)
class Slot:
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


def unpack(fields: Mapping[bytes, bytes], ended: Iterable[Slot] = ()) -> tuple[Slot, ...]:
    """The slots of a ring, oldest first. What cannot be read is left out: anybody may write to Redis.

    fields: of the hash, by slot's place: a<i> what was submitted, at<i> where the longest run was, and <i> what ended,
    as workers of earlier versions count it. ended: what ended in the slots as model/ended.py reads it.
    """
    known = {slot.number: slot for slot in ended}
    for name, row in sorted(fields.items(), reverse=True):
        try:
            slot = _slot(name, row)
        except (struct.error, ValueError, OverflowError):
            continue
        before = known.get(slot.number)
        if before is None and not name.startswith(b"at"):
            known[slot.number] = slot
        elif before is not None:
            known[slot.number] = _together(before, slot)
    return tuple(known[number] for number in sorted(known))


def _slot(name: bytes, row: bytes) -> Slot:
    if name.startswith(b"at"):
        slot, _, place = row.decode("utf-8", "replace").rstrip("\n").partition("\n")
        node, _, pod = place.partition("\n")
        return Slot(int(slot), node=node, pod=pod)
    if name.startswith(b"a"):
        number, submitted = _sane(_ARRIVED.unpack(row))
        return Slot(int(number), int(submitted))
    return _ended(row)


def _together(one: Slot, other: Slot) -> Slot:
    """The same slot, of which two rows tell. The place of the longest run is that of the row with the longer one."""
    place = other if other.max_run_s > one.max_run_s or not (one.node or one.pod) else one
    return Slot(
        one.number,
        one.submitted + other.submitted,
        one.ended + other.ended,
        one.run_sum_s + other.run_sum_s,
        max(one.max_wait_s, other.max_wait_s),
        max(one.max_run_s, other.max_run_s),
        max(one.max_total_s, other.max_total_s),
        node=place.node,
        pod=place.pod,
    )


def _sane(values: tuple[float, ...]) -> tuple[float, ...]:
    """As they are; ValueError for what no script of ours writes. Not a number is not in the range either."""
    if not all(0.0 <= value <= _MOST for value in values):
        raise ValueError("a slot holds a number that cannot be")
    return values


def _ended(row: bytes) -> Slot:
    number, ended, total_us, wait_us, run_us, longest_us = _sane(_ENDED.unpack(row[: _ENDED.size]))
    node, _, pod = row[_ENDED.size :].decode("utf-8", "replace").rstrip("\n").partition("\n")
    return Slot(
        int(number), 0, int(ended), total_us / 1e6, wait_us / 1e6, run_us / 1e6, longest_us / 1e6, node=node, pod=pod
    )
