"""Notice that an answer of Redis to a worker's main thread was lost on its way.

A connection may die silently, as when a router forgets it. The main thread would then wait for its
answer until its socket gives up. Heartbeats go over another connection, and tell sooner: Redis is
alive, and it has answered the call already, or should have. Then the connection is broken off, and
the main thread sends its call again. That is safe: the call gets the same answer, as long as the
worker still holds its request.
"""

import time
from dataclasses import dataclass

from scaletest.broker.fast_lane import FastLane, PendingCall


@dataclass(slots=True)
class UnansweredCall:
    """A call of the main thread that waited for its answer at an earlier heartbeat."""

    call: str
    since: float  # time of that heartbeat, on the monotonic clock
    answered: bool  # whether Redis had answered it by the last heartbeat


class AnswerWatch:
    """Compares what the calls of one fast lane waited for at two heartbeats."""

    def __init__(self) -> None:
        self._unanswered: UnansweredCall | None = None

    def note_beat(self, lane: FastLane | None, pending: PendingCall | None, answered: bool) -> bool:
        """Break off the lane's connection when the answer was missing at an earlier heartbeat as
        well; return whether that was done.

        pending: the call that waited when this heartbeat was sent. answered: whether Redis had
        answered it then.
        """
        before, now = self._unanswered, time.monotonic()
        self._unanswered = None
        if pending is None:
            return False
        if before is None or before.call != pending.call:
            self._unanswered = UnansweredCall(pending.call, now, answered)
            return False
        if not before.answered and now - before.since < pending.block_s:
            # it may still wait for a request to arrive
            self._unanswered = before
            before.answered = answered
            return False
        return lane is not None and lane.pending is pending and lane.break_off()
