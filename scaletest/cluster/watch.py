"""Watch collections of objects, and note when each event arrived.

A reader thread for each collection only reads and adds the time, so the time is that of the
arrival, not of its processing. Lines wait in one bounded queue, which `Feeds.events` empties. A
collection is listed once, and again only when the API server no longer knows our version (410); a
watch that ends is continued from the last version, which bookmarks advance. So the rate of API
calls does not depend on that of events.
"""

from __future__ import annotations

import json
import logging
import queue
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from scaletest.cluster.api_calls import LONGEST_OBEYED_S, ApiCalls, Busy, read_message, status_error
from scaletest.cluster.objects import selector_query
from scaletest.model.errors import ScaletestError

# After this the API server ends a watch.
WATCH_LIMIT_S = 290
# A bookmark comes every minute, so after a longer silence the connection is dead.
LONGEST_SILENCE_S = 100.0
# Our own pause after a refused call, which doubles.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 15.0
# After a longer gap between two watches, events of the second one arrive late at first, for so
# long.
SHORT_GAP_S = 0.05
LATE_S = 1.0
MOST_QUEUED = 1024

logger = logging.getLogger("scaletest.cluster")


@dataclass(frozen=True, slots=True)
class Collection:
    """Objects to watch."""

    role: str  # what they are to the caller, who finds it in each event
    path: str  # as in /api/v1/namespaces/n/pods
    selector: str = ""
    fields: str = ""


class WatchEvent(NamedTuple):
    """An event of a collection, or what its list shows."""

    role: str  # of the collection
    kind: str  # ADDED, MODIFIED, DELETED; LISTED; or SYNCED, when a list is complete
    object: dict[str, Any]  # of SYNCED the `uids` of all listed objects
    # time of arrival, seconds since the epoch; None for a listed object, and for an event between
    # two watches; of SYNCED the time of the list call
    at_s: float | None


class _EventLine(NamedTuple):
    """A line of a watch, which the reader of the queue parses."""

    feed: _Feed
    at_s: float | None  # when it arrived, as in WatchEvent
    text: bytes


class _Feed:
    """The thread that reads one collection."""

    def __init__(self, feeds: Feeds, collection: Collection) -> None:
        self._feeds, self._role, self._path = feeds, collection.role, collection.path
        self._query = selector_query(collection.selector, collection.fields)
        self._version = ""  # from which to continue; "" to list first
        self._unwatched_since = feeds.clock()
        self.sees_from: float | None = None  # since when events arrive as they happen
        threading.Thread(target=self._run, name=f"watch {self._path}", daemon=True).start()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._feeds.stopped.is_set():
            try:
                if not self._version:
                    self._list()
                self._watch()
                pause_s = FIRST_PAUSE_S
            except Busy as error:
                logger.info("%s; trying again", error)
                # a server that sets a time for the next call is overloaded: calling
                # sooner makes it worse
                server_pause_s = min(error.after_s, LONGEST_OBEYED_S)
                self._feeds.pause(max(pause_s * random.uniform(0.5, 1.0), server_pause_s))
                pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
            except Exception as error:
                self._feeds.put(error)  # for the caller of `Feeds.events`
                return

    def _list(self) -> None:
        """Queue all objects that there are now, and that these were all."""
        path, asked_s = self._path, self._feeds.clock()
        self._unwatched_since, self.sees_from = asked_s, None
        uids = set()
        for page in self._feeds.api.pages(
            path, f"list {path}", f"list and watch {path}", **self._query
        ):
            for listed in page["items"]:
                uids.add(listed["metadata"]["uid"])
                self._feeds.put(WatchEvent(self._role, "LISTED", listed, None))
        self._version = page["metadata"]["resourceVersion"]
        self._feeds.put(WatchEvent(self._role, "SYNCED", {"uids": uids}, asked_s))

    def _watch(self) -> None:
        """Read one watch to its end, and wait until its lines, which set the version, are read."""
        query = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(WATCH_LIMIT_S),
        }
        action = f"watch {self._path}"
        try:
            with self._feeds.api.stream(self._path, action, LONGEST_SILENCE_S, **query) as (
                status,
                pieces,
                headers,
            ):
                if status == 410:  # the API server no longer knows the version
                    self._version = ""
                    return
                if status != 200:
                    message = read_message(b"".join(pieces))
                    raise status_error(status, message, action, f"list and {action}", headers)
                opened_s = self._feeds.clock()
                # events since the last watch arrive all at once now; after a gap that was not short
                # the first ones have no time of their own
                self.sees_from = opened_s
                if opened_s - self._unwatched_since > SHORT_GAP_S:
                    self.sees_from += LATE_S
                # lines may be cut in pieces anywhere
                unfinished = b""
                for piece in pieces:
                    now = self._feeds.clock()
                    at_s = now if now >= self.sees_from else None
                    *lines, unfinished = (unfinished + piece).split(b"\n")
                    for line in filter(None, lines):
                        self._feeds.put(_EventLine(self, at_s, line))
                    if self._feeds.stopped.is_set():
                        return
        finally:
            if self.sees_from is not None:
                self._unwatched_since, self.sees_from = self._feeds.clock(), None
            done = threading.Event()
            self._feeds.put(done)
            while not done.wait(0.1) and not self._feeds.stopped.is_set():
                pass

    def parse_event(self, line: _EventLine) -> WatchEvent | None:
        """Return the event of a line; None for bookmarks and errors."""
        event = json.loads(line.text)
        if event["type"] == "ERROR":
            # 410 in most cases; a new list helps in all
            self._version = ""
            return None
        if self._version:
            self._version = event["object"]["metadata"]["resourceVersion"]
        if event["type"] == "BOOKMARK":
            return None
        return WatchEvent(self._role, event["type"], event["object"], line.at_s)


class Feeds:
    """The events of several collections.

    clock: seconds since the epoch. pause: waits before a refused call is repeated; by default until
    the feeds are closed at most.
    """

    def __init__(
        self,
        api: ApiCalls,
        collections: Sequence[Collection],
        clock: Callable[[], float],
        pause: Callable[[float], object] | None = None,
    ) -> None:
        self.api, self.clock = api, clock
        self.stopped = threading.Event()
        self.pause = pause or self.stopped.wait
        # of lines that wait to be processed, and what readers say of themselves
        self._queue: queue.Queue[_EventLine | WatchEvent | threading.Event | Exception] = (
            queue.Queue(MOST_QUEUED)
        )
        self._feeds = [_Feed(self, collection) for collection in collections]

    @property
    def watching(self) -> bool:
        """Whether all collections are watched now, so that events arrive when they happen."""
        now = self.clock()
        return all(feed.sees_from is not None and now >= feed.sees_from for feed in self._feeds)

    def put(self, message: _EventLine | WatchEvent | threading.Event | Exception) -> None:
        """Queue a message of a reader; wait while the queue is full and not closed."""
        while not self.stopped.is_set():
            with suppress(queue.Full):
                self._queue.put(message, timeout=0.5)
                return

    def events(self, seconds: float) -> Iterator[WatchEvent]:
        """Yield events so far, waiting for the first one at most `seconds`.

        Raises ScaletestError when a collection is refused.
        """
        try:
            queued = self._queue.get(timeout=max(0.0, seconds))
            while True:
                if isinstance(queued, ScaletestError):
                    raise queued
                if isinstance(queued, Exception):
                    raise RuntimeError("a watch broke") from queued
                if isinstance(queued, _EventLine):
                    event = queued.feed.parse_event(queued)
                    if event:
                        yield event
                elif isinstance(queued, WatchEvent):
                    yield queued
                else:
                    queued.set()
                queued = self._queue.get_nowait()
        except queue.Empty:
            return

    def close(self) -> None:
        """Stop all readers.

        Daemon threads that still wait for the API server end with the process.
        """
        self.stopped.set()
