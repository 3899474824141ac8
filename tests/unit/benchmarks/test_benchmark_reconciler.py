"""The operator on an API server in memory, which can end the operator at any request."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, benchmark, frame_result
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.objects.config_maps import load_result
from scaletest.benchmarks.objects.reconcile import Observation
from scaletest.benchmarks.operator import set_status, status
from scaletest.cluster.api_calls import Busy
from scaletest.cluster.objects import Document
from scaletest.cluster.resources import CONFIG_MAPS, JOBS, LEASES, Resource
from scaletest.model.errors import ScaletestError, Unreachable
from tests.unit.fake_cluster import (
    FakeCluster,
    Killed,
    asked,
    cluster_with,
    look,
    requests_of_a_whole_run,
    until_ended,
    until_set_ended,
)


@pytest.mark.parametrize("fatal", range(1, requests_of_a_whole_run() + 1))
def test_killed_after_any_request_a_benchmark_is_measured_exactly_once(fatal: int) -> None:
    # given an operator that dies after that request
    cluster = cluster_with()
    cluster.fatal = fatal
    with pytest.raises(Killed):
        until_ended(cluster)
    # when another goes on
    state = until_ended(cluster)
    # expect one measurement, its result kept, everything else gone, and the lock free for the next
    # one
    assert (state["phase"], state["summary"]) == ("Completed", "5.000 Gbit/s")
    assert cluster.made.count("jobs/one-client") == cluster.made.count("configmaps/one-result") == 1
    uid = cluster.objects["iperfs", "one"]["metadata"]["uid"]
    measured = load_result(cluster, "ns", "one", uid)
    assert measured is not None and measured.result == {"some": 1}
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases"}
    asked(cluster, "two")
    assert until_ended(cluster, "two")["phase"] == "Completed"


def test_a_set_killed_after_any_request_makes_each_benchmark_once() -> None:
    spec = {
        "template": {"kind": "IPerf", "spec": {}},
        "permutations": {"product": {"streams": [1, 2]}},
    }

    for fatal in range(1, 400):
        cluster = cluster_with("set", "BenchmarkSet", **spec)
        cluster.fatal = fatal
        try:
            until_set_ended(cluster)
            break
        except Killed:
            until_set_ended(cluster)
        counted = [
            change
            for change in cluster.made
            if change.endswith("-client") or change.startswith("iperfs")
        ]
        assert sorted(counted) == [
            "iperfs/set-1",
            "iperfs/set-2",
            "jobs/set-1-client",
            "jobs/set-2-client",
        ], fatal
        state = cluster.objects["benchmarksets", "set"]["status"]
        assert (state["phase"], state["succeeded"], state["count"]) == ("Completed", 2, 2)
    assert fatal > 50


def test_5_a_pod_with_nonsense_output_fails_the_benchmark_with_its_lines() -> None:
    cluster = cluster_with()
    while ("jobs", "one-client") not in cluster.objects:
        look(cluster)
    cluster.logs["one-client-0"] = "iperf3: error - what?\n"
    cluster.objects["pods", "one-client-0"]["status"]["phase"] = "Failed"
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "exit")
    assert "iperf3: error - what?" in state["lines"]


def test_the_failure_that_a_server_reports_is_that_of_the_benchmark() -> None:
    cluster = cluster_with(ready=False)
    look(cluster)
    cluster.logs["one-server-0"] = frame_result(
        BenchmarkResult(
            "one",
            BenchmarkPhase.FAILED,
            failure=Failure.NO_DEVICE,
            message="no RDMA device",
            lines=("rdma_cm: none",),
        )
    )
    cluster.objects["pods", "one-server-0"]["status"]["phase"] = "Failed"
    state = until_ended(cluster)
    assert (state["failure"], state["lines"]) == ("no_device", ["rdma_cm: none"])
    assert "no RDMA device" in state["message"]


def test_6_a_phase_never_goes_back() -> None:
    cluster = cluster_with()
    done = until_ended(cluster)
    before = cluster.requests
    # when looked at again, whatever its objects are
    assert look(cluster) == done
    assert cluster.requests == before + 1
    iperf = benchmark.read_benchmark(cluster.objects["iperfs", "one"] | {"status": {}})
    observation = Observation(BenchmarkPhase.PREPARING)
    assert status.status_of(iperf, observation, {"phase": "Running"}, 0.0)["phase"] == "Running"


def test_13_peers_have_addresses_of_the_family_and_the_network_that_were_asked_for() -> None:
    networks = [
        {"name": "cni", "ips": ["10.1.0.1"], "default": True},
        {"name": "fast/ib", "ips": ["10.9.0.7", "fd09::7"]},
    ]
    for spec, expected in (
        ({}, "10.1.0.1"),
        ({"ipFamily": "IPv6"}, "fd00::1"),
        ({"networkName": "fast/ib"}, "10.9.0.7"),
        ({"networkName": "fast/ib", "ipFamily": "IPv6"}, "fd09::7"),
    ):
        cluster = FakeCluster()
        cluster.annotations = {manifests.MULTUS_STATUS: json.dumps(networks)}
        asked(cluster, **spec)
        while manifests.MEASURING not in cluster.objects.get(("configmaps", "one-peers"), {}).get(
            "data", {}
        ):
            look(cluster)
        data = cluster.objects["configmaps", "one-peers"]["data"]
        assert [peer["address"] for peer in json.loads(data[manifests.PEERS])] == [expected]
        assert f"{expected} one-server-0\n" in data[manifests.HOSTS]


@pytest.mark.parametrize(
    ("network", "annotation", "fits"),
    [
        (
            {"interface": "net1", "address": "198.18.7.2"},
            [{"name": "default/fast", "ips": ["198.18.7.2"]}],
            True,
        ),
        (
            {"interface": "eth0", "address": "10.1.0.1"},
            [{"name": "default/fast", "ips": ["198.18.7.2"]}],
            False,
        ),
        ({}, [{"name": "default/fast", "ips": ["198.18.7.2"]}], False),
        ({"interface": "net1", "address": "198.18.7.2"}, "no list", False),
    ],
)
def test_a_peer_that_was_reached_from_elsewhere_is_a_mismatch(
    network: dict[str, str], annotation: object, fits: bool
) -> None:
    cluster = FakeCluster()
    cluster.annotations = {
        manifests.MULTUS_STATUS: json.dumps([{"name": "default/fast", "ips": ["198.18.7.1"]}])
    }
    asked(cluster, networkName="default/fast")
    while "one-client-0" not in cluster.logs:
        look(cluster)
    cluster.objects["pods", "one-client-0"]["metadata"]["annotations"][manifests.MULTUS_STATUS] = (
        json.dumps(annotation)
    )
    cluster.logs["one-client-0"] = frame_result(
        BenchmarkResult(
            "one",
            BenchmarkPhase.COMPLETED,
            {"bandwidth": 5e9},
            network=network,
            started_s=1.0,
            finished_s=2.0,
        )
    )
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == (
        ("Completed", "") if fits else ("Failed", "mismatch")
    )


@pytest.mark.parametrize(
    ("client_node", "spec", "noted"),
    [
        ("n0", {}, True),
        ("n1", {}, False),
        ("n0", {"placement": "sameNode"}, False),
        ("n0", {"nodes": ["n0", "n0"]}, False),
    ],
)
def test_parts_that_shared_a_node_by_chance_are_no_silent_loopback(
    client_node: str, spec: dict[str, Any], noted: bool
) -> None:
    cluster = cluster_with(**spec)
    while ("pods", "one-client-0") not in cluster.objects:
        look(cluster)
    cluster.objects["pods", "one-client-0"]["spec"]["nodeName"] = client_node
    state = until_ended(cluster)
    assert state["phase"] == "Completed"
    assert ("on 1 node instead of 2" in state["message"]) == noted
    result = load_result(cluster, "ns", "one", cluster.objects["iperfs", "one"]["metadata"]["uid"])  # type: ignore[arg-type]
    assert result is not None and bool(result.notes) == noted


def test_a_result_that_a_busy_api_server_did_not_store_is_stored_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given a benchmark that was measured while no operator ran, until its time was over
    cluster = cluster_with()
    while "one-client-0" not in cluster.logs:
        look(cluster)
    cluster.now += 100_000
    create = cluster.create

    def busy(resource: Resource, namespace: str, body: Document) -> Document | None:
        if body["metadata"]["name"] == "one-result":
            monkeypatch.setattr(cluster, "create", create)
            raise Busy("cannot create configmaps: 503", hint="try again")
        return create(resource, namespace, body)

    # when the API server is busy as the result is stored
    monkeypatch.setattr(cluster, "create", busy)
    with pytest.raises(Busy):
        look(cluster)
    # expect what was measured
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == ("Completed", "")


def test_14_the_client_is_made_when_the_server_is_ready_and_not_before() -> None:
    cluster = cluster_with(ready=False)
    for _ in range(5):
        assert look(cluster)["phase"] == "Preparing"
    assert ("jobs", "one-client") not in cluster.objects
    cluster.objects["pods", "one-server-0"]["status"]["conditions"] = [
        {"type": "Ready", "status": "True"}
    ]
    assert until_ended(cluster)["phase"] == "Completed"


def test_15_a_status_is_bounded() -> None:
    iperf = benchmark.read_benchmark({"kind": "IPerf"})
    pods = tuple(
        {
            "metadata": {"name": "x" * 250, "labels": {manifests.ROLE: "server"}},
            "spec": {"nodeName": "y" * 250},
            "status": {},
        }
        for _ in range(1000)
    )
    why = BenchmarkResult(
        "one",
        BenchmarkPhase.FAILED,
        message="m" * 100_000,
        lines=("l" * 100_000,) * 100,
        network={"peer": "p" * 9000},
    )
    state = status.status_of(iperf, Observation(BenchmarkPhase.FAILED, "", pods, why), {}, 0.0)
    assert len(json.dumps(state)) <= 32 * 1024
    assert len(state["pods"]["server"]) == status.MOST_PODS
    assert len(state["lines"]) == status.MOST_LINES and state["network"] == {}


def test_18_a_set_says_what_was_measured_over_its_repetitions_and_whether_that_is_enough() -> None:
    cluster = cluster_with(
        "set",
        "BenchmarkSet",
        template={"kind": "IPerf", "spec": {"duration": 1}},
        permutations={"product": {"streams": [1, 2]}},
        repetitions=2,
        thresholds=["bandwidth>=6Gbit/s"],
    )
    state = until_set_ended(cluster)
    assert (state["phase"], state["verdict"], state["summary"]) == (
        "Completed",
        "FAIL",
        "5.000 Gbit/s to 5.000 Gbit/s",
    )
    assert "bandwidth>=6Gbit/s" in state["verdictReason"]
    row = state["results"][1]
    assert (row["permutation"], row["succeeded"], row["failed"]) == ("streams 2", 2, 0)
    assert row["headlines"] == {"bandwidth": "5.000 Gbit/s"}
    assert row["values"] == {"bandwidth": 5e9}


@pytest.mark.parametrize(("count", "shown"), [(40, 40), (5000, 0)])
def test_15_the_results_of_a_set_are_bounded(count: int, shown: int) -> None:
    spec = {
        "template": {"kind": "IPerf"},
        "permutations": {"explicit": [{"duration": 1 + n} for n in range(count)]},
    }
    plan, _ = plan_of({"kind": "BenchmarkSet", "metadata": {"name": "s"}, "spec": spec}, list)
    child_status = {"phase": "Completed", "values": {"bandwidth": 1.23456789e9}}
    summary = set_status.measured_so_far(
        plan, {planned.name: {"status": child_status} for planned in plan.benchmarks}, is_over=True
    )
    assert len(json.dumps(summary)) < set_status.RESULTS_BYTES + 1024
    assert [row["values"] for row in summary["results"]] == [{"bandwidth": 1.23456789e9}] * shown
    assert summary["verdict"] == "PASS"


@pytest.mark.parametrize(
    ("spec", "limit_s"), [({}, manifests.START_LIMIT_S), ({"startLimit": 30}, 30)]
)
def test_17_pods_that_do_not_start_in_time_fail_with_what_they_waited_for(
    spec: dict[str, int], limit_s: float
) -> None:
    cluster = cluster_with(ready=False, **spec)
    look(cluster)
    why = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    cluster.objects["pods", "one-server-0"]["status"] = {"phase": "Pending", "conditions": [why]}
    assert "0/3 nodes" in look(cluster)["message"]
    cluster.now += limit_s + 1
    state = until_ended(cluster)
    assert state["failure"] == "timed_out" and "0/3 nodes" in state["message"]


def test_a_missing_right_is_named_and_fails_the_benchmark_after_its_deadline() -> None:
    cluster = cluster_with()

    def forbidden(resource: Resource, namespace: str, body: Document) -> None:
        if resource is JOBS:
            raise Unreachable(
                "Kubernetes does not let us make jobs", hint="give the right to create jobs"
            )

    create = cluster.create
    cluster.create = lambda *arguments: forbidden(*arguments) or create(*arguments)  # type: ignore[method-assign]
    state = look(cluster)
    assert state["phase"] == "Preparing" and "create jobs" in state["message"]
    cluster.now += 10_000
    assert until_ended(cluster)["failure"] == "refused"


def test_objects_of_a_deleted_benchmark_with_this_name_are_waited_for() -> None:
    cluster = FakeCluster()
    foreign = {"name": "one-peers", "ownerReferences": [{"uid": "old"}]}
    cluster.put(CONFIG_MAPS, {"metadata": foreign, "data": {}})
    asked(cluster)
    assert "belongs to something else" in look(cluster)["message"]
    del cluster.objects["configmaps", "one-peers"]
    assert until_ended(cluster)["phase"] == "Completed"


def test_the_lock_of_a_deleted_benchmark_is_taken_over() -> None:
    cluster = FakeCluster()
    cluster.put(
        LEASES,
        {
            "metadata": {"name": "scaletest-benchmarks"},
            "spec": {"holderIdentity": "iperfs/gone/u9"},
        },
    )
    asked(cluster)
    assert until_ended(cluster)["phase"] == "Completed"


# -- two operators in one namespace, by mistake or because nobody reaches the node of one any more
# --------------------------------------------------------------------------------------------------

ORDER = ("Preparing", "Running", "Summarising", "Completed")


class Shared(FakeCluster):
    """A cluster in which the other operator looks `looks` times after a request of the first
    one.
    """

    at = looks = 0

    def _count(self) -> None:
        super()._count()
        if self.requests == self.at:
            for _ in range(self.looks):
                tried(self)


def tried(cluster: FakeCluster) -> Mapping[str, Any]:
    """A look as the handlers have it: what fails is repeated."""
    try:
        return look(cluster)
    except ScaletestError:
        state: Mapping[str, Any] = cluster.objects["iperfs", "one"].get("status", {})
        return state


@pytest.mark.parametrize("looks", [1, 2, 3, 6])
@pytest.mark.parametrize("at", range(1, requests_of_a_whole_run() + 1))
def test_two_operators_bring_one_result_and_leave_no_object(at: int, looks: int) -> None:
    # given an operator that was interrupted between any two requests by all that another one does
    cluster = Shared()
    cluster.at, cluster.looks = at, looks
    asked(cluster)
    phases = [str(tried(cluster).get("phase", "Preparing")) for _ in range(12)]
    # expect its end, which is never taken back, one result, and nothing left
    assert phases[-1] == "Completed" and phases == sorted(phases, key=ORDER.index)
    assert cluster.made.count("configmaps/one-result") == 1
    assert not [key for key in cluster.objects if key[0] in ("jobs", "pods")]
    assert ("configmaps", "one-peers") not in cluster.objects


def test_a_status_that_could_not_be_written_is_written_by_a_later_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given somebody who writes a note on the object when its status is about to be written
    cluster = cluster_with()
    patch, notes = cluster.patch, iter(range(3))

    def noted(
        resource: Resource, namespace: str, name: str, body: Document, part: str = ""
    ) -> Document:
        if part == "status" and (note := next(notes, None)) is not None:
            patch(resource, namespace, name, {"metadata": {"annotations": {"note": str(note)}}})
        return patch(resource, namespace, name, body, part)

    monkeypatch.setattr(cluster, "patch", noted)
    # expect the status written when nobody does
    for _ in range(3):
        assert look(cluster) == {}
    assert until_ended(cluster)["phase"] == "Completed"
    assert cluster.made.count("jobs/one-server") == 1
