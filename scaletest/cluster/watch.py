"""What becomes of the objects of a collection: listed once in pages, then watched, with an own stamp on what arrives.

A reader thread for each collection does nothing but read and stamp, so that a stamp says when an event arrived and not
when somebody had time for it. What it read waits in one queue of bounded size, which `Feeds.events` empties. A list is
asked for once, and again only when the API server has forgotten where we were (410); a watch that ends goes on from the
last version that was seen, which bookmarks keep fresh. So the rate of requests does not depend on how much happens.
"""

from __future__ import annotations

import json
import logging
import queue
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from scaletest.cluster.connection import LONGEST_OBEYED_S, Busy, refusal
from scaletest.cluster.raw import Raw, message
from scaletest.model.errors import ScaletestError

logger = logging.getLogger("scaletest.cluster")

PAGE = 500
# The API server ends a watch after this long, and sends a bookmark every minute.
WATCH_S, SILENCE_S = 290, 100.0
# Pieces of at most 64 KiB that may wait to be looked at.
WAITING = 1024
LONGEST_PAUSE_S = 15.0
GONE = 410
# What happened while nobody watched arrives in one go when the watch opens again. If that was longer than the first,
# what arrives within the second has no arrival time of its own.
UNWATCHED_S, CATCHING_UP_S = 0.05, 1.0


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects of one kind. role: what they are to whoever asked. path: as in /api/v1/namespaces/n/pods."""

    role: str
    path: str
    selector: str = ""
    fields: str = ""

    @property
    def query(self) -> dict[str, str]:
        """The selectors, as a query."""
        both = {"labelSelector": self.selector, "fieldSelector": self.fields}
        return {name: value for name, value in both.items() if value}


class WatchEvent(NamedTuple):
    """A sighting. kind: ADDED, MODIFIED, DELETED; LISTED; or SYNCED, when a list is complete.

    at_s: when the event arrived; None for what was listed, or happened while nobody watched. For SYNCED it is
    when the list was asked for, and the object holds `uids`, those that were there.
    """

    role: str
    kind: str
    object: dict[str, Any]
    at_s: float | None


class _EventLine(NamedTuple):
    feed: _Feed
    at_s: float | None
    text: bytes


class _Feed:
    """One collection's thread."""

    def __init__(self, feeds: Feeds, collection: Collection) -> None:
        self.collection = collection
        self._feeds = feeds
        self._raw = feeds.raw
        self.version = ""
        self._unwatched_since = feeds.clock()
        self.sees_from: float | None = None
        self._thread = threading.Thread(target=self._run, name=f"watch {collection.path}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        pause = 0.1
        while not self._feeds.stopped.is_set():
            try:
                if not self.version:
                    self._list()
                self._watch()
                pause = 0.1
            except Busy as error:
                logger.info("%s; trying again", error)
                # a server that says when to come again is overloaded: whoever asks sooner makes it worse
                own_s = pause * random.uniform(0.5, 1.0)
                self._feeds.rest(max(own_s, min(error.after_s, LONGEST_OBEYED_S)))
                pause = min(LONGEST_PAUSE_S, pause * 2)
            except Exception as error:
                self._feeds.put(error)
                return

    def _list(self) -> None:
        """All pages, one after the other. A continuation that expired means to begin anew."""
        what, asked_s = f"list {self.collection.path}", self._feeds.clock()
        self._unwatched_since, self.sees_from = asked_s, None
        token, uids = "", set()
        while True:
            query = {**self.collection.query, "limit": str(PAGE)} | ({"continue": token} if token else {})
            status, body, headers = self._raw.fetch(self.collection.path, what, {}, **query)
            if status == GONE:
                raise Busy(f"cannot {what}: its pages expired")
            if status != 200:
                raise refusal(status, message(body), what, f"list and watch {self.collection.path}", headers)
            page = json.loads(body)
            for row in page["items"]:
                uids.add(row["metadata"]["uid"])
                self._feeds.put(WatchEvent(self.collection.role, "LISTED", row, None))
            token = page["metadata"].get("continue", "")
            if not token:
                break
        self.version = page["metadata"]["resourceVersion"]
        self._feeds.put(WatchEvent(self.collection.role, "SYNCED", {"uids": uids}, asked_s))

    def _watch(self) -> None:
        """One watch to its end. Waits then until all it brought was looked at, so that `version` is the last one."""
        query = {
            **self.collection.query, "watch": "true", "allowWatchBookmarks": "true",
            "resourceVersion": self.version, "timeoutSeconds": str(WATCH_S),
        }  # fmt: skip
        what = f"watch {self.collection.path}"
        try:
            with self._raw.stream(self.collection.path, what, SILENCE_S, **query) as (status, pieces, headers):
                if status == GONE:
                    self.version = ""
                    return
                if status != 200:
                    right = f"list and watch {self.collection.path}"
                    raise refusal(status, message(b"".join(pieces)), what, right, headers)
                opened_s = self._feeds.clock()
                late = opened_s - self._unwatched_since > UNWATCHED_S
                self.sees_from = opened_s + (CATCHING_UP_S if late else 0.0)
                self._read(pieces)
        finally:
            if self.sees_from is not None:
                self._unwatched_since, self.sees_from = self._feeds.clock(), None
            done = threading.Event()
            self._feeds.put(done)
            while not done.wait(0.1) and not self._feeds.stopped.is_set():
                pass

    def _read(self, pieces: Iterator[bytes]) -> None:
        rest = b""
        sees_from = self.sees_from or 0.0
        for piece in pieces:
            now = self._feeds.clock()
            at_s = now if now >= sees_from else None
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                if line:
                    self._feeds.put(_EventLine(self, at_s, line))
            if self._feeds.stopped.is_set():
                return

    def seen(self, line: _EventLine) -> WatchEvent | None:
        """What a line says; None for bookmarks and for the end of what the API server remembers."""
        event = json.loads(line.text)
        if event["type"] == "ERROR":
            # 410 in most cases; whatever it is, a fresh list puts it right
            self.version = ""
            return None
        if self.version:
            self.version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return None
        return WatchEvent(self.collection.role, event["type"], event["object"], line.at_s)


class Feeds:
    """Several collections at once. clock: seconds since the epoch. requests: sent to the API server so far.

    rest: waits so many seconds before a refused request is sent again, or until the feeds are closed.
    """

    def __init__(
        self,
        raw: Raw,
        collections: Sequence[Collection],
        clock: Callable[[], float],
        rest: Callable[[float], object] | None = None,
    ) -> None:
        self.raw, self.clock = raw, clock
        self.stopped = threading.Event()
        self.rest = rest or self.stopped.wait
        self._queue: queue.Queue[_EventLine | WatchEvent | threading.Event | Exception] = queue.Queue(WAITING)
        self._feeds = [_Feed(self, one) for one in collections]

    @property
    def watching(self) -> bool:
        """Whether all collections are watched just now, so that what happens is seen when it happens."""
        now = self.clock()
        return all(one.sees_from is not None and now >= one.sees_from for one in self._feeds)

    @property
    def requests(self) -> int:
        """Requests so far."""
        return self.raw.sent

    def put(self, item: _EventLine | WatchEvent | threading.Event | Exception) -> None:
        """Hand over; waits while too much waits, unless nobody takes any more."""
        while not self.stopped.is_set():
            try:
                self._queue.put(item, timeout=0.5)
                return
            except queue.Full:
                continue

    def events(self, seconds: float) -> Iterator[WatchEvent]:
        """What was seen, for at most about `seconds` of waiting. Raises ScaletestError when a collection is refused."""
        try:
            item = self._queue.get(timeout=max(0.0, seconds))
            while True:
                if isinstance(item, Exception):
                    raise item if isinstance(item, ScaletestError) else RuntimeError("a watch broke") from item
                if isinstance(item, _EventLine):
                    found = item.feed.seen(item)
                    if found:
                        yield found
                elif isinstance(item, WatchEvent):
                    yield item
                else:
                    item.set()
                item = self._queue.get_nowait()
        except queue.Empty:
            return

    def close(self) -> None:
        """Stop all readers; threads that wait for the API server end with it."""
        self.stopped.set()
