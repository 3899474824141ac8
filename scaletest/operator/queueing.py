"""Whose turn it is: of those that wait in a namespace only the first asks the API server; nobody else has news for it.

The first is one that holds its nodes already, as all its parts are admitted, else the oldest. Those that wait in a
queue of Kueue or Volcano ask by themselves, and the more of them there are the more seldom each.

A thousand that each asked every second would keep the API server from everything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaletest.kinds.benchmark import BenchmarkPhase
from scaletest.kinds.common import NO_GANG
from scaletest.operator import status
from scaletest.operator.benchmark_reconciler import ADMITTED, PAUSED, TOGETHER, WAITS

# Whether it still needs its nodes, its age, name and uid.
Entry = tuple[bool, str, str, str]
LOOK_S = 1.0
# Of all that are in queues together.
MOST_LOOKS_PER_S = 10


def entry(document: Mapping[str, Any]) -> Entry | None:
    """Its place; None when it does not wait for others."""
    meta, said = document["metadata"], document.get("status") or {}
    message = said.get("message") if said.get("phase") == BenchmarkPhase.PENDING else ""
    if message not in (WAITS, ADMITTED) or meta.get("deletionTimestamp") or TOGETHER in meta.get("labels", {}):
        return None
    return message == WAITS, meta["creationTimestamp"], meta["name"], meta["uid"]


def idle(document: Mapping[str, Any]) -> bool:
    """Whether it is paused, which was said already."""
    said = document.get("status") or {}
    known = said.get("phase") == "Paused" or said.get("message") == PAUSED
    return bool(known and (document.get("spec") or {}).get("paused")) and not status.changed(document)


def queued(document: Mapping[str, Any]) -> bool:
    """Whether it was last seen in a queue."""
    said = document.get("status") or {}
    waits = said.get("phase") == BenchmarkPhase.PENDING and said.get("message") not in (
        None,
        "",
        WAITS,
        ADMITTED,
        PAUSED,
    )
    return bool(waits and (document.get("spec") or {}).get("gang", NO_GANG) != NO_GANG)


class Line:
    """Those that wait in each namespace, sorted once a look, and when those in queues were looked at."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, Entry | None]] = {}
        self._queued: dict[str, float] = {}

    def waits(self, document: Mapping[str, Any], everybody: Callable[[], Iterable[Entry]]) -> bool:
        """Whether it is another's turn. everybody: who waits in its namespace."""
        mine, namespace, now = entry(document), document["metadata"]["namespace"], self._clock()
        if mine is None:
            return False
        until, first = self._first.get(namespace, (0.0, None))
        if now >= until:
            first = min(everybody(), default=None)
            self._first[namespace] = (now + LOOK_S, first)
        return first is not None and first != mine

    def rests(self, document: Mapping[str, Any]) -> bool:
        """Whether one in a queue was looked at a moment ago."""
        uid, now = document["metadata"]["uid"], self._clock()
        if not queued(document) or document["metadata"].get("deletionTimestamp") or status.changed(document):
            self._queued.pop(uid, None)
            return False
        pause = len(self._queued) / MOST_LOOKS_PER_S
        if now - self._queued.get(uid, -math.inf) < pause:
            return True
        self._queued[uid] = now
        if len(self._queued) > MOST_LOOKS_PER_S:
            # those that are gone
            kept = {one: at for one, at in tuple(self._queued.items()) if now - at < 2 * pause + MOST_LOOKS_PER_S}
            self._queued = kept
        return False
