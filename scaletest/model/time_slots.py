"""The recent submissions and ends of a queue, in slots of ten seconds."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
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

    run_sum_s: sum of the run times of requests that ended in it. place: where its longest run was,
    node and pod with line feeds between and after them.
    """

    number: int
    submitted: int = 0
    ended: int = 0
    run_sum_s: float = 0.0
    max_wait_s: float = 0.0
    max_run_s: float = 0.0
    max_total_s: float = 0.0
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
    """The slots of a ring, oldest first. Slots that cannot be read are left out.

    fields: of the hash, by the slot's place in the ring: a<i> submissions, at<i> where the longest
    run was. ended: ends as `read` gives them.
    """
    arrived, places = _arrived(fields), _places(fields)
    # cheaper than naming the fields: there are thousands of slots
    known = {
        slot.number: TimeSlot(
            slot.number, arrived.pop(slot.number, 0), *slot[2:7], places.get(slot.number, "")
        )
        for slot in ended
    }
    known |= {number: TimeSlot(number, submitted) for number, submitted in arrived.items()}
    return tuple(known[number] for number in sorted(known))


def _arrived(fields: Mapping[bytes, bytes]) -> dict[int, int]:
    """Submissions by slot."""
    rows = [
        packed
        for name, packed in fields.items()
        if name.startswith(b"a") and len(packed) == _ARRIVED.size
    ]
    arrived: dict[int, int] = {}
    for number, submitted in _ARRIVED.iter_unpack(b"".join(rows)):
        if 0.0 <= number <= _MOST and 0.0 <= submitted <= _MOST:
            arrived[int(number)] = arrived.get(int(number), 0) + int(submitted)
    return arrived


def _places(fields: Mapping[bytes, bytes]) -> dict[int, str]:
    """Where the longest run was by slot."""
    places = {}
    for name, packed in fields.items():
        if name.startswith(b"at"):
            try:
                slot, _, place = packed.decode("utf-8", "replace").partition("\n")
                places[int(slot)] = place
            except ValueError:
                continue
    return places
