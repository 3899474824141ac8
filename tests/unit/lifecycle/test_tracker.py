"""The tracker of a lifecycle: stamps of objects and pods from watch events."""

from typing import Any

import pytest

from scaletest.lifecycle.judging.books import count_workloads
from scaletest.lifecycle.judging.timeline import duration_between, timeline_of
from scaletest.lifecycle.measure.tracker import Tracker
from scaletest.lifecycle.records import Stamp, Submission, TimeSource
from scaletest.model.times import parse_time
from scaletest.model.verdict import VerdictKind
from tests.unit.lifecycles import BEGAN, iso, job, of, pod, sighting, submission


def test_a_milestone_keeps_the_apis_second_and_our_arrival() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("workload", "ADDED", job("j"), 0.25))
    tracker.see(sighting("pod", "ADDED", pod("p", "j"), 0.5))
    tracker.see(sighting("pod", "MODIFIED", pod("p", "j", scheduled=1.9), 1.95))
    # a later event that shows the same changes nothing
    tracker.see(sighting("pod", "MODIFIED", pod("p", "j", scheduled=1.9), 9.0))
    stamps = tracker.workloads["j"].pods["uid-p"].stamps
    assert stamps["created"] == Stamp(BEGAN, BEGAN + 0.5)
    assert stamps["scheduled"] == Stamp(BEGAN + 1, BEGAN + 1.95)


def test_a_listed_object_gets_no_arrival_from_a_later_event() -> None:
    tracker = Tracker({"j-00aa11"})
    done, bound = job("j-00aa11", done=3.0), claim("j-00aa11-0-scaletest-pvc", "Bound")
    for role, body in (("workload", done), ("pvc", bound), ("podgroup", claim("j-00aa11", ""))):
        tracker.see(sighting(role, "LISTED", body))
    # given that it is deleted, or changed, an hour later, and that another object of its kind comes
    tracker.see(sighting("workload", "DELETED", done, 3600.0))
    tracker.see(sighting("pvc", "MODIFIED", bound, 3600.0))
    for role in ("pvc", "podgroup"):
        tracker.see(sighting(role, "ADDED", claim("j-00aa11-1-scaletest-pvc", "Bound"), 3600.0))
    # then no milestone is thought to have been passed only then
    stamps = tracker.workloads["j-00aa11"].stamps
    assert stamps["finished"] == Stamp(api_s=BEGAN + 3)
    assert {name for name, stamp in stamps.items() if stamp.watch_s is not None} == {"deleted"}


def test_a_job_is_finished_by_its_own_status_and_not_by_that_of_a_pod() -> None:
    # given a Job whose first pod failed and is tried again, and one with more pods in all than at
    # once
    tracker = Tracker({"j", "k"})
    for name in ("j", "k"):
        tracker.see(sighting("workload", "ADDED", job(name), 0.0))
    again = pod("p", "j", scheduled=1, started=2, finished=3)
    again["status"]["phase"] = "Failed"
    tracker.see(sighting("pod", "ADDED", again, 3.0))
    tracker.see(sighting("pod", "ADDED", pod("q", "k", scheduled=1, started=2, finished=3), 3.0))
    rows = tracker.workloads.values()
    assert (of(*rows).books.measured, of(*rows).books.pending) == (0, 2)
    # when they say that they are done
    for name in ("j", "k"):
        tracker.see(sighting("workload", "MODIFIED", job(name, done=9.0), 9.0))
    assert of(*rows).books.measured == 2
    assert {timeline.milestones["finished"].watch_s for timeline in of(*rows).timelines} == {
        BEGAN + 9
    }


def test_a_failed_pod_of_an_unseen_workload_is_no_success() -> None:
    tracker = Tracker({"j"})
    body = pod("p", "j", scheduled=1, started=2, finished=3)
    body["status"]["phase"] = "Failed"
    tracker.see(sighting("pod", "MODIFIED", body, 3.0))
    account = of(*tracker.workloads.values()).books
    assert (account.measured, account.failed) == (0, 1)


def test_finished_pods_that_are_collected_stay_measured() -> None:
    tracker = Tracker({"j"}, bare=True)
    body = pod("j", "j", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    tracker.see(sighting("pod", "MODIFIED", body, 3.5))
    tracker.see(sighting("pod", "DELETED", body, 4.0))
    account = count_workloads(
        [timeline_of(tracked) for tracked in tracker.workloads.values()],
        [submission("j")],
        "finished",
    )
    assert (account.measured, account.lost) == (1, 0)


@pytest.mark.parametrize("kind", ["LISTED", "MODIFIED"])
def test_an_end_without_a_time_is_counted_and_its_duration_is_missing(kind: str) -> None:
    # given a pod that was listed, or changed while nobody watched, and does not say when it ended
    tracker = Tracker({"j"}, bare=True)
    body = pod("j", "j", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    for state in body["status"]["containerStatuses"]:
        state["state"]["terminated"] = {"exitCode": 0, "startedAt": None}
    tracker.see(sighting("pod", kind, body))
    tracker.see(sighting("pod", "DELETED", body))
    lifecycle = of(*tracker.workloads.values())
    assert (lifecycle.books.measured, lifecycle.books.lost) == (1, 0)
    assert lifecycle.find_phase("total_finished") is None
    # a time that its container says is taken
    tracker = Tracker({"k"}, bare=True)
    body = pod("k", "k", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    tracker.see(sighting("pod", kind, body))
    assert timeline_of(tracker.workloads["k"]).stamp("finished") == Stamp(BEGAN + 3)


def test_a_workload_that_vanishes_unobserved_is_counted_as_lost() -> None:
    tracker = Tracker({"j", "k"})
    tracker.note_submission(Submission("j", "n", "", True, BEGAN, BEGAN))
    tracker.note_submission(
        Submission("k", "n", "", True, BEGAN, BEGAN + 50)
    )  # accepted after the list was asked for
    tracker.see(sighting("workload", "SYNCED", {"uids": set()}, 10.0))
    account = count_workloads(
        [timeline_of(tracked) for tracked in tracker.workloads.values()],
        [submission("j"), submission("k")],
        "finished",
    )
    assert (account.lost, account.pending) == (1, 1)


def test_defect_07_foreign_pods_and_groups_are_left_alone() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("pod", "ADDED", {"metadata": {"name": "stranger", "uid": "u"}}, 1.0))
    tracker.see(
        sighting("podgroup", "ADDED", {"metadata": {"name": "x", "uid": "v", "labels": {}}}, 1.0)
    )
    assert tracker.workloads == {}


def claim(name: str, phase: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": iso(BEGAN)},
        "status": {"phase": phase},
    }


def test_defect_05_the_bind_of_a_claim_is_measured_from_its_request() -> None:
    tracker = Tracker({"j-00aa11"})
    tracker.see(sighting("pvc", "ADDED", claim("j-00aa11-0-scaletest-pvc", "Pending"), 1.0))
    tracker.see(sighting("pvc", "MODIFIED", claim("j-00aa11-0-scaletest-pvc", "Bound"), 4.5))
    bound = of(*tracker.workloads.values()).find_phase("pvc_bound")
    assert bound is not None and bound.values == (3.5,)


def device_claim(name: str, pod_name: str, **status: Any) -> dict[str, Any]:
    owner = {"kind": "Pod", "name": pod_name, "uid": f"uid-{pod_name}"}
    metadata = {
        "name": name,
        "uid": f"uid-{name}",
        "creationTimestamp": iso(BEGAN),
        "ownerReferences": [owner],
    }
    return {"metadata": metadata, "status": status}


def test_devices_are_allocated_when_all_claims_of_a_pod_have_theirs() -> None:
    name = "j-00aa11"
    # given a pod with two claims of its own and one that it shares, seen after its first claim
    mine = pod(f"{name}-x", name)
    rows = [{"name": claim, "resourceClaimTemplateName": "t"} for claim in ("a", "b")]
    mine["spec"]["resourceClaims"] = [*rows, {"name": "c", "resourceClaimName": "shared"}]
    tracker = Tracker({name})
    tracker.see(sighting("claim", "ADDED", device_claim("a", f"{name}-x"), 1.0))
    tracker.see(
        sighting(
            "claim", "MODIFIED", device_claim("a", f"{name}-x", allocation={"devices": {}}), 2.0
        )
    )
    tracker.see(sighting("pod", "ADDED", mine, 2.5))
    tracker.see(sighting("claim", "ADDED", device_claim("b", f"{name}-x"), 3.0))
    stamps = tracker.workloads[name].pods[f"uid-{name}-x"].stamps
    assert stamps["claim_created"] == Stamp(BEGAN, BEGAN + 1.0)
    assert "claim_allocated" not in stamps
    # when the second has its devices, expect its time, the API's too where there is one of all
    with_time = {"devices": {}, "allocationTimestamp": iso(BEGAN + 5)}
    tracker.see(
        sighting("claim", "MODIFIED", device_claim("b", f"{name}-x", allocation=with_time), 5.25)
    )
    assert stamps["claim_allocated"] == Stamp(None, BEGAN + 5.25)
    allocated = of(*tracker.workloads.values(), until="scheduled").find_phase("claim_allocated")
    assert allocated is not None and (allocated.values, allocated.sources) == (
        (4.25,),
        {"watch": 1},
    )


def test_a_claim_whose_allocation_was_not_observed_gets_no_time() -> None:
    name = "j-00aa11"
    mine = pod(f"{name}-x", name) | {
        "spec": {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]}
    }
    allocated = device_claim("a", f"{name}-x", allocation={"devices": {}})
    for kind, at_s in (("LISTED", None), ("DELETED", 9.0)):
        tracker = Tracker({name})
        tracker.see(sighting("pod", "LISTED", mine))
        tracker.see(sighting("claim", kind, allocated, at_s))
        stamps = tracker.workloads[name].pods[f"uid-{name}-x"].stamps
        assert stamps["claim_allocated"] == Stamp()
    # and one that was made by hand, or for somebody else, is nobody's
    tracker = Tracker({name})
    tracker.see(
        sighting(
            "claim", "ADDED", {"metadata": {"name": f"{name}-hand", "uid": "u"}, "status": {}}, 1.0
        )
    )
    tracker.see(sighting("claim", "ADDED", device_claim("a", "stranger"), 1.0))
    assert tracker.workloads == {}


def happening(reason: str, name: str, at_s: float) -> dict[str, Any]:
    return {
        "metadata": {"name": "e", "uid": f"e-{reason}-{name}"},
        "involvedObject": {"name": name, "uid": ""},
        "reason": reason,
        "firstTimestamp": iso(BEGAN + at_s),
    }


def test_defect_06_evictions_and_claims_of_one_workload_do_not_mix() -> None:
    name = "j-00aa11"
    tracker = Tracker({name})
    for reason, at_s in (
        ("Evict", 9),
        ("ExternalProvisioning", 2),
        ("ProvisioningSucceeded", 5),
        ("Evict", 30),
    ):
        tracker.see(sighting("event", "ADDED", happening(reason, f"{name}-claim", at_s), at_s))
    stamps = tracker.workloads[name].stamps
    assert {key: stamp.api_s for key, stamp in stamps.items()} == {
        "evicted": BEGAN + 9, "pvc_requested": BEGAN + 2, "pvc_bound": BEGAN + 5
    }  # fmt: skip


def test_defect_08_a_gang_is_scheduled_when_its_last_pod_is() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("workload", "ADDED", job("j", parallelism=3), 0.0))
    for index, at_s in enumerate((1.0, 8.0, 4.0)):
        tracker.see(sighting("pod", "ADDED", pod(f"p{index}", "j"), 0.5))
        tracker.see(sighting("pod", "MODIFIED", pod(f"p{index}", "j", scheduled=at_s), at_s))
    stamp = timeline_of(tracker.workloads["j"]).stamp("scheduled")
    assert stamp == Stamp(BEGAN + 8, BEGAN + 8)
    # one pod is missing: nothing is invented
    del tracker.workloads["j"].pods["uid-p1"]
    assert timeline_of(tracker.workloads["j"]).stamp("scheduled") is None


def test_events_give_microseconds() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("pod", "LISTED", pod("p", "j", scheduled=2.0)))
    row = happening("Scheduled", "p", 2) | {"eventTime": "2026-09-21T14:13:22.123456Z"}
    row["involvedObject"]["uid"] = "uid-p"
    tracker.see(sighting("event", "ADDED", row, 2.5))
    stamp = tracker.workloads["j"].pods["uid-p"].stamps["scheduled"]
    assert stamp.event_s == pytest.approx(BEGAN + 2.123456)
    duration = duration_between(Stamp(api_s=BEGAN), stamp)
    assert duration is not None and duration.source is TimeSource.EVENT
    # also when the list of Events is there before that of the pods
    tracker = Tracker({"j-00aa11"})
    row["involvedObject"]["name"] = "j-00aa11-0"
    tracker.see(sighting("event", "LISTED", row))
    tracker.see(sighting("pod", "LISTED", pod("p", "j-00aa11", scheduled=2.0)))
    assert tracker.workloads["j-00aa11"].pods["uid-p"].stamps["scheduled"] == stamp


def test_a_failed_job_says_why() -> None:
    tracker = Tracker({"j"})
    tracker.see(sighting("workload", "MODIFIED", job("j", failed="BackoffLimitExceeded"), 3.0))
    lifecycle = of(*tracker.workloads.values())
    assert lifecycle.books.failed == 1
    assert lifecycle.verdict.kind is VerdictKind.FAIL
    assert "BackoffLimitExceeded" in lifecycle.verdict.reason


@pytest.mark.parametrize("text", ["", "2026", None, 3, "2026-13-01T00:00:00Z", "x"])
def test_a_nonsense_timestamp_gives_no_time(text: object) -> None:
    assert parse_time(text) is None or text == "2026"
