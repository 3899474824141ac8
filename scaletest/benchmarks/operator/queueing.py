"""Let only the first of the benchmarks that wait in a namespace ask the API server.

Nothing can have changed for the others, and a thousand that each ask every second would overload
the API server. The first is the oldest.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaletest.benchmarks.documents import BenchmarkPhase
from scaletest.benchmarks.operator.benchmark_reconciler import PAUSED, TOGETHER, WAITING

# Its creation time, name and uid: the smallest is the first.
Turn = tuple[str, str, str]
RECONCILE_EVERY_S = 1.0


def turn_of(document: Mapping[str, Any]) -> Turn | None:
    """Return the turn of a benchmark; None when it does not wait for others."""
    meta = document["metadata"]
    if meta.get("deletionTimestamp") or TOGETHER in meta.get("labels", {}):
        return None
    status = document.get("status") or {}
    if status.get("phase") != BenchmarkPhase.PENDING or status.get("message") != WAITING:
        return None
    return meta["creationTimestamp"], meta["name"], meta["uid"]


def is_paused(document: Mapping[str, Any]) -> bool:
    """Check whether a benchmark or set is paused, and its status says so already."""
    if not (document.get("spec") or {}).get("paused"):
        return False
    status = document.get("status") or {}
    return status.get("phase") == "Paused" or status.get("message") == PAUSED


class Turns:
    """Remembers whose turn it is in each namespace."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # by namespace the first turn, and until when it counts
        self._first: dict[str, tuple[float, Turn | None]] = {}

    def must_wait(
        self, document: Mapping[str, Any], list_turns: Callable[[], Iterable[Turn]]
    ) -> bool:
        """Check whether it is another's turn.

        list_turns: lists the turns of all that wait in its namespace.
        """
        turn = turn_of(document)
        if turn is None:
            return False
        namespace = document["metadata"]["namespace"]
        now_s = self._clock()
        until_s, first = self._first.get(namespace, (0.0, None))
        if now_s >= until_s:
            first = min(list_turns(), default=None)
            self._first[namespace] = (now_s + RECONCILE_EVERY_S, first)
        return first is not None and first != turn
