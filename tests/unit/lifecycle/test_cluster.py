"""Watches and server-side apply, against an API server that misbehaves as told."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from scaletest.cluster.answers import LONGEST_OBEYED_S, Missing
from scaletest.cluster.api_calls import Raw
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.watch import Collection, Feeds, WatchEvent
from scaletest.lifecycle.measure import measuring
from scaletest.model.errors import ScaletestError, Unreachable
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
        feeds = Feeds(Raw(cluster), [PODS], clock, **options)
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
        feeds = Feeds(Raw(cluster), [PODS], time.time)
        with pytest.raises(Unreachable, match="not allowed to list"):
            gather(feeds, lambda events: False)
        feeds.close()


def resources(*rows: dict[str, Any]) -> Answer:
    return 200, {}, {"resources": list(rows)}


JOBS = {"kind": "Job", "name": "jobs", "namespaced": True}
BODY = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}


def test_too_many_requests_slows_all_threads_down() -> None:
    waited: list[float] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET":
            return resources(JOBS, {"kind": "Job", "name": "jobs/status", "namespaced": True})
        assert query["fieldManager"] == "m"
        assert path == "/apis/batch/v1/namespaces/n/jobs/j"
        return (201, {}, {}) if waited else (429, {"Retry-After": "7"}, status(429, "slow down"))

    with api(act) as (cluster, asked):
        objects = Objects(Raw(cluster), "m", clock=partial(sum, waited), sleep=waited.append)
        answer = objects.apply(BODY, "n")
        assert answer.accepted and answer.created
        assert (answer.tries, answer.throttled) == (2, 1)
        assert waited == [7.0]
        # the kind is looked up once
        objects.apply(BODY, "n")
        assert [method for method, _ in asked].count("GET") == 1


def test_retry_after_of_the_server_is_obeyed_beyond_our_own_patience() -> None:
    waited: list[float] = []
    left = [90, 600]

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET":
            return resources(JOBS)
        return (
            (503, {"Retry-After": str(left.pop(0))}, status(503, "later"))
            if left
            else (201, {}, {})
        )

    with api(act) as (cluster, _):
        clock = partial(sum, waited)
        objects = Objects(Raw(cluster), patience_s=60, clock=clock, sleep=waited.append)
        answer = objects.apply(BODY, "n")
        assert answer.created and answer.tries == 3
        assert waited == [90.0, 600.0]
        # but not for ever
        left[:] = [3000, 3000]
        assert not objects.apply(BODY, "n").accepted


def test_a_refused_api_call_is_reported_and_not_repeated() -> None:
    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        return resources(JOBS) if method == "GET" else (403, {}, status(403, "exceeded quota: q"))

    with api(act) as (cluster, asked):
        answer = Objects(Raw(cluster)).apply(BODY, "n")
        assert (answer.accepted, answer.status, answer.reason) == (False, 403, "exceeded quota: q")
        assert len(asked) == 2


@pytest.mark.parametrize(
    "refusal",
    [
        (500, {}, status(500, "broken")),
        # which must cause no busy loop
        (429, {"Retry-After": "0"}, status(429, "slow down")),
    ],
)
def test_a_failing_api_call_is_given_up_after_its_patience(refusal: Answer) -> None:
    waited: list[float] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        return resources(JOBS) if method == "GET" else refusal

    with api(act) as (cluster, _):
        clock = partial(sum, waited)
        objects = Objects(Raw(cluster), patience_s=5, clock=clock, sleep=waited.append)
        answer = objects.apply(BODY, "n")
    assert not answer.accepted
    assert answer.tries > 1
    assert min(waited) > 0.1 and sum(waited) <= 5


def test_stopping_ends_the_wait_for_events_at_once() -> None:
    stop = threading.Event()

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET":
            return resources(JOBS)
        stop.set()  # a signal comes while the server puts us off
        return 429, {"Retry-After": "50"}, status(429, "slow down")

    with api(act) as (cluster, asked):
        answer = Objects(Raw(cluster), sleep=stop.wait, stopping=stop.is_set).apply(BODY, "n")
    assert (answer.accepted, answer.status, answer.tries, len(asked)) == (False, 429, 1, 2)


def test_many_api_calls_are_in_flight_at_once() -> None:
    together = threading.Barrier(16, timeout=120)

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET":
            return resources(JOBS)
        together.wait()
        return 201, {}, {}

    with api(act) as (cluster, _), ThreadPoolExecutor(16) as pool:
        objects = Objects(Raw(cluster, 16))
        assert all(
            answer.created for answer in pool.map(lambda _: objects.apply(BODY, "n"), range(16))
        )


def test_an_unknown_kind_says_what_to_install() -> None:
    with (
        api(lambda *asked: resources()) as (cluster, _),
        pytest.raises(Missing, match="does not know Job") as raised,
    ):
        Objects(Raw(cluster)).resource("batch/v1", "Job")
    assert isinstance(raised.value, ScaletestError) and "CRD" in raised.value.hint


def test_the_switch_interval_of_threads_is_short_only_while_events_are_stamped() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(KeyError), measuring.attentive():
        assert sys.getswitchinterval() < before
        raise KeyError
    assert sys.getswitchinterval() == before
