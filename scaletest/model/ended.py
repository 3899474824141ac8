"""Requests that ended in a queue, as the broker's scripts count them: one row of big-endian 64-bit
numbers.

One command of Redis updates all numbers of a row, and reading it needs no search. The numbers are
as follows, where ii is the place of a time slot in its ring (model/time_slots.py), 00 to 63, and b
a bucket of model/histogram.py:
    0 to 4          requests by outcome, in the order of model/reply.py
    1ii             the slot that stands at this place: seconds since 1970 divided by 10
    2ii, 3ii        requests that ended in it, and the sum of their run times, in microseconds
    4ii, 5ii, 6ii   its longest wait, run, and wait and run together, in microseconds
    1000 + 2 b      requests with this wait
    1001 + 2 b      requests with this run time
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from scaletest.model.histogram import LAST_BUCKET, middle
from scaletest.model.reply import Outcome
from scaletest.model.time_slots import RING, TimeSlot

Key = TypeVar("Key")

_OUTCOMES = {outcome.value: number for number, outcome in enumerate(Outcome)}
_BYTES = 8
_BUCKETS = 1000
# The bytes of a row in which every number is counted.
LONGEST_ROW = _BYTES * (_BUCKETS + 2 * (LAST_BUCKET + 1))


@dataclass(frozen=True, slots=True)
class EndedCounts:
    """Requests that ended: by outcome, by bucket of their wait and run times, and in the slots of
    the last minutes.
    """

    outcomes: dict[str, int] = field(default_factory=dict)
    wait: dict[int, int] = field(default_factory=dict)
    run: dict[int, int] = field(default_factory=dict)
    slots: tuple[TimeSlot, ...] = ()


def counted(outcome: str, wait_bucket: int, run_bucket: int) -> tuple[str, str, str, int, int]:
    """Arguments of a script that counts a request: three places of the row, as BITFIELD takes them,
    and wait and run in microseconds, as the middles of their buckets, so within 1 %.
    """
    return (
        f"#{_OUTCOMES[outcome]}",
        f"#{_BUCKETS + 2 * wait_bucket}",
        f"#{_BUCKETS + 1 + 2 * run_bucket}",
        round(middle(wait_bucket) * 1e6),
        round(middle(run_bucket) * 1e6),
    )


def added(counts: Mapping[Key, int], more: Mapping[Key, int]) -> dict[Key, int]:
    """The sum of two counts: earlier versions counted in a hash, this one counts in a row."""
    sums = dict(counts)
    for key, count in more.items():
        sums[key] = sums.get(key, 0) + count
    return sums


def read(packed: bytes | None) -> EndedCounts:
    """Read a row; None is a row without numbers. ValueError when a count is negative, or when the
    row is longer than the broker's scripts can make it.
    """
    if packed and len(packed) > LONGEST_ROW:
        raise ValueError(
            f"the row of requests that ended has {len(packed)} bytes, at most {LONGEST_ROW} are"
            " ours"
        )
    count = len(packed) // _BYTES if packed else 0
    if not packed or not count:
        return EndedCounts()
    numbers = struct.unpack(f">{count}q", packed[: count * _BYTES])
    outcomes, buckets = numbers[: len(_OUTCOMES)], numbers[_BUCKETS:]
    if min(*outcomes, *buckets, 0) < 0:
        raise ValueError("a number of requests that ended is negative")
    return EndedCounts(
        {
            name: outcomes[number]
            for name, number in _OUTCOMES.items()
            if number < count and outcomes[number]
        },
        {bucket: counted for bucket, counted in enumerate(buckets[::2]) if counted},
        {bucket: counted for bucket, counted in enumerate(buckets[1::2]) if counted},
        tuple(slot for slot in _slots(numbers) if slot.ended),
    )


def _slots(numbers: tuple[int, ...]) -> list[TimeSlot]:
    """The slots of the ring, unsorted, without slots that contain impossible numbers."""
    columns = [numbers[start : start + RING] for start in range(100, 700, 100)]
    return [
        TimeSlot(number, 0, ended, run_us / 1e6, wait_us / 1e6, longest_us / 1e6, total_us / 1e6)
        for number, ended, run_us, wait_us, longest_us, total_us in zip(*columns, strict=False)
        if min(number, ended, run_us, wait_us, longest_us, total_us) >= 0
    ]
