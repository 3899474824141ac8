"""Stamps, steps, books, thresholds and files of a lifecycle.

Tests named test_defect_NN show that ours does not have that defect of the Run:ai scale test tool:

    01 times.csv misaligned             06 PVC events and evictions mix   11 whole seconds, averages, no failures
    02 no -t crashes                    07 foreign pods abort             12 submission holds a process's start
    03 no -n crashes                    08 a gang by one pod              13 deleted between samples: vanished
    04 remainders lost                  09 series in different orders     14 second run overwrites; no resume
    05 PVC bind always 0                10 Run:ai command line            15 text replacement

10 and 13 need a control plane: tests/cluster/test_lifecycle.py.
"""

from __future__ import annotations

import csv
import io
import json
import random
import re
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from scaletest.analysis.lifecycle import judge
from scaletest.analysis.lifecycle.books import Fate, LifecycleProgress, books
from scaletest.analysis.lifecycle.compare import compare
from scaletest.analysis.lifecycle.phases import PHASES, between, timeline
from scaletest.analysis.lifecycle.result import LifecycleResult, WorkloadSelection, result
from scaletest.cli import stored
from scaletest.cli.lifecycle_options import result_of
from scaletest.cli.main import run
from scaletest.lifecycle import classic, kinds
from scaletest.lifecycle.backend import read
from scaletest.lifecycle.cleanup import delete_all
from scaletest.lifecycle.milestones import epoch
from scaletest.lifecycle.plan import LifecyclePlan, new_run
from scaletest.lifecycle.store import Store
from scaletest.lifecycle.submitting import Answer, Submitter
from scaletest.lifecycle.templating import Extras, Workloads, text_of
from scaletest.lifecycle.tracker import Tracker
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.lifecycle import Source, Stamp, Submission, Workload, read_line
from scaletest.model.verdict import VerdictKind
from scaletest.report.lifecycle import csvs
from scaletest.report.lifecycle.figures import DETAILED, GENERAL, charts, panels, thinned
from scaletest.report.lifecycle.progress import Teller
from tests.unit.lifecycles import BEGAN, iso, job, pod, seen, submission, workload

VIEW = WorkloadSelection()


def of(*workloads: Workload, until: str = "finished", view: WorkloadSelection = VIEW, **more: Any) -> LifecycleResult:
    return result(workloads, [submission(one.name) for one in workloads], until, view, **more)


# tracker


def test_a_milestone_keeps_the_apis_second_and_our_arrival() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("workload", "ADDED", job("j"), 0.25))
    tracker.see(seen("pod", "ADDED", pod("p", "j"), 0.5))
    tracker.see(seen("pod", "MODIFIED", pod("p", "j", scheduled=1.9), 1.95))
    # a later event that shows the same changes nothing
    tracker.see(seen("pod", "MODIFIED", pod("p", "j", scheduled=1.9), 9.0))
    stamps = tracker.workloads["j"].pods["uid-p"].stamps
    assert stamps["created"] == Stamp(BEGAN, BEGAN + 0.5)
    assert stamps["scheduled"] == Stamp(BEGAN + 1, BEGAN + 1.95)


def test_what_was_listed_has_no_arrival() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("pod", "LISTED", pod("p", "j", scheduled=2.0)))
    assert tracker.workloads["j"].pods["uid-p"].stamps["scheduled"] == Stamp(BEGAN + 2)


def test_what_was_listed_gets_no_arrival_from_a_later_event() -> None:
    tracker = Tracker({"j-00aa11"})
    done, bound = job("j-00aa11", done=3.0), claim("j-00aa11-0-scaletest-pvc", "Bound")
    for role, body in (("workload", done), ("pvc", bound), ("podgroup", claim("j-00aa11", ""))):
        tracker.see(seen(role, "LISTED", body))
    # given that it is deleted, or changed, an hour later, and that another object of its kind comes
    tracker.see(seen("workload", "DELETED", done, 3600.0))
    tracker.see(seen("pvc", "MODIFIED", bound, 3600.0))
    for role in ("pvc", "podgroup"):
        tracker.see(seen(role, "ADDED", claim("j-00aa11-1-scaletest-pvc", "Bound"), 3600.0))
    # then no milestone is thought to have been passed only then
    stamps = tracker.workloads["j-00aa11"].stamps
    assert stamps["finished"] == Stamp(api_s=BEGAN + 3)
    assert {name for name, stamp in stamps.items() if stamp.watch_s is not None} == {"deleted"}


def test_a_job_is_finished_when_it_says_so_and_not_when_a_pod_is() -> None:
    # given a Job whose first pod failed and is tried again, and one with more pods in all than at once
    tracker = Tracker({"j", "k"})
    for name in ("j", "k"):
        tracker.see(seen("workload", "ADDED", job(name), 0.0))
    again = pod("p", "j", scheduled=1, started=2, finished=3)
    again["status"]["phase"] = "Failed"
    tracker.see(seen("pod", "ADDED", again, 3.0))
    tracker.see(seen("pod", "ADDED", pod("q", "k", scheduled=1, started=2, finished=3), 3.0))
    rows = tracker.workloads.values()
    assert (of(*rows).books.measured, of(*rows).books.pending) == (0, 2)
    # when they say that they are done
    for name in ("j", "k"):
        tracker.see(seen("workload", "MODIFIED", job(name, done=9.0), 9.0))
    assert of(*rows).books.measured == 2
    assert {one.milestones["finished"].watch_s for one in of(*rows).courses} == {BEGAN + 9}


def test_an_observed_pod_that_failed_is_no_success() -> None:
    tracker = Tracker()
    body = pod("p", "j", scheduled=1, started=2, finished=3)
    body["status"]["phase"] = "Failed"
    tracker.see(seen("pod", "MODIFIED", body, 3.0))
    found = of(*tracker.workloads.values()).books
    assert (found.measured, found.failed, found.balanced) == (0, 1, True)


def test_finished_pods_that_are_collected_stay_measured() -> None:
    tracker = Tracker({"j"}, bare=True)
    body = pod("j", "j", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    tracker.see(seen("pod", "MODIFIED", body, 3.5))
    tracker.see(seen("pod", "DELETED", body, 4.0))
    found = books([timeline(one) for one in tracker.workloads.values()], [submission("j")], "finished")
    assert (found.measured, found.lost, found.balanced) == (1, 0, True)


@pytest.mark.parametrize("kind", ["LISTED", "MODIFIED"])
def test_an_end_that_nobody_has_a_time_for_counts_and_is_a_missing_value(kind: str) -> None:
    # given a pod that was listed, or changed while nobody watched, and does not say when it ended
    tracker = Tracker({"j"}, bare=True)
    body = pod("j", "j", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    for state in body["status"]["containerStatuses"]:
        state["state"]["terminated"] = {"exitCode": 0, "startedAt": None}
    tracker.see(seen("pod", kind, body))
    tracker.see(seen("pod", "DELETED", body))
    found = of(*tracker.workloads.values())
    assert (found.books.measured, found.books.lost) == (1, 0)
    assert found.step("total_finished") is None
    # a time that its container says is taken
    tracker = Tracker({"k"}, bare=True)
    body = pod("k", "k", scheduled=1, started=2, finished=3)
    del body["metadata"]["ownerReferences"]
    tracker.see(seen("pod", kind, body))
    assert timeline(tracker.workloads["k"]).stamp("finished") == Stamp(BEGAN + 3)


def test_what_vanishes_unseen_is_lost_and_not_dropped() -> None:
    tracker = Tracker({"j", "k"})
    tracker.submitted("j", "n", BEGAN, BEGAN)
    tracker.submitted("k", "n", BEGAN, BEGAN + 50)  # accepted after the list was asked for
    tracker.see(seen("workload", "SYNCED", {"uids": set()}, 10.0))
    found = books([timeline(one) for one in tracker.workloads.values()], [submission("j"), submission("k")], "finished")
    assert (found.lost, found.pending, found.balanced) == (1, 1, True)


def test_defect_07_foreign_pods_and_groups_are_counted_and_left_alone() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("pod", "ADDED", {"metadata": {"name": "stranger", "uid": "u"}}, 1.0))
    tracker.see(seen("podgroup", "ADDED", {"metadata": {"name": "x", "uid": "v", "labels": {}}}, 1.0))
    assert tracker.workloads == {}
    assert tracker.foreign == {"pod": 1, "podgroup": 1}


def claim(name: str, phase: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": iso(BEGAN)},
        "status": {"phase": phase},
    }


def test_defect_05_the_bind_of_a_claim_is_measured_from_its_request() -> None:
    tracker = Tracker({"j-00aa11"})
    tracker.see(seen("pvc", "ADDED", claim("j-00aa11-0-scaletest-pvc", "Pending"), 1.0))
    tracker.see(seen("pvc", "MODIFIED", claim("j-00aa11-0-scaletest-pvc", "Bound"), 4.5))
    found = of(*tracker.workloads.values()).step("pvc_bound")
    assert found is not None and found.values == (3.5,)


def device_claim(name: str, pod_name: str, **status: Any) -> dict[str, Any]:
    owner = {"kind": "Pod", "name": pod_name, "uid": f"uid-{pod_name}"}
    made = {"name": name, "uid": f"uid-{name}", "creationTimestamp": iso(BEGAN), "ownerReferences": [owner]}
    return {"metadata": made, "status": status}


def test_devices_are_allocated_when_all_claims_of_a_pod_have_theirs() -> None:
    name = "j-00aa11"
    # given a pod with two claims of its own and one that it shares, seen after its first claim
    mine = pod(f"{name}-x", name)
    rows = [{"name": one, "resourceClaimTemplateName": "t"} for one in ("a", "b")]
    mine["spec"]["resourceClaims"] = [*rows, {"name": "c", "resourceClaimName": "shared"}]
    tracker = Tracker({name})
    tracker.see(seen("claim", "ADDED", device_claim("a", f"{name}-x"), 1.0))
    tracker.see(seen("claim", "MODIFIED", device_claim("a", f"{name}-x", allocation={"devices": {}}), 2.0))
    tracker.see(seen("pod", "ADDED", mine, 2.5))
    tracker.see(seen("claim", "ADDED", device_claim("b", f"{name}-x"), 3.0))
    stamps = tracker.workloads[name].pods[f"uid-{name}-x"].stamps
    assert stamps["claim_created"] == Stamp(BEGAN, BEGAN + 1.0)
    assert "claim_allocated" not in stamps
    # when the second has its devices, expect its time, the API's too where there is one of all
    with_time = {"devices": {}, "allocationTimestamp": iso(BEGAN + 5)}
    tracker.see(seen("claim", "MODIFIED", device_claim("b", f"{name}-x", allocation=with_time), 5.25))
    assert stamps["claim_allocated"] == Stamp(None, BEGAN + 5.25)
    found = of(*tracker.workloads.values(), until="scheduled").step("claim_allocated")
    assert found is not None and (found.values, found.sources) == ((4.25,), {"watch": 1})


def test_a_claim_that_nobody_saw_allocated_gets_no_time() -> None:
    name = "j-00aa11"
    mine = pod(f"{name}-x", name) | {"spec": {"resourceClaims": [{"name": "a", "resourceClaimTemplateName": "t"}]}}
    allocated = device_claim("a", f"{name}-x", allocation={"devices": {}})
    for kind, at_s in (("LISTED", None), ("DELETED", 9.0)):
        tracker = Tracker({name})
        tracker.see(seen("pod", "LISTED", mine))
        tracker.see(seen("claim", kind, allocated, at_s))
        stamps = tracker.workloads[name].pods[f"uid-{name}-x"].stamps
        assert stamps["claim_allocated"] == Stamp()
    # and one that was made by hand, or for somebody else, is nobody's
    tracker = Tracker({name})
    tracker.see(seen("claim", "ADDED", {"metadata": {"name": f"{name}-hand", "uid": "u"}, "status": {}}, 1.0))
    tracker.see(seen("claim", "ADDED", device_claim("a", "stranger"), 1.0))
    assert (tracker.workloads, tracker.foreign) == ({}, {"claim": 1})


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
    for reason, at_s in (("Evict", 9), ("ExternalProvisioning", 2), ("ProvisioningSucceeded", 5), ("Evict", 30)):
        tracker.see(seen("event", "ADDED", happening(reason, f"{name}-claim", at_s), at_s))
    stamps = tracker.workloads[name].stamps
    assert {key: stamp.api_s for key, stamp in stamps.items()} == {
        "evicted": BEGAN + 9, "pvc_requested": BEGAN + 2, "pvc_bound": BEGAN + 5
    }  # fmt: skip


def test_defect_08_a_gang_is_scheduled_when_its_last_pod_is() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("workload", "ADDED", job("j", parallelism=3), 0.0))
    for index, at_s in enumerate((1.0, 8.0, 4.0)):
        tracker.see(seen("pod", "ADDED", pod(f"p{index}", "j"), 0.5))
        tracker.see(seen("pod", "MODIFIED", pod(f"p{index}", "j", scheduled=at_s), at_s))
    stamp = timeline(tracker.workloads["j"]).stamp("scheduled")
    assert stamp == Stamp(BEGAN + 8, BEGAN + 8)
    # one pod is missing: nothing is invented
    del tracker.workloads["j"].pods["uid-p1"]
    assert timeline(tracker.workloads["j"]).stamp("scheduled") is None


def test_events_give_microseconds() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("pod", "LISTED", pod("p", "j", scheduled=2.0)))
    row = happening("Scheduled", "p", 2) | {"eventTime": "2026-09-21T14:13:22.123456Z"}
    row["involvedObject"]["uid"] = "uid-p"
    tracker.see(seen("event", "ADDED", row, 2.5))
    stamp = tracker.workloads["j"].pods["uid-p"].stamps["scheduled"]
    assert stamp.event_s == pytest.approx(BEGAN + 2.123456)
    found = between(Stamp(api_s=BEGAN), stamp)
    assert found is not None and found.source is Source.EVENT
    # also when the list of Events is there before that of the pods
    tracker = Tracker({"j-00aa11"})
    row["involvedObject"]["name"] = "j-00aa11-0"
    tracker.see(seen("event", "LISTED", row))
    tracker.see(seen("pod", "LISTED", pod("p", "j-00aa11", scheduled=2.0)))
    assert tracker.workloads["j-00aa11"].pods["uid-p"].stamps["scheduled"] == stamp


def test_a_failed_job_says_why() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("workload", "MODIFIED", job("j", failed="BackoffLimitExceeded"), 3.0))
    found = of(*tracker.workloads.values())
    assert found.books.failed == 1
    assert found.verdict.kind is VerdictKind.FAIL
    assert "BackoffLimitExceeded" in found.verdict.reason


@pytest.mark.parametrize("text", ["", "2026", None, 3, "2026-13-01T00:00:00Z", "x"])
def test_no_time_is_made_of_nonsense(text: object) -> None:
    assert epoch(text) is None or text == "2026"


# durations


def test_both_ends_come_from_one_clock_where_one_saw_both() -> None:
    start, end = Stamp(10.0, 110.2), Stamp(15.0, 113.7)
    assert between(start, end) == (pytest.approx(3.5), Source.WATCH, False)
    assert between(start, end, "api") == (5.0, Source.API, False)
    assert between(Stamp(watch_s=9.5), Stamp(api_s=12.0)) == (2.5, Source.MIXED, False)
    assert between(Stamp(), end) is None


@pytest.mark.parametrize(("back", "value", "clipped"), [(0.4, 0.0, True), (1.5, -1.5, False)])
def test_a_little_below_zero_is_zero_and_counted(back: float, value: float, clipped: bool) -> None:
    found = between(Stamp(watch_s=100.0), Stamp(watch_s=100.0 - back))
    assert found is not None and found[0] == pytest.approx(value) and found.clipped is clipped


def test_missing_values_are_counted_and_are_no_zero() -> None:
    whole, half = workload("j-1"), workload("j-2")
    del half.pods["j-2-0"].stamps["ready"]
    found = of(whole, half).step("ready")
    assert found is not None
    assert (found.spread.count, found.missing, found.values[1]) == (1, 1, None)


# defects of the whole


def test_defect_01_every_heading_stands_over_its_own_values() -> None:
    found = of(workload("j-1", evicted=7.5), workload("j-2", submitted=10.0))
    rows = list(csv.DictReader(io.StringIO(csvs.table(found, "p", "watch"))))
    assert all(None not in row and None not in row.values() for row in rows)
    first = rows[0]
    assert first["Job Name"] == "j-1"
    assert first["Workload Submitted"] == "2026-09-21T14:13:20.000000+00:00"
    assert float(first["Last Pod Creation"]) == 1.0
    assert float(first["First Eviction"]) == pytest.approx(5.5)
    assert float(first["Total Ready"]) == 6.0
    assert rows[1]["First Eviction"] == ""
    assert len(set(first)) == len(first)


@pytest.mark.parametrize("name", [*kinds.KINDS, *kinds.ALIASES])
def test_defect_02_every_type_has_a_template_that_works(name: str) -> None:
    kind = kinds.find(name)
    made = plan(kind=name, workers=3, template=text_of(kind.template, None))
    body = Workloads(made.template, made.values(), made.run).make("j-1")
    assert body["metadata"]["name"] == "j-1"
    assert body["metadata"]["labels"]["scaletest/workload"] == "j-1"
    assert "${" not in json.dumps(body)


def plan(**more: Any) -> LifecyclePlan:
    return LifecyclePlan(**{"run": "0a1b2c", "kind": "job", "namespace": "n", "count": 10, **more})


@pytest.mark.parametrize("count", [0, -1])
def test_defect_03_a_number_of_workloads_is_asked_for(count: int) -> None:
    with pytest.raises(InvalidValue, match="the number of workloads"):
        plan(count=count)


@given(st.integers(1, 3000), st.integers(0, 0xFFFFFF))
def test_defect_04_exactly_so_many_names_and_no_two_alike(count: int, run: int) -> None:
    names = list(plan(count=count, run=f"{run:06x}").names())
    assert len(names) == len(set(names)) == count
    assert names == list(plan(count=count, run=f"{run:06x}").names())


@pytest.mark.parametrize("seconds", ["", "abc", "-1", "nan", "1 s", "1;reboot"])
def test_pods_that_could_not_sleep_are_refused(seconds: str) -> None:
    with pytest.raises(InvalidValue, match="pods cannot run for"):
        LifecyclePlan(new_run(), "job", "n", 1, seconds=seconds)
    for good in ("0", "2.5", "30m", "infinity"):
        LifecyclePlan(new_run(), "job", "n", 1, seconds=good)


def test_defect_09_all_series_have_one_order() -> None:
    # given workloads that were submitted in the same second, with values that differ
    rows = [workload(f"j-{index}", submitted=0.0, step=1.0 + index) for index in (3, 1, 2)]
    found = of(*rows)
    assert [one.workload.name for one in found.courses] == ["j-1", "j-2", "j-3"]
    for name in ("created", "scheduled", "ready"):
        step = found.step(name)
        assert step is not None
        assert list(step.values) == sorted(step.values, key=lambda value: value or 0.0)


def test_defect_11_percentiles_and_parts_of_seconds() -> None:
    rows = [workload(f"j-{index:03}", step=0.001 * (index + 1)) for index in range(300)]
    found = of(*rows).step("created")
    assert found is not None and found.spread.p99 is not None and found.spread.p50 is not None
    assert found.spread.p50.value == pytest.approx(0.1505)
    assert found.spread.p99.value == pytest.approx(0.29701)
    # refused ones are seen
    refused = [submission("j-x", False, status=403, reason="exceeded quota")]
    told = result(rows, [*(submission(one.name) for one in rows), *refused], "finished", VIEW)
    assert told.books.rejected == 1
    assert told.books.rejections == {"403 exceeded quota": 1}
    assert told.verdict.kind is VerdictKind.FAIL


def test_defect_12_the_answer_of_the_api_has_a_step_of_its_own() -> None:
    found = of(workload("j-1", accepted=0.02)).step("accepted")
    assert found is not None and found.values[0] == pytest.approx(0.02)


def test_defect_14_a_second_run_in_the_folder_takes_nothing_away(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given a folder in which a submit was interrupted after two of five
    made = plan(count=5, processes=2, api_version="batch/v1", object_kind="Job", template=text_of("job", None))
    store, tool = Store(tmp_path), Stopping(2)
    store.begin(made, [])
    Submitter(made, store, tool, lambda: BEGAN, fresh=True, stop=tool.stop).run()
    assert [row["jobName"] for row in json.loads((tmp_path / "submitted.json").read_text())] == tool.names
    # then the next one goes on, and the one after that has nothing to do
    for expected in (5, 5):
        Submitter(made, store, tool, lambda: BEGAN + 9).run()
        assert tool.names == list(made.names())[:expected]
        rows = json.loads((tmp_path / "submitted.json").read_text())
        assert [row["jobName"] for row in rows] == tool.names
    # a dry run submits nothing, and another run is refused the folder
    words = ["lifecycle", "submit", "-o", str(tmp_path), "--dry-run"]
    assert run(words) == 0
    assert run([*words, "-n", "6"]) == 2
    assert "another --output-dir for a new run" in capsys.readouterr().err
    # and what was submitted is taken away, by its label
    there = Gone(tool.names)
    assert delete_all(made, there) == 5  # type: ignore[arg-type]
    assert (there.names_left, there.selector) == ([], f"scaletest/run={made.run}")


class Stopping:
    """A tool that accepts everything, and stops the submitter when it has seen so many."""

    def __init__(self, most: int) -> None:
        self.names: list[str] = []
        self.stop, self._most = threading.Event(), most
        self._lock = threading.Lock()

    def submit(self, name: str) -> Answer:
        with self._lock:
            self.names.append(name)
            if len(self.names) == self._most:
                self.stop.set()
        return Answer(True, True, 201, "")


class Gone:
    """Objects of a cluster that can be listed and deleted."""

    def __init__(self, names: list[str]) -> None:
        self.names_left, self.selector = list(names), ""

    def resource(self, api_version: str, kind: str) -> str:
        return kind

    def names(self, found: str, namespace: str, selector: str) -> list[str]:
        self.selector = selector
        return list(self.names_left)

    def delete(self, found: str, namespace: str, names: list[str]) -> None:
        self.names_left = [name for name in self.names_left if name not in names]


def test_every_defect_has_a_test() -> None:
    tests = Path(__file__).parents[1]
    text = Path(__file__).read_text() + (tests / "cluster" / "test_lifecycle.py").read_text()
    assert {int(number) for number in re.findall(r"^def test_defect_(\d\d)_", text, re.M)} == set(range(1, 16))


def test_pods_that_run_and_do_not_end_are_said_to() -> None:
    one, two = workload("j-1"), workload("j-2")
    for row in (one, two):
        row.stamps.pop("finished", None)
        for each in row.pods.values():
            each.stamps.pop("finished", None)
    for each in two.pods.values():
        del each.stamps["ready"]
        each.stamps.pop("started", None)
    found = of(one, two)
    assert (found.books.pending, found.books.running) == (2, 1)
    assert "2 of 2 have not reached finished (the pods of 1 run)" in found.verdict.reason
    assert "--run-seconds" in found.verdict.remedy
    # and during the run, once
    now = [0.0]
    teller = Teller(lambda: now[0])
    stuck = LifecycleProgress(2, 2, 0, {Fate.PENDING: 2}, 2, 2)
    told = []
    for at_s in (1.0, 60.0, 130.0, 200.0):
        now[0] = at_s
        teller.tell(stuck)
        told.append(teller.hinted)
    assert told == [False, False, True, True]


def test_defect_15_a_claim_touches_nothing_but_the_pods() -> None:
    text = text_of("job", None).replace("backoffLimit: 0", "backoffLimit: 0\n  # status:\n  suspend: false")
    text = text.replace("  name: ${name}", '  name: ${name}\n  annotations: {note: "status: here"}')
    made = Workloads(text, plan().values(), "r", Extras(pvc=True, storage_class="fast", claim_template="gpu"))
    body = made.make("j-1")
    assert body["metadata"]["annotations"] == {"note": "status: here"}
    assert body["spec"]["suspend"] is False
    spec = body["spec"]["template"]["spec"]
    volume = spec["volumes"][0]["ephemeral"]["volumeClaimTemplate"]
    assert volume["spec"]["storageClassName"] == "fast"
    assert volume["metadata"]["labels"]["scaletest/workload"] == "j-1"
    assert spec["containers"][0]["volumeMounts"][0]["mountPath"] == "/path-new"
    assert spec["resourceClaims"] == [{"name": "device", "resourceClaimTemplateName": "gpu"}]


# templates


def test_any_yaml_passes_through_and_gets_our_labels() -> None:
    text = """
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: theirs, labels: {team: a}}
spec:
  queue: gold
  tasks:
    - name: worker
      replicas: ${workers}
      note: "${workers}"
      template: {spec: {containers: [{name: c, command: ["echo", "$${HOME} ${gpus}"]}]}}
"""
    body = Workloads(text, plan(workers=4).values(), "r").make("j-1")
    assert body["metadata"]["labels"] == {"team": "a", "scaletest/run": "r", "scaletest/workload": "j-1"}
    task = body["spec"]["tasks"][0]
    assert (body["spec"]["queue"], task["replicas"], task["note"]) == ("gold", 4, "4")
    assert task["template"]["spec"]["containers"][0]["command"] == ["echo", "${HOME} 1"]
    assert task["template"]["metadata"]["labels"]["scaletest/run"] == "r"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: [", "no YAML"),
        ("- 1", "no Kubernetes object"),
        ("kind: Job", "no Kubernetes object"),
        ("[" * 5000, "nests too deeply"),
        ("kind: A\napiVersion: v1\n---\nkind: B\napiVersion: v1", "2 objects"),
        ("", "0 objects"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: '${nmae}'}]}", "nothing fills"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: '$('}]}\nx: '${'", "nothing fills"),
    ],
)
def test_bad_templates_are_explained(text: str, what: str) -> None:
    with pytest.raises(InvalidValue, match=what):
        Workloads(text, plan().values(), "r")


def test_no_devices_asks_for_no_kind_of_device() -> None:
    body = Workloads(text_of("job", None), plan(gpus="0").values(), "r").make("j-1")
    assert body["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] == {}


@pytest.mark.parametrize(
    ("kind", "workers", "pods"),
    [("indexed-job", 7, 7), ("jobset", 7, 7), ("pytorchjob", 7, 8), ("deployment", 3, 3), ("runai-distributed", 7, 8)],
)
def test_the_pods_of_a_gang_are_known(kind: str, workers: int, pods: int) -> None:
    made = plan(workers=workers)
    body = Workloads(text_of(kinds.KINDS[kind].template, None), made.values(), "r").make("j")
    assert kinds.expected(body) == pods


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
                    max_leaves=8))  # fmt: skip
def test_any_object_has_some_number_of_pods(spec: object) -> None:
    for kind in ("Job", "JobSet", "PyTorchJob", "Deployment", "DistributedWorkload"):
        found = kinds.expected({"kind": kind, "spec": spec if isinstance(spec, dict) else {}})
        assert found is None or isinstance(found, int)


# thresholds and verdicts


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ready.mean<1s", VerdictKind.PASS),
        ("ready.mean<10ms", VerdictKind.FAIL),
        ("total_ready.p50<=6.5s", VerdictKind.PASS),
        ("ready.p99<30s", VerdictKind.INVALID),  # too few
        ("pvc_bound.p50<1s", VerdictKind.INVALID),  # nothing measured
        ("failed<=0", VerdictKind.PASS),
        ("rejected<1%", VerdictKind.PASS),
        ("throughput>=0.5/min", VerdictKind.PASS),
    ],
)
def test_thresholds(text: str, kind: VerdictKind) -> None:
    rows = [workload(f"j-{index}", submitted=float(index), step=1.0 if index % 2 else 0.999) for index in range(20)]
    for row in rows:
        row.pods[f"{row.name}-0"].stamps["ready"] = row.pods[f"{row.name}-0"].stamps["scheduled"].merged(Stamp())
        at = row.pods[f"{row.name}-0"].stamps["scheduled"].watch_s or 0.0
        row.pods[f"{row.name}-0"].stamps["ready"] = Stamp(watch_s=at + 0.5)
    found = of(*rows, thresholds=[text])
    assert found.thresholds[0].kind is kind, found.thresholds[0]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ready.p99", "cannot be read"), ("redy.p99<1s", "not measured"), ("ready.p98<1s", "asks for p98"),
        ("ready<1s", "asks for nothing"), ("failed<1s", "unit s"), ("throughput>1%", "unit %"),
        ("x" * 300, "cannot be read"),
    ],
)  # fmt: skip
def test_bad_thresholds_are_explained(text: str, what: str) -> None:
    with pytest.raises(InvalidValue, match=what):
        judge.parse(text)


def test_pending_ones_make_a_run_invalid() -> None:
    half = workload("j-2")
    del half.stamps["finished"]
    found = of(workload("j-1"), half)
    assert found.verdict.kind is VerdictKind.INVALID
    assert "1 of 2 have not reached finished" in found.verdict.reason


def test_head_and_tail_and_errors() -> None:
    rows = [workload(f"j-{index}", submitted=float(index)) for index in range(6)]
    rows[2].mark("pod_group_created", Stamp(watch_s=BEGAN - 100))  # older than its pod: the pod was replaced

    def shown(view: WorkloadSelection) -> list[str]:
        return [one.workload.name for one in of(*rows, view=view).courses]

    assert shown(WorkloadSelection()) == ["j-0", "j-1", "j-3", "j-4", "j-5"]
    assert shown(WorkloadSelection(skip_errors=False)) == [f"j-{index}" for index in range(6)]
    assert shown(WorkloadSelection(skip_errors=False, head=4, tail=2)) == ["j-2", "j-3"]
    # the books are of all, whatever is shown
    assert of(*rows, view=WorkloadSelection(head=1)).books.measured == 6


# figures


def test_rows_are_steps_with_averages_and_percentiles() -> None:
    rows = [workload(f"j-{index}", submitted=float(index), step=1.0 + index / 100) for index in range(30)]
    found = of(*rows)
    assert [one.step.step.name for one in panels(found, GENERAL)] == ["total_decided", "total_ready", "total_finished"]
    first = panels(found, DETAILED)[0]
    assert "time between submission and workload creation" in first.title
    for part in ("average 1.1", "p50 1.1", "p95 n/a", "p99 n/a"):
        assert part in first.shares
    # with values enough, all of them
    many = of(*(workload(f"j-{index}", submitted=float(index), step=1.0 + index / 1000) for index in range(300)))
    assert "p95 1.28" in panels(many, DETAILED)[0].shares and "p99 1.3" in panels(many, DETAILED)[0].shares
    assert sum(first.counts) == 30
    left, right = charts(first)
    assert "<path" in str(left.svg()) and str(right.svg()).count("<rect") > 20


def test_thinned_lines_keep_the_extremes() -> None:
    chance = random.Random(1)
    points = [(float(index), chance.random()) for index in range(20_000)]
    kept = thinned(points)
    assert len(kept) <= 2000
    assert max(points, key=lambda p: p[1]) in kept and min(points, key=lambda p: p[1]) in kept
    assert kept == sorted(kept) and set(kept) <= set(points)


# files


def test_records_come_back_as_they_were() -> None:
    tracker = Tracker({"j"})
    tracker.see(seen("workload", "ADDED", job("j", done=9.0), 0.25))
    tracker.see(seen("pod", "MODIFIED", pod("p", "j", scheduled=1, started=2, finished=3), 3.5))
    found: dict[str, Workload] = {}
    for line in tracker.workloads["j"].lines():
        read_line(line, found)
    assert found == tracker.workloads


@given(st.text(max_size=60) | st.sampled_from(['{"record":"pod","workload":"x"}', '{"stamps":{"a":1}}', "[]", "{}"]))
def test_foreign_records_are_refused_cleanly(line: str) -> None:
    for read_one in (lambda: read_line(line, {}), lambda: Submission.from_json(line)):
        with pytest.raises(InvalidValue):
            read_one()


def test_the_originals_files_are_read_and_written() -> None:
    one = workload("j-00aa11")
    one.stamps = {"created": Stamp(BEGAN + 1, BEGAN + 1.2), "submitted": Stamp(watch_s=BEGAN)}
    text = classic.sampled([one], "p")
    row = json.loads(text)[0]
    assert list(row) == ["jobName", "jobNamespace", "projectName", *classic.FIELDS]
    assert row["workloadCreatedTimestamp"] == "2026-09-21T14:13:21.000000+00:00"
    assert row["backendJobCreatedTimestamp"] == row["workloadCreatedTimestamp"]
    back = classic.read_sampled(text)[0]
    assert back.stamps["created"] == Stamp(api_s=BEGAN + 1)
    # a time that only repeats another one is no time of its own
    assert "evicted" not in back.stamps and "backend_job_created" not in back.stamps
    written = classic.submitted([submission("j-00aa11"), submission("j-2", False)])
    assert list(json.loads(written)[0]) == ["jobName", "projectName", "jobNamespace", "submitTimestamp"]
    assert classic.read_submitted(written) == [submission("j-00aa11")]


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '[{"jobName": 3}]', '[{"jobName": "a"}]'])
def test_foreign_files_of_the_original_are_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        classic.read_submitted(text)


def test_backend_times_are_read(tmp_path: Path) -> None:
    path = tmp_path / "times.csv"
    path.write_text("jobName,time_created\nj-1,1790000000123\n")
    assert read(path) == {"j-1": 1790000000.123}
    path.write_text("name,when\nj-1,3\n")
    with pytest.raises(UsageError, match="backend times"):
        read(path)


def test_plans_come_back_as_they_were() -> None:
    made = plan(interval_s=2, gpus="0.5", pvc=True)
    assert LifecyclePlan.from_dict(json.loads(json.dumps(made.to_dict()))) == made
    assert len(new_run()) == 6


# comparison


def test_a_slower_step_is_found_and_noise_is_not() -> None:
    chance = random.Random(3)

    def run(slower: float) -> LifecycleResult:
        rows = [workload(f"j-{index:03}", step=1.0 + 0.2 * chance.random()) for index in range(100)]
        for row in rows:
            each = row.pods[f"{row.name}-0"]
            each.stamps["ready"] = Stamp(watch_s=(each.stamps["scheduled"].watch_s or 0) + 2 + slower)
        return of(*rows)

    base = run(0.0)
    assert compare(base, run(0.0), 0.1).verdict.kind is VerdictKind.PASS
    found = compare(base, run(1.0), 0.1)
    assert found.verdict.kind is VerdictKind.FAIL
    assert {one.name for one in found.steps if one.change == "slower"} == {"ready", "pod_ready", "total_ready"}


def test_every_step_has_words() -> None:
    from scaletest.analysis.lifecycle.phases import MILESTONE_TEXTS, since_text

    for step in PHASES:
        assert {step.event, *step.references} <= set(MILESTONE_TEXTS)
        assert since_text(step, step.references[0]).startswith("the pod's ") == step.of_pods


def test_a_folder_of_the_original_tool_is_plotted_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # given nothing but its two files, one workload of which the other has no record
    names = [f"j-00000{index}" for index in range(5)]
    rows = [workload(name, submitted=float(index)) for index, name in enumerate(names)]
    (tmp_path / "submitted.json").write_text(classic.submitted([submission(name) for name in names]))
    (tmp_path / "sampled.json").write_text(classic.sampled(rows[:4], "p"))
    assert run(["lifecycle", "plot", "-o", str(tmp_path), "--plot", "detailed", "--tail", "3"]) == 0
    assert len(list(csv.DictReader((tmp_path / "times.csv").read_text().splitlines()))) == 3
    assert (tmp_path / "detailed.png").exists()
    capsys.readouterr()
    assert run(["lifecycle", "report", "--output-dir", str(tmp_path), "-t", "json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert (found["books"]["measured"], found["books"]["pending"]) == (4, 1)


@pytest.mark.parametrize("form", ["text", "html", "csv", "junit"])
def test_every_form_of_a_report(tmp_path: Path, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "submitted.json").write_text(classic.submitted([submission("j-000001")]))
    (tmp_path / "sampled.json").write_text(classic.sampled([workload("j-000001")], "<script>"))
    assert run(["lifecycle", "report", "--output-dir", str(tmp_path), "-t", form, "-o", str(tmp_path / "out")]) == 0
    text = (tmp_path / "out").read_text()
    assert "decided" in text or "Decision" in text or "verdict" in text
    assert "<script>" not in text or form == "csv"
    if form == "html":
        assert "http" not in text.replace("http-equiv", "").replace("www.w3.org", "")


def test_a_run_that_ends_while_it_is_read_has_no_verdict_yet(tmp_path: Path) -> None:
    # given a folder in which somebody samples
    (tmp_path / "submitted.json").write_text(classic.submitted([submission("j-000001")]))
    (tmp_path / "sampled.json").write_text(classic.sampled([workload("j-000001")], "p"))
    store, sampling = Store(tmp_path), ExitStack()
    sampling.enter_context(store.locked("sampler"))

    def read_slowly() -> LifecycleResult:
        partial = result_of(store, {})
        sampling.close()
        return partial

    # when that ends after the files were read, expect no verdict, and one when they are read again
    assert stored.lifecycle(tmp_path, read_slowly).verdict.kind is VerdictKind.RUNNING
    assert stored.lifecycle(tmp_path, read_slowly).verdict.kind is VerdictKind.PASS


def test_no_run_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["lifecycle", "report", "--output-dir", str(tmp_path)]) == 2
    assert "holds no lifecycle run" in capsys.readouterr().err


def test_a_dry_run_prints_the_object_and_needs_no_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    words = ["lifecycle", "submit", "-t", "scaledjob", "-n", "1", "--dry-run", "-o", str(tmp_path / "out")]
    assert run(words) == 0
    body = yaml.safe_load(capsys.readouterr().out)
    assert body["spec"]["maxReplicaCount"] == 1
    assert body["spec"]["triggers"][0]["metadata"]["desiredReplicas"] == "1"
    assert not (tmp_path / "out").exists()


def test_who_waits_for_the_end_of_what_has_none_is_warned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["lifecycle", "submit", "-n", "1", "--dry-run", "-o", str(tmp_path), "--run-seconds"]
    for more, warned in ((["infinity"], True), (["infinity", "--until", "ready"], False), (["60"], False)):
        assert run([*words, *more]) == 0
        assert ("never finish" in capsys.readouterr().err) == warned


def test_options_that_would_be_ignored_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Store(tmp_path).begin(
        plan(count=5, workers=3, api_version="batch/v1", object_kind="Job", template=text_of("job", None)), []
    )
    words = ["lifecycle", "submit", "-o", str(tmp_path), "--dry-run"]
    assert run([*words, "--num-workers", "3", "-t", "training", "-p", "2"]) == 0
    assert run([*words, "--num-workers", "4"]) == 2
    assert "num workers 3, not 4" in capsys.readouterr().err
