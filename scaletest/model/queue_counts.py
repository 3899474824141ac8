"""Requests of a queue that ended, as the broker's scripts count them.

They are one row of big-endian 64-bit numbers: one command of Redis updates all numbers of a row,
and reading it needs no search. The numbers are as follows, where ii is the place of a time slot in
its ring, 00 to 63, and b a bucket of model/histogram.py:

    0 to 4          requests by outcome, in the order of model/record.py
    1ii             the slot that stands at this place: seconds since 1970 divided by 10
    2ii, 3ii        requests that ended in it, and the sum of their run times, in microseconds
    4ii, 5ii, 6ii   its longest wait, run, and wait and run together, in microseconds
    7ii             requests that failed or timed out in it
    1000 + 2 b      requests with this wait
    1001 + 2 b      requests with this run time
"""

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from scaletest.model.histogram import LAST_BUCKET, LONGEST_S, bucket_of
from scaletest.model.record import Outcome
from scaletest.model.time_slots import RING, TimeSlot

# The number that counts each outcome, as BITFIELD takes it.
OUTCOME_NUMBERS = {outcome.value: f"#{number}" for number, outcome in enumerate(Outcome)}
_BYTES = 8  # of a number
_FIRST_BUCKET = 1000
# The bytes of a row in which every number is counted.
LONGEST_ROW = _BYTES * (_FIRST_BUCKET + 2 * (LAST_BUCKET + 1))


@dataclass(frozen=True, slots=True)
class EndedCounts:
    """The counts of a queue's requests that ended."""

    outcomes: dict[str, int] = field(default_factory=dict)
    slots: tuple[TimeSlot, ...] = ()  # of the last minutes
    buckets: bytes = b""  # packed: read when they are asked for, as most pages show none

    @property
    def wait(self) -> dict[int, int]:
        """Requests by bucket of their wait."""
        return self._count_by_bucket(0)

    @property
    def run(self) -> dict[int, int]:
        """Requests by bucket of their run time."""
        return self._count_by_bucket(1)

    def _count_by_bucket(self, offset: int) -> dict[int, int]:
        """Return the counts of every second number: those of waits, or of run times."""
        counts = _unpack(self.buckets)[offset::2]
        return {bucket: count for bucket, count in enumerate(counts) if count}


def count_arguments(outcome: str, wait_s: float, run_s: float) -> tuple[str, str, str, int, int]:
    """Return the arguments of a script that counts a request.

    They are three places of the row, as BITFIELD takes them, and wait and run in microseconds.
    """
    return (
        OUTCOME_NUMBERS[outcome],
        f"#{_FIRST_BUCKET + 2 * bucket_of(wait_s)}",
        f"#{_FIRST_BUCKET + 1 + 2 * bucket_of(run_s)}",
        round(min(max(wait_s, 0.0), LONGEST_S) * 1e6),
        round(min(max(run_s, 0.0), LONGEST_S) * 1e6),
    )


def add_counts(counts: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    """Return the sum of two counts: those of a hash, and those of a row."""
    sums = Counter(counts)
    sums.update(more)
    return dict(sums)  # dataclasses.asdict makes no copy of a Counter


def read(packed: bytes | None) -> EndedCounts:
    """Read a row; None is a row without numbers.

    ValueError when a count is negative, or when the row is longer than the broker's scripts can
    make it.
    """
    if packed and len(packed) > LONGEST_ROW:
        raise ValueError(
            f"the row of requests that ended has {len(packed)} bytes, at most {LONGEST_ROW} are"
            " ours"
        )
    if not packed or len(packed) < _BYTES:
        return EndedCounts()
    numbers = _unpack(packed[: _BYTES * _FIRST_BUCKET])
    outcomes, buckets = numbers[: len(OUTCOME_NUMBERS)], packed[_BYTES * _FIRST_BUCKET :]
    # the first byte of a negative number is above 127
    if min(outcomes) < 0 or not buckets[::_BYTES].isascii():
        raise ValueError("a number of requests that ended is negative")
    # The slots of the ring in which requests ended, unsorted, without impossible numbers. A worker
    # that does not count failures leaves those of the slot that stood at this place before.
    columns = [numbers[start : start + RING] for start in range(100, 800, 100)]
    slots = [
        TimeSlot(
            number,
            0,
            ended,
            run / 1e6,
            wait / 1e6,
            longest / 1e6,
            total / 1e6,
            "",
            min(failed, ended),
        )
        for number, ended, run, wait, longest, total, failed in zip(*columns, strict=False)
        if ended and min(number, ended, run, wait, longest, total, failed) >= 0
    ]
    return EndedCounts(
        {name: count for name, count in zip(OUTCOME_NUMBERS, outcomes, strict=False) if count},
        tuple(slots),
        buckets,
    )


def _unpack(packed: bytes) -> tuple[int, ...]:
    """Return the numbers of a row, or of a part of one."""
    count = len(packed) // _BYTES
    return struct.unpack(f">{count}q", packed[: _BYTES * count])
