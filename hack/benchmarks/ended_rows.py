"""Rows of what ended in a queue, and rings of its slots, as the scripts leave them."""

import struct
import time
from collections.abc import Iterable, Mapping
from typing import Any

from scaletest.broker import keys
from scaletest.model import queue_counts
from scaletest.model.time_slots import RING

SLOT_S, ENDED_A_SLOT = 10, 7
OUTCOMES, BUCKETS = 0, 1000
SLOT, ENDED, RUN_US, LONGEST_WAIT_US, LONGEST_RUN_US, LONGEST_US = range(100, 700, 100)


def fill_ended(redis: Any, queues: Iterable[str], buckets: Mapping[int, int]) -> None:
    """Write into each queue that requests ended, also in the slots of the last minutes.

    buckets: how many there were, by the bucket of their wait and run times.
    """
    now_slot = int(time.time()) // SLOT_S
    packed, slots = ended_row(buckets, now_slot), arrivals(now_slot)
    assert queue_counts.read(packed).wait == queue_counts.read(packed).run == dict(buckets)
    pipe = redis.pipeline(transaction=False)
    for queue in queues:
        pipe.set(keys.ended(queue), packed)
        pipe.hset(keys.slots(queue), mapping=slots)
        pipe.execute()


def ended_row(buckets: Mapping[int, int], now_slot: int) -> bytes:
    """Pack the row that model/queue_counts.py reads."""
    numbers = [0] * (BUCKETS + 2 * (max(buckets) + 1))
    numbers[OUTCOMES] = sum(buckets.values())
    for bucket, count in buckets.items():
        numbers[BUCKETS + 2 * bucket] = numbers[BUCKETS + 2 * bucket + 1] = count
    for slot in range(now_slot - RING + 1, now_slot + 1):
        place = slot % RING
        numbers[SLOT + place], numbers[ENDED + place] = slot, ENDED_A_SLOT
        numbers[RUN_US + place] = ENDED_A_SLOT * 1_000_000
        numbers[LONGEST_WAIT_US + place] = numbers[LONGEST_RUN_US + place] = 1_500_000
        numbers[LONGEST_US + place] = 3_000_000
    return struct.pack(f">{len(numbers)}q", *numbers)


def arrivals(now_slot: int) -> dict[str, bytes]:
    """Return what arrived in each slot, and where its longest run was."""
    fields = {}
    for slot in range(now_slot - RING + 1, now_slot + 1):
        fields[f"a{slot % RING}"] = struct.pack("<dd", slot, ENDED_A_SLOT)
        fields[f"at{slot % RING}"] = f"{slot}\nnode-1\npod-1".ljust(65, "\n").encode()
    return fields
