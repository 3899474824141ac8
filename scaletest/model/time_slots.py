"""The recent submissions and ends of a queue, in slots of ten seconds.

A queue has a ring of RING slots, so that everybody can read the last minutes without a reset. A
slot that was not written again for a turn of the ring stays: it has the last run time of an idle
queue.
"""

import struct
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

SLOT_S = 10
RING = 64
# the slot that is being written, and the next one, are not complete
LONGEST_WINDOW_S = float((RING - 2) * SLOT_S)
_ARRIVED = struct.Struct("<dd")
# A double counts exactly up to here.
_MOST = 2.0**53


class TimeSlot(NamedTuple):
    """Events of ten seconds from number * 10 s on, on the Redis clock. Durations within 1 %. There
    are thousands where there are many queues.
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

    @property
    def node(self) -> str:
        """The node of its longest run."""
        return self.place.partition("\n")[0]

    @property
    def pod(self) -> str:
        """The pod of its longest run."""
        return self.place.rstrip("\n").partition("\n")[2]


def unpack(fields: Mapping[bytes, bytes], ended: Iterable[TimeSlot] = ()) -> tuple[TimeSlot, ...]:
    """Return the slots of a ring, oldest first. Slots that cannot be read are left out.

    fields: of the hash, by the slot's place in the ring: a<i> submissions, at<i> where the longest
    run was. ended: ends as `read` gives them.
    """
    places: dict[int, str] = {}
    rows = []
    for name, packed in fields.items():
        if name.startswith(b"at"):
            with suppress(ValueError):
                number, _, place = packed.decode("utf-8", "replace").partition("\n")
                places[int(number)] = place
        if name.startswith(b"a") and len(packed) == _ARRIVED.size:
            rows.append(packed)
    arrived: Counter[int] = Counter()
    for slot_number, submitted in _ARRIVED.iter_unpack(b"".join(rows)):
        if 0.0 <= slot_number <= _MOST and 0.0 <= submitted <= _MOST:
            arrived[int(slot_number)] += int(submitted)
    # cheaper than naming the fields: there are thousands of slots
    slots = {
        slot.number: TimeSlot(
            slot.number, arrived.pop(slot.number, 0), *slot[2:7], places.get(slot.number, "")
        )
        for slot in ended
    }
    slots |= {number: TimeSlot(number, submitted) for number, submitted in arrived.items()}
    return tuple(slots[number] for number in sorted(slots))
