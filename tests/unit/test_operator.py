"""The Kubernetes executor and the operator on an API server in memory, which can end the operator
at any request.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Mapping
from typing import Any

import pytest

from scaletest.benchmarks import manifests
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.observation import Observation
from scaletest.benchmarks.operator_executor import RUN, OperatorExecutor
from scaletest.benchmarks.result_store import stored
from scaletest.benchmarks.sweep import merged, plan_of
from scaletest.cluster.documents import CONFIG_MAPS, JOBS, LEASES, PODS, Conflict, Missing, Resource
from scaletest.cluster.rights import Right
from scaletest.kinds import benchmark
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.log_framing import frame
from scaletest.kinds.registry import API_VERSION, KINDS
from scaletest.model.errors import Unreachable
from scaletest.operator import benchmark_reconciler, set_reconciler, set_results, status
from scaletest.operator.benchmark_reconciler import ReconcileSettings, resource

IPERF = KINDS["IPerf"]


class Killed(BaseException):
    """The operator's process is gone."""


def without_nulls(value: Any, inside: bool = False) -> Any:
    """A merge patch as API servers apply it: a null inside a list says nothing, too."""
    if isinstance(value, list):
        return [without_nulls(one, inside=True) for one in value]
    if isinstance(value, dict):
        return {
            key: without_nulls(one, inside)
            for key, one in value.items()
            if one is not None or not inside
        }
    return value


class FakeCluster:
    """Documents by resource and name; Jobs get pods that run. fatal: the request after which the
    operator is dead.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Document] = {}
        self.made: list[str] = []
        self.requests, self.fatal = 0, 0
        self.logs: dict[str, str] = {}
        self.now = 1_000_000.0
        self.annotations: dict[str, str] = {}
        self.ips = ["10.1.0.1", "fd00::1"]
        self.runs = self.ready = True
        self.forbidden: set[str] = set()
        self._uids = itertools.count(1)

    def _count(self) -> None:
        self.requests += 1
        if self.requests == self.fatal:
            raise Killed

    def find(self, what: Resource, namespace: str, name: str) -> Document | None:
        found = copy.deepcopy(self.objects.get((what.plural, name)))
        self._count()
        return found

    def list(
        self, what: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        wanted = dict(one.split("=") for one in labels.split(",") if one)
        rows = [one for (plural, _), one in self.objects.items() if plural == what.plural]
        found = [one for one in rows if wanted.items() <= one["metadata"].get("labels", {}).items()]
        about = dict(one.split("=") for one in fields.split(",") if one)
        if about:
            found = [
                one for one in found if one["involvedObject"]["uid"] == about["involvedObject.uid"]
            ]
        self._count()
        return copy.deepcopy(found)

    def create(self, what: Resource, namespace: str, body: Document) -> Document | None:
        key = (what.plural, body["metadata"]["name"])
        if key in self.objects:
            self._count()
            return None
        made = self.put(what, body)
        self.made.append("/".join(key))
        if what is JOBS and self.runs:
            self._pods(made)
        self._count()
        return copy.deepcopy(made)

    def put(self, what: Resource, body: Document) -> Document:
        made = copy.deepcopy(body)
        made["metadata"] |= {"namespace": "ns", "generation": 1}
        made["metadata"] |= {
            "uid": f"u{next(self._uids)}",
            "creationTimestamp": status.stamp(self.now),
            "resourceVersion": "1",
        }
        self.objects[what.plural, made["metadata"]["name"]] = made
        return made

    def patch(
        self, what: Resource, namespace: str, name: str, body: Document, part: str = ""
    ) -> Document:
        if (what.plural, name) not in self.objects:
            raise Missing(name)
        old = self.objects[what.plural, name]
        version = body.get("metadata", {}).get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict(name)
        new = dict(merged(old, without_nulls(body)))
        new["metadata"] = {
            **new["metadata"],
            "resourceVersion": str(int(old["metadata"]["resourceVersion"]) + 1),
        }
        self.objects[what.plural, name] = new
        self._count()
        return copy.deepcopy(new)

    def delete(self, what: Resource, namespace: str, name: str, uid: str = "") -> None:
        found = self.objects.get((what.plural, name))
        gone = (
            found
            and (not uid or found["metadata"]["uid"] == uid)
            and self.objects.pop((what.plural, name))
        )
        if gone and what is JOBS:
            for key in [key for key, one in self.objects.items() if one.get("job") == name]:
                del self.objects[key]
        self._count()

    def version(self) -> str:
        self._count()
        return "v1.37.1"

    def may(self, namespace: str, home: str, account: str, right: Right) -> bool:
        self._count()
        return str(right) not in self.forbidden

    def log(self, namespace: str, pod: str) -> str | None:
        self._count()
        return self.logs.get(pod)

    def _pods(self, job: Document) -> None:
        template, name = job["spec"]["template"], job["metadata"]["name"]
        for index in range(job["spec"]["completions"]):
            meta = {**template["metadata"], "name": f"{name}-{index}"}
            meta["annotations"] = {
                **meta["annotations"],
                manifests.INDEX: str(index),
                **self.annotations,
            }
            pod = self.put(PODS, {"metadata": meta, "spec": {"nodeName": f"n{index}"}})
            pod["job"] = name
            ready = [{"type": "Ready", "status": str(self.ready)}]
            ips = [{"ip": one} for one in self.ips]
            pod["status"] = {
                "phase": "Running",
                "conditions": ready,
                "podIPs": ips,
                "podIP": self.ips[0],
            }
            pod["status"]["containerStatuses"] = [{"imageID": "sha256:abc"}]
            if meta["labels"][manifests.ROLE] in ("client", "master"):
                label = meta["labels"][manifests.BENCHMARK]
                ended = BenchmarkResult(
                    label,
                    BenchmarkPhase.COMPLETED,
                    {"bandwidth": 5e9},
                    {"some": 1},
                    started_s=1.0,
                    finished_s=2.0,
                )
                self.logs[f"{name}-{index}"] = f"noise\n{frame(ended)}\n"


def asked(cluster: FakeCluster, name: str = "one", kind: str = "IPerf", **spec: Any) -> None:
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    where = set_reconciler.SETS if kind == "BenchmarkSet" else resource(KINDS[kind])
    cluster.put(where, body)


def settings(cluster: FakeCluster) -> ReconcileSettings:
    return ReconcileSettings("image", lambda: cluster.now, lambda *_: None)


def look(cluster: FakeCluster, name: str = "one") -> Mapping[str, Any]:
    benchmark_reconciler.reconcile(IPERF, cluster, "ns", name, settings(cluster))
    found: Mapping[str, Any] = cluster.objects["iperfs", name].get("status", {})
    return found


def look_at_set(cluster: FakeCluster, kept: ReconcileSettings | None = None) -> Mapping[str, Any]:
    """One look, with what the watches would have brought."""
    rows = [one for (plural, _), one in cluster.objects.items() if plural == "iperfs"]

    def children(namespace: str, uid: str) -> list[Document]:
        return [
            said
            for one in rows
            for (_, owner), said in set_reconciler.child(one).items()
            if owner == uid
        ]

    set_reconciler.reconcile(cluster, "ns", "set", kept or settings(cluster), children)
    found: Mapping[str, Any] = cluster.objects["benchmarksets", "set"].get("status", {})
    return found


def until_ended(cluster: FakeCluster, name: str = "one") -> Mapping[str, Any]:
    for _ in range(20):
        found = look(cluster, name)
        if found.get("phase") in ("Completed", "Failed"):
            return found
    raise AssertionError(found)


def requests_of_a_whole_run() -> int:
    cluster = FakeCluster()
    asked(cluster)
    until_ended(cluster)
    return cluster.requests


@pytest.mark.parametrize("fatal", range(1, requests_of_a_whole_run() + 1))
def test_killed_after_any_request_a_benchmark_is_measured_exactly_once(fatal: int) -> None:
    # given an operator that dies after that request
    cluster = FakeCluster()
    asked(cluster)
    cluster.fatal = fatal
    with pytest.raises(Killed):
        until_ended(cluster)
    # when another goes on
    found = until_ended(cluster)
    # expect one measurement, its result kept, everything else gone, and the lock free for the next
    # one
    assert (found["phase"], found["summary"]) == ("Completed", "5.000 Gbit/s")
    assert cluster.made.count("jobs/one-client") == cluster.made.count("configmaps/one-result") == 1
    uid = cluster.objects["iperfs", "one"]["metadata"]["uid"]
    kept = stored(cluster, "ns", "one", uid)
    assert kept is not None and kept.result == {"some": 1}
    left = {plural for plural, _ in cluster.objects}
    assert left == {"iperfs", "configmaps", "leases"}
    asked(cluster, "two")
    assert until_ended(cluster, "two")["phase"] == "Completed"


def test_a_set_killed_after_any_request_makes_each_benchmark_once() -> None:
    spec = {
        "template": {"kind": "IPerf", "spec": {}},
        "permutations": {"product": {"streams": [1, 2]}},
    }

    def turn(cluster: FakeCluster) -> bool:
        look_at_set(cluster)
        for plural, name in list(cluster.objects):
            if plural == "iperfs":
                look(cluster, name)
        return "finishedAt" in cluster.objects["benchmarksets", "set"].get("status", {})

    for fatal in range(1, 400):
        cluster = FakeCluster()
        asked(cluster, "set", "BenchmarkSet", **spec)
        cluster.fatal = fatal
        try:
            assert any(turn(cluster) for _ in range(40))
            break
        except Killed:
            assert any(turn(cluster) for _ in range(40)), fatal
        counted = [
            one for one in cluster.made if one.endswith("-client") or one.startswith("iperfs")
        ]
        assert sorted(counted) == [
            "iperfs/set-1",
            "iperfs/set-2",
            "jobs/set-1-client",
            "jobs/set-2-client",
        ], fatal
        found = cluster.objects["benchmarksets", "set"]["status"]
        assert (found["phase"], found["succeeded"], found["count"]) == ("Completed", 2, 2)
    assert fatal > 50


def test_5_a_measuring_pod_that_ends_with_nonsense_fails_with_its_lines() -> None:
    cluster = FakeCluster()
    asked(cluster)
    while ("jobs", "one-client") not in cluster.objects:
        look(cluster)
    cluster.logs["one-client-0"] = "iperf3: error - what?\n"
    cluster.objects["pods", "one-client-0"]["status"]["phase"] = "Failed"
    found = until_ended(cluster)
    assert (found["phase"], found["failure"]) == ("Failed", "exit")
    assert "iperf3: error - what?" in found["lines"]


def test_what_a_server_says_of_its_failure_is_the_benchmarks() -> None:
    cluster = FakeCluster()
    cluster.ready = False
    asked(cluster)
    look(cluster)
    said = BenchmarkResult(
        "one",
        BenchmarkPhase.FAILED,
        failure=Failure.NO_DEVICE,
        message="no RDMA device",
        lines=("rdma_cm: none",),
    )
    cluster.logs["one-server-0"] = frame(said)
    cluster.objects["pods", "one-server-0"]["status"]["phase"] = "Failed"
    found = until_ended(cluster)
    assert (found["failure"], found["lines"]) == ("no_device", ["rdma_cm: none"])
    assert "no RDMA device" in found["message"]


def test_6_a_phase_never_goes_back() -> None:
    cluster = FakeCluster()
    asked(cluster)
    done = until_ended(cluster)
    before = cluster.requests
    # when looked at again, whatever its objects are
    assert look(cluster) == done
    assert cluster.requests == before + 1
    one = benchmark.read(cluster.objects["iperfs", "one"] | {"status": {}})
    seen = Observation(BenchmarkPhase.PREPARING)
    assert status.of(one, seen, {"phase": "Running"}, 0.0)["phase"] == "Running"


def test_10_an_image_and_a_pull_policy_that_are_given_are_used() -> None:
    one = benchmark.read({"kind": "IPerf", "spec": {"image": "mine", "imagePullPolicy": "Never"}})
    container = pod_of(one, "client")["containers"][0]
    assert (container["image"], container["imagePullPolicy"]) == ("mine", "Never")


def test_11_a_failed_benchmark_keeps_no_objects_and_no_lock() -> None:
    cluster = FakeCluster()
    cluster.runs = False
    asked(cluster)
    look(cluster)
    cluster.now += manifests.START_S + 1
    found = until_ended(cluster)
    assert (found["phase"], found["failure"]) == ("Failed", "timed_out")
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases"}
    assert [name for plural, name in cluster.objects if plural == "configmaps"] == ["one-result"]
    assert cluster.objects["leases", "scaletest-benchmarks"]["spec"]["holderIdentity"] == ""


def test_13_peers_have_addresses_of_the_family_and_the_network_that_were_asked_for() -> None:
    told = [
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
        cluster.annotations = {manifests.MULTUS_STATUS: json.dumps(told)}
        asked(cluster, **spec)
        while manifests.MEASURING not in cluster.objects.get(("configmaps", "one-peers"), {}).get(
            "data", {}
        ):
            look(cluster)
        data = cluster.objects["configmaps", "one-peers"]["data"]
        assert [one["address"] for one in json.loads(data[manifests.PEERS])] == [expected]
        assert f"{expected} one-server-0\n" in data[manifests.HOSTS]


@pytest.mark.parametrize(
    ("network", "said", "fits"),
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
    network: dict[str, str], said: object, fits: bool
) -> None:
    cluster = FakeCluster()
    cluster.annotations = {
        manifests.MULTUS_STATUS: json.dumps([{"name": "default/fast", "ips": ["198.18.7.1"]}])
    }
    asked(cluster, networkName="default/fast")
    while "one-client-0" not in cluster.logs:
        look(cluster)
    cluster.objects["pods", "one-client-0"]["metadata"]["annotations"][manifests.MULTUS_STATUS] = (
        json.dumps(said)
    )
    ended = BenchmarkResult(
        "one",
        BenchmarkPhase.COMPLETED,
        {"bandwidth": 5e9},
        network=network,
        started_s=1.0,
        finished_s=2.0,
    )
    cluster.logs["one-client-0"] = frame(ended)
    found = until_ended(cluster)
    assert (found["phase"], found["failure"]) == (
        ("Completed", "") if fits else ("Failed", "mismatch")
    )


def test_14_the_client_is_made_when_the_server_is_ready_and_not_before() -> None:
    cluster = FakeCluster()
    cluster.ready = False
    asked(cluster)
    for _ in range(5):
        assert look(cluster)["phase"] == "Preparing"
    assert ("jobs", "one-client") not in cluster.objects
    cluster.objects["pods", "one-server-0"]["status"]["conditions"] = [
        {"type": "Ready", "status": "True"}
    ]
    assert until_ended(cluster)["phase"] == "Completed"


def test_15_a_status_is_bounded() -> None:
    one = benchmark.read({"kind": "IPerf"})
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
    found = status.of(one, Observation(BenchmarkPhase.FAILED, "", pods, why), {}, 0.0)
    assert len(json.dumps(found).encode()) <= status.MOST_BYTES
    assert "left out" in found["message"]


def test_18_a_set_says_what_was_measured_over_its_repetitions_and_whether_that_is_enough() -> None:
    cluster = FakeCluster()
    template = {"kind": "IPerf", "spec": {"duration": 1}}
    values = {"product": {"streams": [1, 2]}}
    asked(
        cluster,
        "set",
        "BenchmarkSet",
        template=template,
        permutations=values,
        repetitions=2,
        thresholds=["bandwidth>=6Gbit/s"],
    )
    for _ in range(40):
        look_at_set(cluster)
        for plural, name in list(cluster.objects):
            if plural == "iperfs":
                look(cluster, name)
    found = cluster.objects["benchmarksets", "set"]["status"]
    assert (found["phase"], found["verdict"], found["summary"]) == (
        "Completed",
        "FAIL",
        "5.000 Gbit/s to 5.000 Gbit/s",
    )
    assert "bandwidth>=6Gbit/s" in found["verdictReason"]
    row = found["results"][1]
    assert (row["permutation"], row["succeeded"], row["failed"]) == ("streams 2", 2, 0)
    assert (
        row["headlines"]["bandwidth"]["mean"] == 5e9
        and row["headlines"]["bandwidth"]["half_width"] == 0
    )
    assert len(json.dumps(found)) < status.MOST_BYTES


@pytest.mark.parametrize(("count", "numbers"), [(8, True), (40, False), (5000, None)])
def test_15_the_results_of_a_set_are_bounded(count: int, numbers: bool | None) -> None:
    spec = {
        "template": {"kind": "IPerf"},
        "permutations": {"explicit": [{"duration": 1 + n} for n in range(count)]},
    }
    plan, _ = plan_of({"kind": "BenchmarkSet", "metadata": {"name": "s"}, "spec": spec}, list)
    said = {"phase": "Completed", "values": {"bandwidth": 1.23456789e9}}
    found = set_results.of(plan, {one.name: {"status": said} for one in plan.benchmarks}, over=True)
    assert len(json.dumps(found)) < set_results.MOST_BYTES + 1024
    shown = [("mean" in row["headlines"]["bandwidth"]) for row in found["results"]]
    assert shown == ([] if numbers is None else [numbers] * count)
    assert found["verdict"] == "PASS"


def test_17_what_does_not_start_in_time_fails_and_says_what_it_waited_for() -> None:
    cluster = FakeCluster()
    cluster.ready = False
    asked(cluster)
    look(cluster)
    why = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    cluster.objects["pods", "one-server-0"]["status"] = {"phase": "Pending", "conditions": [why]}
    assert "0/3 nodes" in look(cluster)["message"]
    cluster.now += manifests.START_S + 1
    found = until_ended(cluster)
    assert found["failure"] == "timed_out" and "0/3 nodes" in found["message"]


def test_a_right_that_is_missing_is_named_and_has_a_deadline_too() -> None:
    cluster = FakeCluster()
    asked(cluster)

    def forbidden(what: Resource, namespace: str, body: Document) -> None:
        if what is JOBS:
            raise Unreachable(
                "Kubernetes does not let us make jobs", hint="give the right to create jobs"
            )

    made = cluster.create
    cluster.create = lambda *given: forbidden(*given) or made(*given)  # type: ignore[method-assign]
    found = look(cluster)
    assert found["phase"] == "Preparing" and "create jobs" in found["message"]
    cluster.now += 10_000
    assert until_ended(cluster)["failure"] == "refused"


def test_one_of_that_name_that_is_going_is_waited_for() -> None:
    cluster = FakeCluster()
    foreign = {"name": "one-peers", "ownerReferences": [{"uid": "old"}]}
    cluster.put(CONFIG_MAPS, {"metadata": foreign, "data": {}})
    asked(cluster)
    assert "belongs to something else" in look(cluster)["message"]
    del cluster.objects["configmaps", "one-peers"]
    assert until_ended(cluster)["phase"] == "Completed"


def test_a_lock_of_one_that_is_gone_is_taken_over() -> None:
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


def pod_of(one: benchmark.Benchmark, role: str) -> Document:
    parts = [part for part in one.kind.layout(one.spec) if part.role == role]
    found: Document = manifests.job(one, parts, {"uid": "u"}, "image")["spec"]["template"]["spec"]
    return found


@pytest.mark.parametrize(
    ("placement", "rule"),
    [
        ("sameNode", "podAffinity"),
        ("differentNodes", "podAntiAffinity"),
        ("spread", "podAntiAffinity"),
    ],
)
def test_placement(placement: str, rule: str) -> None:
    one = benchmark.read({"kind": "IPerf", "spec": {"placement": placement, "nodes": ["a", "b"]}})
    found = pod_of(one, "client")["affinity"]
    ((strength, _),) = found[rule].items()
    assert strength.startswith("preferred" if placement == "spread" else "required")
    terms = found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert terms[0]["matchExpressions"][0]["values"] == (
        ["a"] if placement == "sameNode" else ["b"]
    )


def test_claims_of_fio() -> None:
    def scratch(**spec: Any) -> tuple[Document, Document | None]:
        one = benchmark.read({"kind": "Fio", "spec": spec})
        volumes = {row["name"]: row for row in pod_of(one, "worker")["volumes"]}
        return volumes["scratch"], manifests.claim(one, {"uid": "u"})

    many, once = {"accessModes": ["ReadWriteMany"]}, {"accessModes": ["ReadWriteOnce"]}
    shared, made = scratch(volumeClaimTemplate=many)
    assert (
        made is not None
        and shared["persistentVolumeClaim"]["claimName"] == made["metadata"]["name"]
    )
    own, made = scratch(volumeClaimTemplate=once)
    assert made is None and own["ephemeral"]["volumeClaimTemplate"]["spec"] == once
    there, made = scratch(volume={"hostPath": {"path": "/data"}})
    assert made is None and there["hostPath"] == {"path": "/data"}
    assert scratch() == ({"name": "scratch", "emptyDir": {}}, None)


def test_an_executor_has_the_operator_measure_and_leaves_nothing() -> None:
    # given an operator that looks whenever the executor waits
    cluster, phases = FakeCluster(), list[BenchmarkPhase]()
    one = benchmark.read({"kind": "IPerf", "metadata": {"name": "one"}})
    executor = OperatorExecutor(
        cluster, "ns", "run-1", lambda: cluster.now, lambda _: look(cluster) and None
    )
    # when it runs one
    found = executor.run(one, phases.append)
    # expect the phases as they come, the result, and no object
    assert found.ok and found.headlines == {"bandwidth": 5e9}
    assert phases == [
        BenchmarkPhase.PREPARING,
        BenchmarkPhase.SUMMARISING,
        BenchmarkPhase.COMPLETED,
    ]
    assert ("iperfs", "one") not in cluster.objects
    # and one of another run is left alone
    asked(cluster)
    found = executor.run(one, phases.append)
    assert (found.phase, found.failure) == (BenchmarkPhase.FAILED, "refused")
    assert ("iperfs", "one") in cluster.objects


def test_an_executor_without_an_operator_says_so() -> None:
    cluster = FakeCluster()

    def sleep(seconds: float) -> None:
        cluster.now += seconds

    one = benchmark.read({"kind": "IPerf", "metadata": {"name": "one"}})
    found = OperatorExecutor(cluster, "ns", "run-1", lambda: cluster.now, sleep).run(
        one, lambda phase: None
    )
    assert (found.failure, found.message) == ("timed_out", "no operator takes care of it")
    assert ("iperfs", "one") not in cluster.objects


def test_an_executor_that_was_killed_finds_its_benchmark_again() -> None:
    # given the object of a run that was killed, which is being measured
    cluster = FakeCluster()
    asked(cluster)
    cluster.objects["iperfs", "one"]["metadata"]["labels"] = {RUN: "run-1"}
    look(cluster)
    # when the run goes on
    one = benchmark.read({"kind": "IPerf", "metadata": {"name": "one"}})
    executor = OperatorExecutor(
        cluster, "ns", "run-1", lambda: cluster.now, lambda _: look(cluster) and None
    )
    # expect the result of that one measurement
    assert executor.run(one, lambda phase: None).ok
    assert cluster.made.count("jobs/one-client") == 1
