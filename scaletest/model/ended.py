"""What ended in a queue, as the scripts of the broker count it: one row of 64-bit numbers, the first byte the largest.

A row of numbers in one key is counted by one command of Redis whatever is counted, and read without a search. The
numbers, where ii is the place of a ten-second slot in its ring (model/slots.py), 00 to 63, and b a bucket of
model/histogram.py:
    0 to 4          requests by outcome, in the order of model/reply.py
    1ii             the slot that stands at this place: seconds since 1970 by 10
    2ii, 3ii        requests that ended in it, and their run times added up, in microseconds
    4ii, 5ii, 6ii   its longest wait, run, and wait and run together, in microseconds
    1000 + 2 b      requests that waited so long
    1001 + 2 b      requests that ran so long
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scaletest.model.histogram import LAST_BUCKET, middle
from scaletest.model.reply import Outcome
from scaletest.model.slots import RING, Slot

Key = TypeVar("Key")

_OUTCOMES = {outcome.value: number for number, outcome in enumerate(Outcome)}
_BYTES = 8
_BUCKETS = 1000
# The bytes of a row in which every number is counted.
LONGEST_ROW = _BYTES * (_BUCKETS + 2 * (LAST_BUCKET + 1))


@dataclass(frozen=True, slots=True)
class Ended:
    """Requests that ended: by outcome, by bucket of their wait and run times, and in the slots of the last minutes."""

    outcomes: dict[str, int] = field(default_factory=dict)
    wait: dict[int, int] = field(default_factory=dict)
    run: dict[int, int] = field(default_factory=dict)
    slots: tuple[Slot, ...] = ()


def counted(outcome: str, wait_bucket: int, run_bucket: int) -> tuple[str, str, str, int, int]:
    """What the scripts count a request by: three numbers of the row as BITFIELD takes them, wait and run in
    microseconds, which are those of the buckets, so within 1 %.
    """
    return (
        f"#{_OUTCOMES[outcome]}",
        f"#{_BUCKETS + 2 * wait_bucket}",
        f"#{_BUCKETS + 1 + 2 * run_bucket}",
        round(middle(wait_bucket) * 1e6),
        round(middle(run_bucket) * 1e6),
    )


def added(counts: Mapping[Key, int], more: Mapping[Key, int]) -> dict[Key, int]:
    """Two counts of the same kinds together: what earlier versions counted in a hash, and what a row holds."""
    return {**counts, **{key: counts.get(key, 0) + count for key, count in more.items()}}


def read(row: bytes | None) -> Ended:
    """Read a row, or None, which is one without any number. ValueError when a count is below zero."""
    count = len(row) // _BYTES if row else 0
    if not row or not count:
        return Ended()
    numbers = struct.unpack(f">{count}q", row[: count * _BYTES])
    outcomes, buckets = numbers[: len(_OUTCOMES)], numbers[_BUCKETS:]
    if min(*outcomes, *buckets, 0) < 0:
        raise ValueError("a number of requests that ended is below zero")
    return Ended(
        {name: outcomes[number] for name, number in _OUTCOMES.items() if number < count and outcomes[number]},
        {bucket: value for bucket, value in enumerate(buckets[::2]) if value},
        {bucket: value for bucket, value in enumerate(buckets[1::2]) if value},
        tuple(slot for slot in _slots(numbers) if slot.ended),
    )


def _slots(numbers: tuple[int, ...]) -> list[Slot]:
    """The slots of the ring, in no order; without those of which a number cannot be."""
    rows = zip(*(numbers[start : start + RING] for start in range(100, 700, 100)), strict=False)
    return [
        Slot(number, 0, ended, run_us / 1e6, wait_us / 1e6, longest_us / 1e6, total_us / 1e6)
        for number, ended, run_us, wait_us, longest_us, total_us in rows
        if min(number, ended, run_us, wait_us, longest_us, total_us) >= 0
    ]
