"""Parts that are admitted together: what is made and waited for, and that a cluster that cannot
says so at once.
"""

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, benchmark, frame_result
from scaletest.benchmarks.kinds import BenchmarkFailed
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure import pod_main
from scaletest.benchmarks.objects import gang_scheduling, manifests
from scaletest.benchmarks.operator import benchmark_reconciler, status
from scaletest.benchmarks.operator.queueing import turn_of
from scaletest.cluster.api_calls import Missing
from scaletest.cluster.objects import Document
from scaletest.cluster.resources import JOBS, Resource
from scaletest.model.errors import InvalidValue, Unreachable
from tests.unit.fake_cluster import (
    FakeCluster,
    Killed,
    asked,
    cluster_with,
    look,
    settings,
    until_ended,
)

VOLCANO = {"gang": "volcano"}
WAITS = "waits until Volcano has room for all 2 pods"


def queued(*, ready: bool = True) -> FakeCluster:
    """A cluster in which a benchmark waits for Volcano. ready: whether its servers get ready."""
    cluster = cluster_with(ready=ready, gang="volcano")
    look(cluster)
    return cluster


def admit(cluster: FakeCluster, name: str = "one") -> None:
    """What Volcano does when it has a node for each pod."""
    scheduled = {
        "type": "Scheduled",
        "status": "True",
        "lastTransitionTime": status.write_time(cluster.now),
    }
    cluster.objects["podgroups", name]["status"] = {"phase": "Running", "conditions": [scheduled]}


def withdraw(cluster: FakeCluster) -> None:
    """What Volcano does to a gang whose place another one takes."""
    cluster.objects["podgroups", "one"]["status"] = {"phase": "Pending"}


def test_volcano_gets_a_group_of_all_pods() -> None:
    pingpong = benchmark.read_benchmark(
        {"kind": "MPIPingPong", "spec": {"gang": "volcano", "queueName": "fast"}}
    )
    group = gang_scheduling.pod_group(pingpong, {"uid": "u"})
    assert group["spec"] == {"minMember": 3, "queue": "fast"}
    jobs = gang_scheduling.make_jobs(pingpong, {"uid": "u"}, "image")
    assert [job["metadata"]["name"] for job in jobs] == [
        f"{pingpong.name}-worker",
        f"{pingpong.name}-master",
    ]
    for job in jobs:
        template = job["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano"
        assert template["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1m"}}
        assert (
            template["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
            == group["metadata"]["name"]
        )
    # the measuring part alone waits for the others
    waits = [job["spec"]["template"]["spec"].get("initContainers", []) for job in jobs]
    assert waits[0] == [] and [row["name"] for row in waits[1]] == ["wait"]
    assert waits[1][0]["securityContext"]["allowPrivilegeEscalation"] is False


@pytest.mark.parametrize(
    ("spec", "limit_s"), [({}, gang_scheduling.ADMISSION_LIMIT_S), ({"queueLimit": 60}, 60)]
)
def test_17_a_queue_that_admits_nothing_is_waited_for_until_a_deadline(
    spec: dict[str, int], limit_s: float
) -> None:
    cluster = cluster_with(**VOLCANO, **spec)
    look(cluster)
    cluster.now += limit_s + 1
    state = until_ended(cluster)
    assert state["failure"] == "timed_out" and WAITS in state["message"]
    assert state["message"].startswith(f"not admitted within {limit_s:.0f} s")


def test_parts_that_are_admitted_have_the_usual_time_to_start() -> None:
    # given parts that are placed late, and do not get ready
    cluster = queued(ready=False)
    cluster.now += 10 * manifests.START_LIMIT_S
    admit(cluster)
    assert look(cluster)["phase"] == "Preparing"
    cluster.now += manifests.START_LIMIT_S + 1
    assert until_ended(cluster)["failure"] == "timed_out"


@pytest.mark.parametrize("running", [False, True])
def test_a_gang_evicted_while_it_measures_is_not_measured_again(running: bool) -> None:
    # given one whose parts run, when Volcano takes its place away
    cluster = queued(ready=running)
    admit(cluster)
    cluster.logs.clear()
    look(cluster)
    look(cluster)
    withdraw(cluster)
    for (plural, name), document in list(cluster.objects.items()):
        if plural == "pods":
            del cluster.objects[plural, name]
        if plural == "jobs":
            document["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "interrupted")


@pytest.mark.parametrize("fatal", range(1, 40))
def test_a_gang_is_measured_once_though_the_operator_is_killed_after_any_request(
    fatal: int,
) -> None:
    cluster = cluster_with(**VOLCANO)
    cluster.fatal = fatal

    def measured() -> Mapping[str, Any]:
        for _ in range(20):
            state = look(cluster)
            if state.get("phase") in ("Completed", "Failed"):
                return state
            if ("podgroups", "one") in cluster.objects:
                before = cluster.requests, cluster.fatal
                cluster.fatal = 0
                admit(cluster)
                cluster.requests, cluster.fatal = before
        raise AssertionError(state)

    with pytest.raises(Killed):
        measured()
    assert measured()["phase"] == "Completed"
    assert cluster.made.count("podgroups/one") == 1


def test_volcano_says_why_it_waits() -> None:
    cluster = queued()
    why = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks unschedulable"}
    group = cluster.objects["podgroups", "one"]
    group["status"] = {"phase": "Pending", "conditions": [why]}
    state = look(cluster)
    assert (state["phase"], state["message"]) == ("Pending", f"{WAITS}: 2/2 tasks unschedulable")
    # a group that runs is admitted, whatever its conditions say
    group = cluster.objects["podgroups", "one"]
    group["status"] = {"phase": "Running"}
    assert until_ended(cluster)["phase"] == "Completed"


@pytest.mark.parametrize(
    "error", [Missing("cannot make it: there is none"), Unreachable("Kubernetes does not let us")]
)
def test_a_cluster_without_volcano_refuses_a_gang_at_once(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a cluster without the definitions, or an operator without the rights
    cluster, create_object = FakeCluster(), FakeCluster.create

    def create(
        self: FakeCluster, resource: Resource, namespace: str, body: Document
    ) -> Document | None:
        if resource is gang_scheduling.POD_GROUPS:
            raise error
        return create_object(self, resource, namespace, body)

    monkeypatch.setattr(FakeCluster, "create", create)
    asked(cluster, **VOLCANO)
    # expect that two looks are enough
    look(cluster)
    state = look(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "refused")
    assert "needs Volcano" in state["message"] and "operator.volcano" in state["remedy"]


def test_a_kind_without_servers_waits_for_its_admission() -> None:
    cluster, kind = cluster_with(kind="PyTorch", model="resnet50", gang="volcano"), KINDS["PyTorch"]
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    (job,) = (document for (plural, _), document in cluster.objects.items() if plural == "jobs")
    # it begins when it is its turn, which may be long after it is admitted
    (wait,) = job["spec"]["template"]["spec"]["initContainers"]
    assert manifests.MEASURING in wait["command"][-1]
    # nothing is measured before it has its place
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING not in cluster.objects["configmaps", "one-peers"]["data"]
    admit(cluster)
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING in cluster.objects["configmaps", "one-peers"]["data"]


@pytest.mark.parametrize(
    "spec",
    [
        {"queueName": "team"},
        {"gang": "slurm"},
        {"queueLimit": 60},
    ],
)
def test_a_queue_name_without_effect_is_refused(spec: dict[str, str]) -> None:
    with pytest.raises(InvalidValue):
        benchmark.read_benchmark({"kind": "IPerf", "spec": spec})


def test_a_gang_admitted_while_another_measures_is_measured_next() -> None:
    # given one in a queue, one that measures meanwhile, and one more
    cluster = queued()
    cluster.now += gang_scheduling.AT_ONCE_S + 1
    look(cluster)
    for name in ("two", "three"):
        asked(cluster, name)
    while look(cluster, "two")["phase"] != "Running":
        cluster.logs.clear()
    look(cluster, "three")
    # when it is admitted
    admit(cluster)
    # expect it to be Pending and to say why, however long that takes
    cluster.now += manifests.START_LIMIT_S
    state = look(cluster)
    assert (state["phase"], state["message"]) == ("Pending", benchmark_reconciler.ADMITTED)
    assert manifests.PEERS not in cluster.objects["configmaps", "one-peers"]["data"]
    # and to be before those that hold nothing
    places = {name: turn_of(cluster.objects["iperfs", name]) for name in ("one", "two", "three")}
    assert places["two"] is None
    assert (
        places["one"] is not None
        and places["three"] is not None
        and places["one"] < places["three"]
    )
    # and to have the usual time to start from its turn on
    cluster.delete(JOBS, "ns", "two-client")
    assert until_ended(cluster, "two")["failure"] == "interrupted"
    cluster.logs["one-client-0"] = frame_result(
        BenchmarkResult("one", BenchmarkPhase.COMPLETED, {"bandwidth": 5e9})
    )
    assert until_ended(cluster)["phase"] == "Completed"


def test_a_gang_evicted_before_its_turn_is_queued_again() -> None:
    cluster = queued()
    cluster.now += gang_scheduling.AT_ONCE_S + 1
    look(cluster)
    asked(cluster, "two")
    cluster.ready = False
    assert look(cluster, "two")["phase"] == "Preparing"
    admit(cluster)
    assert look(cluster)["message"] == benchmark_reconciler.ADMITTED
    withdraw(cluster)
    state = look(cluster)
    assert (state["phase"], state["message"]) == ("Pending", WAITS)


@pytest.mark.parametrize("spec", [VOLCANO, {}])
def test_servers_that_are_admitted_wait_for_their_turn(
    spec: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server whose peers are told long after it was started, since another is being measured
    pingpong, now = benchmark.read_benchmark({"kind": "MPIPingPong", "spec": spec}), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += 60.0
        if now[0] > 10 * manifests.START_LIMIT_S:
            (tmp_path / manifests.PEERS).write_text(
                '[{"role": "worker", "index": 0, "host": "h", "address": "a"}]'
            )

    monkeypatch.setattr(pod_main, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    # then it has waited where it is part of a gang; else it is told as soon as all are ready, or
    # never
    if spec:
        assert (
            pod_main._wait_for_site(pingpong, tmp_path, tmp_path).peers["worker"][0].address == "a"
        )
    else:
        with pytest.raises(BenchmarkFailed, match="did not arrive"):
            pod_main._wait_for_site(pingpong, tmp_path, tmp_path)


def test_the_deadline_of_a_job_includes_the_wait_in_its_queue() -> None:
    # given a queue that is waited for for a week
    week = 7 * 24 * 3600
    pingpong = benchmark.read_benchmark(
        {"kind": "MPIPingPong", "spec": {**VOLCANO, "queueLimit": week}}
    )
    # then its Jobs, which run while Volcano has no place for their pods, last longer
    jobs = gang_scheduling.make_jobs(pingpong, {"uid": "u"}, "image")
    assert len(jobs) == 2
    for job in jobs:
        assert job["spec"]["activeDeadlineSeconds"] > week + pingpong.limit_s


@pytest.mark.parametrize("fatal", range(1, 60, 2))
def test_killed_after_any_request_two_in_queues_are_measured_one_at_a_time(fatal: int) -> None:
    # given two that are admitted together, after others could have measured
    cluster = FakeCluster()
    for name in ("one", "two"):
        asked(cluster, name, **VOLCANO)

    def tried(name: str) -> None:
        try:
            look(cluster, name)
        except Killed:
            cluster.fatal = 0

    for name in ("one", "two"):
        look(cluster, name)
        cluster.now += gang_scheduling.AT_ONCE_S + 1
        look(cluster, "one")
    for name in ("one", "two"):
        admit(cluster, name)
    cluster.fatal = cluster.requests + fatal
    # expect never both at once, and each once
    for turn in range(40):
        tried(("one", "two")[turn % 2])
        maps = [
            cluster.objects.get(("configmaps", f"{name}-peers"), {"data": {}})
            for name in ("one", "two")
        ]
        assert sum(manifests.MEASURING in config_map["data"] for config_map in maps) < 2
    assert [cluster.objects["iperfs", name]["status"]["phase"] for name in ("one", "two")] == [
        "Completed"
    ] * 2
