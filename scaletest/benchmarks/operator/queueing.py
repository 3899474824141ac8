"""Turns: of the benchmarks that wait in a namespace, only the first one asks the API server.

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
from scaletest.benchmarks.operator import status
from scaletest.benchmarks.operator.benchmark_reconciler import ADMITTED, PAUSED, TOGETHER, WAITING

# Whether it still needs its nodes, its creation time, name and uid: the smallest is the first.
Turn = tuple[bool, str, str, str]
INTERVAL_S = 1.0
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
    reported = current.get("phase") == "Paused" or current.get("message") == PAUSED
    return bool(reported and (document.get("spec") or {}).get("paused")) and not status.is_edited(
        document
    )


def is_queued(document: Mapping[str, Any]) -> bool:
    """Check whether it was in a queue of Volcano at the last reconcile pass."""
    current = document.get("status") or {}
    others = (None, "", WAITING, ADMITTED, PAUSED)
    waits = current.get("phase") == BenchmarkPhase.PENDING and current.get("message") not in others
    return bool(waits and (document.get("spec") or {}).get("gang", NO_GANG) != NO_GANG)


class Turns:
    """The first waiting benchmark of each namespace, and when queued ones were last reconciled."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, Turn | None]] = {}
        self._checked: dict[str, float] = {}

    def waits(self, document: Mapping[str, Any], everybody: Callable[[], Iterable[Turn]]) -> bool:
        """Check whether it is another's turn.

        everybody: gives the turns of all that wait in its namespace.
        """
        mine, namespace, now = turn_of(document), document["metadata"]["namespace"], self._clock()
        if mine is None:
            return False
        until, first = self._first.get(namespace, (0.0, None))
        if now >= until:
            first = min(everybody(), default=None)
            self._first[namespace] = (now + INTERVAL_S, first)
        return first is not None and first != mine

    def checked_recently(self, document: Mapping[str, Any]) -> bool:
        """Check whether a queued benchmark was reconciled a moment ago; if not, now counts."""
        uid, now = document["metadata"]["uid"], self._clock()
        if (
            not is_queued(document)
            or document["metadata"].get("deletionTimestamp")
            or status.is_edited(document)
        ):
            self._checked.pop(uid, None)
            return False
        pause = len(self._checked) / MOST_QUEUE_CHECKS_PER_S
        if now - self._checked.get(uid, -math.inf) < pause:
            return True
        self._checked[uid] = now
        if len(self._checked) > MOST_QUEUE_CHECKS_PER_S:
            # benchmarks that left the queue or were deleted: nobody asked for them any more
            limit = now - (2 * pause + MOST_QUEUE_CHECKS_PER_S)
            self._checked = {
                uid: checked_s
                for uid, checked_s in tuple(self._checked.items())
                if checked_s > limit
            }
        return False
