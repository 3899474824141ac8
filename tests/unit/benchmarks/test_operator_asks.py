"""What the operator asks of the API server, and what it says to who asks too much: load, refusals,
late changes.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.objects import manifests, pod_status
from scaletest.benchmarks.objects.config_maps import load_result
from scaletest.benchmarks.operator import benchmark_reconciler, queueing
from scaletest.cluster.resources import EVENTS
from tests.unit.fake_cluster import (
    IPERF,
    FakeCluster,
    asked,
    cluster_with,
    look,
    look_at_set,
    settings,
    until_ended,
    until_set_ended,
)

DENIED = (
    'Error creating: pods "one-server-0-x" is forbidden: violates PodSecurity "restricted:latest":'
    " hostNetwork"
)


def requests_of_a_set(count: int) -> int:
    """Everything that is asked for while a set of so many is measured."""
    cluster = cluster_with(
        "set", "BenchmarkSet", template={"kind": "IPerf", "spec": {}}, repetitions=count
    )
    state = until_set_ended(cluster, settings(cluster))
    assert (state["succeeded"], state["count"]) == (count, count)
    return cluster.requests


def test_16_the_requests_of_a_set_grow_with_it_and_not_with_its_square() -> None:
    few, many = requests_of_a_set(20), requests_of_a_set(100)
    assert many / 100 < 1.02 * few / 20


def test_16_only_the_oldest_waiting_benchmark_asks_for_the_lock() -> None:
    # given one that measures, and three hundred that have been told to wait
    cluster = cluster_with("first", ready=False)
    look(cluster, "first")
    names = [f"b-{number}" for number in range(300)]
    for number, name in enumerate(names):
        cluster.now += 1
        asked(cluster, name)
        assert look(cluster, name)["message"] == benchmark_reconciler.WAITING, number
    # when each of them is looked at in the same second, and the second after
    now = 0.0
    everyone = [cluster.objects["iperfs", name] for name in reversed(names)]
    turns = queueing.Turns(lambda: now)

    def who() -> list[str]:
        places = [place for document in everyone if (place := queueing.turn_of(document))]
        return [
            document["metadata"]["name"]
            for document in everyone
            if not turns.must_wait(document, lambda: places)
        ]

    # expect the oldest alone to ask
    assert who() == ["b-0"]
    del cluster.objects["iperfs", "b-0"]
    everyone.pop()
    now += queueing.RECONCILE_EVERY_S
    assert who() == ["b-1"]
    # and the status of none is written again because somebody else measures
    before = cluster.objects["iperfs", "b-1"]["metadata"]["resourceVersion"]
    until_ready(cluster)
    look(cluster, "b-2")
    look(cluster, "b-1")
    assert cluster.objects["iperfs", "b-1"]["metadata"]["resourceVersion"] == before


def until_ready(cluster: FakeCluster) -> None:
    cluster.ready = True
    cluster.objects["pods", "first-server-0"]["status"]["conditions"] = [
        {"type": "Ready", "status": "True"}
    ]
    assert until_ended(cluster, "first")["phase"] == "Completed"


def test_a_paused_benchmark_is_not_reconciled_until_it_goes_on() -> None:
    cluster = cluster_with(paused=True)
    assert look(cluster)["message"] == benchmark_reconciler.PAUSED
    document = cluster.objects["iperfs", "one"]
    assert queueing.is_paused(document)
    assert not queueing.is_paused({**document, "spec": {"paused": False}})


@pytest.mark.parametrize(
    ("message", "fails_after"),
    [
        (DENIED, pod_status.REFUSED_S),
        ('pods "x" is forbidden: exceeded quota: few', pod_status.QUOTA_S),
    ],
)
def test_pods_refused_by_admission_fail_the_benchmark_with_its_message(
    message: str, fails_after: float
) -> None:
    # given a Job whose pods may not be made
    cluster = FakeCluster()
    cluster.runs = False
    asked(cluster)
    look(cluster)
    job = cluster.objects["jobs", "one-server"]
    for number, text in enumerate(("an older word", message)):
        event = {
            "metadata": {"name": f"e{number}"},
            "involvedObject": {"uid": job["metadata"]["uid"]},
        }
        cluster.put(
            EVENTS, {**event, "message": text, "lastTimestamp": f"2026-01-01T00:00:0{number}Z"}
        )
    # expect its words at once, and the end as soon as trying again is no use
    state = look(cluster)
    assert (state["phase"], state["message"]) == ("Preparing", message)
    cluster.now += fails_after + 1
    state = until_ended(cluster)
    assert (state["phase"], state["failure"], state["message"]) == ("Failed", "refused", message)
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases", "events"}


def test_a_passing_error_of_admission_is_waited_for() -> None:
    assert not pod_status.is_final_denial(
        "Error creating: failed calling webhook: connection refused", 1e6
    )


@pytest.mark.parametrize("name", ["a" * 41, "with.dots", "9lives"])
def test_a_benchmark_with_an_invalid_name_is_refused_and_can_be_deleted(name: str) -> None:
    # given one that came past admission, as under an older definition, while another measures
    cluster = cluster_with()
    look(cluster)
    asked(cluster, name)
    # expect it refused by the first look, and nothing asked for by that name when it goes
    state = look(cluster, name)
    assert (state["phase"], state["failure"]) == ("Failed", "refused") and "40 characters" in state[
        "remedy"
    ]
    cluster.list = lambda *_: pytest.fail("a label cannot have that value")  # type: ignore[method-assign, assignment]
    benchmark_reconciler.clean_up(IPERF, cluster, "ns", cluster.objects["iperfs", name])


def change(cluster: FakeCluster, plural: str, name: str, **spec: Any) -> None:
    document = cluster.objects[plural, name]
    document["spec"] |= spec


def test_a_benchmark_that_was_begun_is_measured_as_it_was() -> None:
    # given one that is being prepared
    cluster = cluster_with(ready=False, streams=2)
    look(cluster)
    # when its spec is changed
    change(cluster, "iperfs", "one", streams=7)
    look(cluster)
    # expect what was asked for first to be measured
    cluster.objects["pods", "one-server-0"]["status"]["conditions"] = [
        {"type": "Ready", "status": "True"}
    ]
    data = cluster.objects["configmaps", "one-peers"]["data"]
    assert json.loads(data[manifests.DOCUMENT])["spec"] == {"streams": 2}
    state = until_ended(cluster)
    assert state["phase"] == "Completed"


def test_a_set_changed_after_its_plan_is_measured_as_it_was() -> None:
    # given a set with a plan, which starts nothing while it is paused
    template = {"kind": "IPerf", "spec": {}}
    cluster = cluster_with("set", "BenchmarkSet", template=template, repetitions=2, paused=True)
    assert look_at_set(cluster)["phase"] == "Paused"
    assert ("iperfs", "set-1") not in cluster.objects
    # when it goes on, and more is asked for
    change(cluster, "benchmarksets", "set", paused=False)
    look_at_set(cluster)
    change(cluster, "benchmarksets", "set", repetitions=3)
    state = look_at_set(cluster)
    assert ("iperfs", "set-1") in cluster.objects and state["count"] == 2


def test_19_every_result_says_on_what_it_was_measured() -> None:
    cluster = cluster_with()
    assert until_ended(cluster)["phase"] == "Completed"
    measured = load_result(
        cluster, "ns", "one", cluster.objects["iperfs", "one"]["metadata"]["uid"]
    )
    assert measured.environment["kubernetes"] == "v1.37.1"
    assert measured.environment["nodes"] == {"one-server-0": "n0", "one-client-0": "n0"}
    assert measured.environment["images"] == {
        "one-server-0": "sha256:abc",
        "one-client-0": "sha256:abc",
    }


def test_20_only_core_kubernetes_objects_are_created_and_no_priority_is_set() -> None:
    cluster = cluster_with(
        "set", "BenchmarkSet", template={"kind": "IPerf", "spec": {}}, repetitions=2
    )
    until_set_ended(cluster)
    assert {change.partition("/")[0] for change in cluster.made} == {
        "iperfs",
        "configmaps",
        "jobs",
        "leases",
    }
    iperf = benchmark.read_benchmark({"kind": "IPerf"})
    text = json.dumps(manifests.job(iperf, "server", {"uid": "u"}, "image"))
    assert "schedulerName" not in text and "priorityClassName" not in text and "volcano" not in text


@pytest.mark.parametrize("pull_policy", [None, "Always"])
@pytest.mark.parametrize("scheduler", ["", "mine"])
def test_pods_are_as_the_operator_was_told_where_the_spec_says_nothing(
    pull_policy: str | None, scheduler: str
) -> None:
    cluster = cluster_with()
    fields = {"image_pull_policy": pull_policy, "scheduler_name": scheduler}
    told = replace(settings(cluster), pod_fields=fields)
    for _ in range(9):
        benchmark_reconciler.reconcile(IPERF, cluster, "ns", "one", told)
        if job := cluster.objects.get(("jobs", "one-client")):
            pod = job["spec"]["template"]["spec"]
    assert pod["containers"][0]["imagePullPolicy"] == (pull_policy or "IfNotPresent")
    assert pod.get("schedulerName", "") == scheduler
    assert cluster.objects["iperfs", "one"]["status"]["phase"] == "Completed"
