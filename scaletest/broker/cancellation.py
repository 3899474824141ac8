"""Cancel requests that wait, in calls of which each blocks Redis for a few milliseconds.

A list has no index by value: removing one of 100,000 entries compares them all. So the ids become a
set, and the list is swept from its end to its front, a stretch at a time. Between two calls workers
may take from the front, clients add at the end, and other clients cancel: the list is consistent at
every moment. A request that a worker takes before the sweep reaches it is finished, like all that
run.
"""

from collections.abc import Sequence

from scaletest.broker import keys
from scaletest.broker.connection import Redis
from scaletest.broker.retrying import Retrying
from scaletest.broker.scripts import script

# Requests that one call adds to the set, and entries of the list that one call checks.
CANCEL_BATCH = 500
# A killed client leaves its set behind for so long. Requests that are still queued then wait like
# all requests of a client that is gone.
SET_TTL_S = 60


class Cancellation:
    """Cancels requests of one client in one queue; can be continued after a broken connection."""

    def __init__(
        self, redis: Redis, retrying: Retrying, client: str, queue: str, ids: Sequence[str]
    ) -> None:
        self._redis = redis
        self._retrying = retrying
        self._ids = list(dict.fromkeys(ids))
        self._set = keys.cancelled(client)
        self._keys = [keys.rq_queue(queue), keys.counters(queue), self._set]
        # how many of the set may still wait, and how many this took out of the queue
        self._waiting_count = 0
        self._taken_out = 0

    def run(self) -> int:
        """Cancel requests that still wait; return how many."""
        self._write_set()
        left_before = -1
        # sweep again after a sweep that took some out: others may have moved entries behind it
        while self._waiting_count not in (0, left_before):
            left_before = self._waiting_count
            self._sweep()
        self._retrying.run(lambda: self._redis.unlink(self._set))
        return self._taken_out

    def _write_set(self) -> None:
        """Write the set. Its last member marks it complete, also after a crash lost a second."""
        self._waiting_count = 0
        while self._waiting_count < len(self._ids):
            for start in range(0, len(self._ids), CANCEL_BATCH):
                self._add_members(self._ids[start : start + CANCEL_BATCH])
            self._waiting_count = self._add_members([""]) - 1

    def _add_members(self, members: Sequence[str]) -> int:
        """Add to the set; return how many members it has."""

        def add() -> int:
            pipe = self._redis.pipeline()
            pipe.sadd(self._set, *members)
            pipe.expire(self._set, SET_TTL_S)
            pipe.scard(self._set)
            return int(pipe.execute()[-1])

        return self._retrying.run(add)

    def _sweep(self) -> None:
        """Sweep the list once, from its end to its front, or until nothing is left to take out."""
        # how many entries were checked, counted from the end, and the last of them
        checked = 0
        last = b""
        at_front = False
        while self._waiting_count and not at_front:
            answer = self._retrying.run(
                lambda: script("cancel")(self._redis, self._keys, [checked, last, CANCEL_BATCH])  # noqa: B023
            )
            if answer is None:
                # Redis was away for longer than the set lives, or came back without it
                self._write_set()
                checked = 0
                last = b""
                continue
            checked, last, left, at_front = answer
            self._taken_out += self._waiting_count - left
            self._waiting_count = left
