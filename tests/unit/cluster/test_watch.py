"""Watches, against an API server that misbehaves as told."""

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from scaletest.cluster.api_calls import LONGEST_OBEYED_S, ApiCalls
from scaletest.cluster.watch import Collection, Feeds, WatchEvent
from scaletest.model.errors import Unreachable
from tests.unit.fake_api import Act, Answer, api, event, page, status, thing

PODS = Collection("pod", "/api/v1/namespaces/n/pods", "a=b")


def gather(feeds: Feeds, enough: Callable[[list[WatchEvent]], bool]) -> list[WatchEvent]:
    """What is seen until it is enough."""
    received: list[WatchEvent] = []
    deadline = time.monotonic() + 120
    while not enough(received):
        assert time.monotonic() < deadline, received
        received += feeds.events(0.05)
    return received


def watched(
    act: Act,
    enough: Callable[[list[WatchEvent]], bool],
    done: threading.Event,
    clock: Callable[[], float] = time.time,
    **options: Any,
) -> tuple[list[WatchEvent], list[tuple[str, str]]]:
    """What is seen of such an API server until it is enough, which ends its watch, and what it was
    asked.
    """
    with api(act) as (cluster, asked):
        feeds = Feeds(ApiCalls(cluster), [PODS], clock, **options)
        received = gather(feeds, enough)
        done.set()
        feeds.close()
    return received, asked


def names(events: list[WatchEvent], kind: str) -> list[str]:
    return [event.object["metadata"]["name"] for event in events if event.kind == kind]


def stream_until(*pieces: bytes, until: threading.Event) -> Iterator[bytes]:
    """A watch that stays open."""
    yield from pieces
    until.wait(120)


def test_a_collection_is_listed_in_pages_and_then_watched_with_one_api_call_each() -> None:
    done = threading.Event()

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        assert query["labelSelector"] == "a=b"
        if "watch" in query:
            assert (query["resourceVersion"], query["allowWatchBookmarks"]) == ("10", "true")
            # the second event arrives in two pieces
            second = event("MODIFIED", thing("two", "12"))
            return (
                200,
                {},
                stream_until(
                    event("ADDED", thing("three", "11")) + second[:30], second[30:], until=done
                ),
            )
        assert query["limit"] == "500"
        return (
            page([thing("two")]) if query.get("continue") == "t" else page([thing("one")], "9", "t")
        )

    clock = itertools.count(1000.0).__next__
    received, asked = watched(act, lambda seen: len(names(seen, "MODIFIED")) == 1, done, clock)
    assert len(asked) == 3
    assert names(received, "LISTED") == ["one", "two"]
    assert [event.object["uids"] for event in received if event.kind == "SYNCED"] == [
        {"uid-one", "uid-two"}
    ]
    # what was listed has no time of arrival
    assert all(event.at_s is None for event in received if event.kind == "LISTED")


def test_a_watch_that_ends_goes_on_from_the_bookmark_without_a_list() -> None:
    done = threading.Event()
    watches: list[str] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if "watch" not in query:
            return page([])
        watches.append(query["resourceVersion"])
        if len(watches) == 1:
            return (
                200,
                {},
                iter([event("ADDED", thing("one", "11")), event("BOOKMARK", thing("", "77"))]),
            )
        return 200, {}, stream_until(event("ADDED", thing("two", "78")), until=done)

    received, asked = watched(act, lambda seen: len(names(seen, "ADDED")) == 2, done)
    assert watches == ["10", "77"]
    assert sum("watch" not in path for _, path in asked) == 1
    assert names(received, "ADDED") == ["one", "two"]


@pytest.mark.parametrize("inside", [True, False])
def test_forgotten_versions_lead_to_a_new_list(inside: bool) -> None:
    done = threading.Event()
    lists: list[int] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if "watch" not in query:
            lists.append(1)
            return page([thing("one")] if len(lists) == 1 else [], str(len(lists)))
        if query["resourceVersion"] != "1":
            return 200, {}, stream_until(until=done)
        if inside:
            return 200, {}, iter([event("ERROR", status(410, "too old"))])
        return 410, {}, status(410, "too old")

    received, _ = watched(
        act, lambda seen: sum(event.kind == "SYNCED" for event in seen) == 2, done
    )
    assert [event.object["uids"] for event in received if event.kind == "SYNCED"] == [
        {"uid-one"},
        set(),
    ]


def test_events_from_before_the_watch_have_no_arrival() -> None:
    done = threading.Event()
    clock = itertools.count(
        1000.0, 0.2
    )  # every look at the clock is 0.2 s later: each gap is too long

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if "watch" not in query:
            return page([])
        return 200, {}, stream_until(event("ADDED", thing("late", "11")), until=done)

    received, _ = watched(act, lambda seen: len(names(seen, "ADDED")) == 1, done, clock.__next__)
    assert [event.at_s for event in received if event.kind == "ADDED"] == [None]


@pytest.mark.parametrize(("refused", "code"), [("list", 429), ("watch", 429), ("watch", 503)])
def test_a_watch_comes_again_when_the_server_says(refused: str, code: int) -> None:
    # given a server that refuses a list or a watch: once with a time, then with one in the far
    # future, then without
    after = [{"Retry-After": "7"}, {"Retry-After": "999999"}, {}]
    done = threading.Event()
    rested: list[float] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if after and ("watch" if "watch" in query else "list") == refused:
            return code, after.pop(0), status(code, "slow down")
        if "watch" not in query:
            return page([])
        return 200, {}, stream_until(event("ADDED", thing("one", "11")), until=done)

    received, asked = watched(
        act, lambda seen: len(names(seen, "ADDED")) == 1, done, pause=rested.append
    )
    # expect that it waits as long as it is told, an hour at most, and else as long as it likes
    assert rested[:2] == [7.0, LONGEST_OBEYED_S]
    assert len(rested) == 3 and 0 < rested[2] <= 1
    # and nothing else is asked meanwhile, nor anew
    assert len(asked) == 5
    assert names(received, "ADDED") == ["one"]


def test_a_collection_that_may_not_be_listed_is_an_error() -> None:
    with api(lambda *asked: (403, {}, status(403, "no"))) as (cluster, _):
        feeds = Feeds(ApiCalls(cluster), [PODS], time.time)
        with pytest.raises(Unreachable, match="not allowed to list"):
            gather(feeds, lambda events: False)
        feeds.close()
