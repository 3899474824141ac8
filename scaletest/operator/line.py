"""Whose turn it is: of those that wait in a namespace only the first asks the API server; nobody else has news for it.

The first is one that holds its nodes already, as all its parts are admitted, else the oldest.

A thousand that each asked every second would keep the API server from everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from scaletest.kinds.benchmark import Phase
from scaletest.operator import status
from scaletest.operator.benchmarks import ADMITTED, PAUSED, TOGETHER, WAITS

# Whether it still needs its nodes, its age, name and uid.
Entry = tuple[bool, str, str, str]
LOOK_S = 1.0


def entry(document: Mapping[str, Any]) -> Entry | None:
    """Its place; None when it does not wait for others."""
    meta, said = document["metadata"], document.get("status") or {}
    message = said.get("message") if said.get("phase") == Phase.PENDING else ""
    if message not in (WAITS, ADMITTED) or meta.get("deletionTimestamp") or TOGETHER in meta.get("labels", {}):
        return None
    return message == WAITS, meta["creationTimestamp"], meta["name"], meta["uid"]


def idle(document: Mapping[str, Any]) -> bool:
    """Whether it is paused, which was said already."""
    said = document.get("status") or {}
    known = said.get("phase") == "Paused" or said.get("message") == PAUSED
    return bool(known and (document.get("spec") or {}).get("paused")) and not status.changed(document)


class Line:
    """Those that wait in each namespace, sorted once a look."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first: dict[str, tuple[float, Entry | None]] = {}

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
