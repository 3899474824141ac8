"""How pods fare under load: which did not stay ready, restarts, and warnings, by two looks; and the
times that a service measures itself, for each of its pods.
"""

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from scaletest.cluster.deployment import Deployment
from scaletest.cluster.pods import PodState, PodWarning
from scaletest.load.level_load import LoadOrder, LoadResult
from scaletest.model.attempt import OK, Attempt, PodTroubles
from scaletest.saturation.judging.pods import times_of_pods
from scaletest.saturation.measure.service_target import (
    MOST_EVENTS,
    PodLook,
    WatchedPods,
    find_troubles,
)
from tests.unit.fake_api import Answer, api, page, thing

LABELS = {"app": "model"}
MODEL = thing("model", spec={"selector": {"matchLabels": LABELS}, "template": {}})
POD = PodState("a", "node", "Running", ready=True, going=False, since="10:00:00")
PROBE = "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 502"
ORDER = LoadOrder(1.0, parallel=1)


@pytest.mark.parametrize(
    ("after", "unready"),
    [
        ([POD], ()),
        ([replace(POD, ready=False, since="10:00:07")], ("a",)),
        # ready again before anybody looked
        ([replace(POD, since="10:00:09")], ("a",)),
        ([replace(POD, going=True)], ("a",)),
        ([], ("a",)),
        ([POD, replace(POD, name="b", ready=False)], ()),
    ],
)
def test_a_pod_that_was_ready_must_stay_so(after: list[PodState], unready: tuple[str, ...]) -> None:
    assert find_troubles(PodLook([POD], []), PodLook(after, [])) == PodTroubles(unready)


def test_a_pod_that_was_not_ready_before_is_no_trouble_of_this_step() -> None:
    before = replace(POD, ready=False)
    assert find_troubles(PodLook([before], []), PodLook([POD], [])) == PodTroubles()


def test_restarts_are_those_since_the_first_look() -> None:
    before = PodLook([replace(POD, restarts=4)], [])
    after = PodLook([replace(POD, restarts=6), replace(POD, name="new", restarts=1)], [])
    assert find_troubles(before, after).restarts == 3


def test_warnings_are_those_about_these_pods_since_the_first_look() -> None:
    before = PodLook([POD], [PodWarning("1", "a", PROBE, 2)])
    after = [
        PodWarning("1", "a", PROBE, 5),
        PodWarning("2", "a", "BackOff: restarting", 1),
        PodWarning("3", "another", PROBE, 9),
    ]
    assert find_troubles(before, PodLook([POD], after)).events == (
        f"{PROBE} (3x)",
        "BackOff: restarting (1x)",
    )
    assert find_troubles(before, PodLook([POD], before.warnings)) == PodTroubles()
    many = [PodWarning(str(n), "a", f"Failed: {n}", 1) for n in range(50)]
    assert len(find_troubles(before, PodLook([POD], many)).events) == MOST_EVENTS


class _Load:
    """A load under which something happens."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens = happens
        self.closed = False

    def measure(self, *order: Any) -> LoadResult:
        self._happens()
        return LoadResult([], 1.0, 0.0, 0.0)

    def close(self) -> None:
        self.closed = True


def _pod(ready: str, since: str, restarts: int) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready, "lastTransitionTime": since}]
    containers = [{"name": "model", "restartCount": restarts, "state": {}}]
    status = {"phase": "Running", "conditions": conditions, "containerStatuses": containers}
    return thing("model-1", status=status, spec={"containers": [{"name": "model"}]})


def _event(uid: str, count: int) -> dict[str, Any]:
    row = thing("e", reason="Unhealthy", message="Readiness probe failed: 502")
    row["metadata"]["uid"] = uid
    # newer API servers count in the series
    number = {"count": count} if count == 1 else {"series": {"count": count}}
    return {**row, "involvedObject": {"kind": "Pod", "name": "model-1"}, **number}


def test_the_pods_of_a_deployment_are_watched_under_load_and_waited_for_after_it() -> None:
    pods, events = [_pod("True", "t0", 0)], [_event("u", 1)]
    slept: list[float] = []

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if path.endswith("/events"):
            assert query["fieldSelector"] == "involvedObject.kind=Pod,type=Warning"
            return page(events)
        return page(pods) if path.endswith("/pods") else (200, {}, MODEL)

    def crash() -> None:
        pods[:], events[:] = [_pod("False", "t1", 2)], [_event("u", 4)]

    def recover(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 3:
            pods[:] = [_pod("True", "t2", 2)]

    load = _Load(crash)
    with api(act) as (cluster, _):
        watched = WatchedPods(load, Deployment(cluster, "model"), lambda: 0.0, recover)
        first = watched.measure(ORDER, bool, lambda ended, failed: None)
        assert first.pods == PodTroubles(
            ("model-1",), 2, ("Unhealthy: Readiness probe failed: 502 (3x)",)
        )
        assert slept == []
        # when the next level is measured, the pod is ready again before it begins
        watched.measure(ORDER, bool, lambda ended, failed: None)
        assert len(slept) == 3
        watched.close()
    assert load.closed


def test_pods_that_stay_unready_are_waited_for_a_minute_and_only_once() -> None:
    pods = [_pod("True", "t0", 0)]
    now = [0.0]

    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        return page(pods) if path.endswith("/pods") else (200, {}, {**MODEL, "items": []})

    def sleep(seconds: float) -> None:
        now[0] += seconds

    def crash() -> None:
        pods[:] = [_pod("False", "t1", 1)]

    with api(act) as (cluster, _):
        watched = WatchedPods(_Load(crash), Deployment(cluster, "model"), lambda: now[0], sleep)
        for after_s in (0.0, 60.0, 60.0):
            watched.measure(ORDER, bool, lambda ended, failed: None)
            assert now[0] == after_s


def test_without_the_right_to_list_events_the_load_runs_and_this_is_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def act(method: str, path: str, query: dict[str, str], body: bytes) -> Answer:
        if path.endswith("/events"):
            return 403, {}, {"message": "forbidden"}
        return page([]) if path.endswith("/pods") else (200, {}, MODEL)

    with api(act) as (cluster, _), caplog.at_level(logging.WARNING):
        watched = WatchedPods(_Load(lambda: None), Deployment(cluster, "model"))
        for _ in range(2):
            assert watched.measure(ORDER, bool, lambda ended, failed: None).pods is None
    assert caplog.text.count("the state of the pods under load is unknown") == 1


def test_pods_times_stand_beside_the_clients() -> None:
    # given a pod that says 10 ms where its client saw 40
    rows = [Attempt(n, 0.0, 0.0, 0.0, 0.04, OK, server_s=0.01, pod="a") for n in range(3)]
    (pod_times,) = times_of_pods(rows)
    assert (pod_times.pod, pod_times.count, pod_times.mean_s, pod_times.queueing) == (
        "a",
        3,
        pytest.approx(0.01),
        pytest.approx(0.75),
    )
