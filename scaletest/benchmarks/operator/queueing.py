"""Let only the first of the benchmarks that wait in a namespace ask the API server.

Nothing can have changed for the others, and a thousand that each ask every second would overload
the API server. The first is one whose parts are all admitted, since it already occupies its nodes;
else it is the oldest. Benchmarks in a queue of Volcano ask by themselves, and less often the more
of them there are.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaletest.benchmarks.documents import BenchmarkPhase
from scaletest.benchmarks.kinds.spec import NO_GANG
from scaletest.benchmarks.operator.benchmark_reconciler import ADMITTED, PAUSED, TOGETHER, WAITING

# Whether it still needs its nodes, its creation time, name and uid: the smallest is the first.
Turn = tuple[bool, str, str, str]
RECONCILE_EVERY_S = 1.0
# Limit for all benchmarks that are in queues together.
MOST_QUEUE_CHECKS_PER_S = 10


def turn_of(document: Mapping[str, Any]) -> Turn | None:
    """Return the turn of a benchmark; None when it does not wait for others."""
    meta, current = document["metadata"], document.get("status") or {}
    message = current.get("message") if current.get("phase") == BenchmarkPhase.PENDING else ""
    if (
        message not in (WAITING, ADMITTED)
        or meta.get("deletionTimestamp")
        or TOGETHER in meta.get("labels", {})
    ):
        return None
    return message == WAITING, meta["creationTimestamp"], meta["name"], meta["uid"]


def is_paused(document: Mapping[str, Any]) -> bool:
    """Check whether it is paused, and its status says so already."""
    current = document.get("status") or {}
    is_reported = current.get("phase") == "Paused" or current.get("message") == PAUSED
    is_wanted = bool((document.get("spec") or {}).get("paused"))
    return is_reported and is_wanted


class Turns:
    """Remembers whose turn it is in each namespace, and when queued benchmarks were reconciled."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # by namespace the first turn, and until when it counts
        self._first: dict[str, tuple[float, Turn | None]] = {}
        # by the uids of queued benchmarks
        self._reconciled_s: dict[str, float] = {}

    def must_wait(
        self, document: Mapping[str, Any], list_turns: Callable[[], Iterable[Turn]]
    ) -> bool:
        """Check whether it is another's turn.

        list_turns: lists the turns of all that wait in its namespace.
        """
        turn, namespace, now_s = turn_of(document), document["metadata"]["namespace"], self._clock()
        if turn is None:
            return False
        until_s, first = self._first.get(namespace, (0.0, None))
        if now_s >= until_s:
            first = min(list_turns(), default=None)
            self._first[namespace] = (now_s + RECONCILE_EVERY_S, first)
        return first is not None and first != turn

    def is_too_soon(self, document: Mapping[str, Any]) -> bool:
        """Check whether a queued benchmark was reconciled a moment ago; if not, now counts."""
        uid, now_s = document["metadata"]["uid"], self._clock()
        current = document.get("status") or {}
        # whether it was in a queue of Volcano at the last pass: the messages are those of a pending
        # benchmark that waits for something else
        is_queued = (
            (document.get("spec") or {}).get("gang", NO_GANG) != NO_GANG
            and current.get("phase") == BenchmarkPhase.PENDING
            and current.get("message") not in (None, "", WAITING, ADMITTED, PAUSED)
        )
        if not is_queued or document["metadata"].get("deletionTimestamp"):
            self._reconciled_s.pop(uid, None)
            return False
        pause_s = len(self._reconciled_s) / MOST_QUEUE_CHECKS_PER_S
        if now_s - self._reconciled_s.get(uid, -math.inf) < pause_s:
            return True
        self._reconciled_s[uid] = now_s
        if len(self._reconciled_s) > MOST_QUEUE_CHECKS_PER_S:
            # forget benchmarks that left the queue or were deleted: they are not asked for any more
            oldest_s = now_s - (2 * pause_s + MOST_QUEUE_CHECKS_PER_S)
            self._reconciled_s = {
                uid: time_s
                # copied at once, since other threads of kopf add to it
                for uid, time_s in tuple(self._reconciled_s.items())
                if time_s > oldest_s
            }
        return False
