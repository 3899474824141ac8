"""Server-side apply, against an API server that misbehaves as told."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from scaletest.cluster.api_calls import ApiCalls, Missing
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.resources import Resource
from scaletest.model.errors import ScaletestError, Unreachable
from tests.unit.fake_api import Answer, api, status


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
        objects = Objects(ApiCalls(cluster), "m", clock=partial(sum, waited), sleep=waited.append)
        answer = objects.apply(BODY, "n")
        assert answer.accepted and answer.created
        assert answer.tries == 2
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
        objects = Objects(ApiCalls(cluster), patience_s=60, clock=clock, sleep=waited.append)
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
        answer = Objects(ApiCalls(cluster)).apply(BODY, "n")
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
        objects = Objects(ApiCalls(cluster), patience_s=5, clock=clock, sleep=waited.append)
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
        answer = Objects(ApiCalls(cluster), sleep=stop.wait, stopping=stop.is_set).apply(BODY, "n")
    assert (answer.accepted, answer.status, answer.tries, len(asked)) == (False, 429, 1, 2)


def test_many_api_calls_are_in_flight_at_once() -> None:
    together = threading.Barrier(16, timeout=120)

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if method == "GET":
            return resources(JOBS)
        together.wait()
        return 201, {}, {}

    with api(act) as (cluster, _), ThreadPoolExecutor(16) as pool:
        objects = Objects(ApiCalls(cluster, 16))
        assert all(
            answer.created for answer in pool.map(lambda _: objects.apply(BODY, "n"), range(16))
        )


def test_an_unknown_kind_says_what_to_install() -> None:
    with (
        api(lambda *asked: resources()) as (cluster, _),
        pytest.raises(Missing, match="does not define Job") as raised,
    ):
        Objects(ApiCalls(cluster)).resource("batch/v1", "Job")
    assert isinstance(raised.value, ScaletestError) and "CRD" in raised.value.hint


def test_deletions_are_repeated_while_the_server_is_busy_and_a_missing_object_is_fine() -> None:
    waited: list[float] = []
    answers = {"a": [(503, {}, status(503, "later")), (200, {}, {})], "b": [(404, {}, {})]}

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        assert (method, query["propagationPolicy"]) == ("DELETE", "Background")
        return answers[path[-1]].pop(0)

    jobs = Resource("Job", "/apis/batch/v1", "jobs")
    with api(act) as (cluster, asked):
        Objects(ApiCalls(cluster), sleep=waited.append).delete(jobs, "n", ["a", "b"])
        assert len(asked) == 3 and len(waited) == 1
        answers["a"] = [(403, {}, status(403, "forbidden"))]
        with pytest.raises(Unreachable, match="not allowed to delete jobs: forbidden"):
            Objects(ApiCalls(cluster)).delete(jobs, "n", ["a"])
