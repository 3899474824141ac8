"""Parts that are admitted together: what is made and waited for, and that a cluster that cannot
says so at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scaletest.benchmarks import gang_scheduling, manifests, pod_main
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.objects import JOBS, Missing, Resource
from scaletest.kinds import benchmark
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult, frame
from scaletest.kinds.kind import BenchmarkFailed
from scaletest.kinds.registry import KINDS
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.operator import benchmark_reconciler, status
from scaletest.operator.queueing import turn_of
from tests.unit.fake_cluster import FakeCluster, Killed, asked, look, settings, until_ended

KUEUE = {"gang": "kueue", "queueName": "team"}


def queued() -> FakeCluster:
    """A cluster in which a benchmark waits in a queue of Kueue."""
    cluster = FakeCluster()
    asked(cluster, **KUEUE)
    look(cluster)
    return cluster


def admit(cluster: FakeCluster, name: str = "one") -> None:
    """What Kueue does, and then JobSet."""
    job_set = cluster.objects["jobsets", name]
    job_set["spec"]["suspend"] = False
    resumed = {
        "type": "Suspended",
        "status": "False",
        "lastTransitionTime": status.stamp(cluster.now),
    }
    job_set["status"] = {"conditions": [resumed]}
    for job in job_set["spec"]["replicatedJobs"]:
        body = {"metadata": {"name": f"{name}-{job['name']}-0"}, "spec": job["template"]["spec"]}
        if cluster.create(JOBS, "ns", body):
            cluster.made.pop()


def drop_jobs(cluster: FakeCluster) -> None:
    """What the garbage collector does when the JobSet is gone."""
    if ("jobsets", "one") not in cluster.objects:
        for plural, name in list(cluster.objects):
            if plural in ("jobs", "pods"):
                del cluster.objects[plural, name]


def test_kueue_gets_one_job_set_with_all_parts() -> None:
    pingpong = benchmark.read({"kind": "MPIPingPong", "spec": KUEUE})
    ((resource, job_set),) = gang_scheduling.manifests_of(pingpong, {"uid": "u"}, "image")
    assert (resource, job_set["kind"], job_set["spec"]["suspend"]) == (
        gang_scheduling.JOBSETS,
        "JobSet",
        True,
    )
    assert job_set["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    jobs = {row["name"]: row["template"]["spec"] for row in job_set["spec"]["replicatedJobs"]}
    assert {role: job["completions"] for role, job in jobs.items()} == {"worker": 2, "master": 1}
    # the measuring part alone waits for the others
    waits = {role: job["template"]["spec"].get("initContainers", []) for role, job in jobs.items()}
    assert [row["name"] for row in waits["master"]] == ["wait"] and waits["worker"] == []
    assert waits["master"][0]["securityContext"]["allowPrivilegeEscalation"] is False


def test_volcano_gets_a_group_of_all_pods() -> None:
    pingpong = benchmark.read(
        {"kind": "MPIPingPong", "spec": {"gang": "volcano", "queueName": "fast"}}
    )
    (resource, group), *jobs = gang_scheduling.manifests_of(pingpong, {"uid": "u"}, "image")
    assert (resource, group["spec"]) == (
        gang_scheduling.POD_GROUPS,
        {"minMember": 3, "queue": "fast"},
    )
    assert [job["metadata"]["name"] for _, job in jobs] == [
        f"{pingpong.name}-worker",
        f"{pingpong.name}-master",
    ]
    for _, job in jobs:
        template = job["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano"
        assert template["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "1m"}}
        assert (
            template["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
            == group["metadata"]["name"]
        )


def test_without_a_gang_no_object_of_gang_scheduling_is_created() -> None:
    cluster = FakeCluster()
    asked(cluster)
    assert until_ended(cluster)["phase"] == "Completed"
    assert not [change for change in cluster.made if change.startswith(("jobsets", "podgroups"))]


def test_a_queue_is_waited_for_longer_than_pods_are() -> None:
    cluster = queued()
    cluster.now += manifests.START_S + 1
    state = look(cluster)
    assert (state["phase"], state["message"]) == (
        "Pending",
        "waits in queue team until all parts are admitted; Kueue's Workload says why",
    )
    assert "startedAt" not in state
    # when it is admitted; expect it measured, and all of it gone
    admit(cluster)
    assert until_ended(cluster)["phase"] == "Completed"
    drop_jobs(cluster)
    assert {plural for plural, _ in cluster.objects} == {
        "iperfs",
        "configmaps",
        "leases",
    }


def test_17_a_queue_that_admits_nothing_is_waited_for_until_a_deadline() -> None:
    cluster = queued()
    cluster.now += gang_scheduling.ADMIT_S + 1
    state = until_ended(cluster)
    assert state["failure"] == "timed_out" and "queue team" in state["message"]


def test_parts_that_are_admitted_have_the_usual_time_to_start() -> None:
    cluster = queued()
    cluster.now += 10 * manifests.START_S
    cluster.ready = False
    admit(cluster)
    assert look(cluster)["phase"] == "Preparing"
    cluster.now += manifests.START_S + 1
    assert until_ended(cluster)["failure"] == "timed_out"


@pytest.mark.parametrize("running", [False, True])
def test_a_gang_suspended_while_it_measures_is_not_measured_again(running: bool) -> None:
    # given one whose parts run, when Kueue takes its place away
    cluster = queued()
    cluster.ready = running
    admit(cluster)
    cluster.logs.clear()
    look(cluster)
    look(cluster)
    cluster.objects["jobsets", "one"]["spec"]["suspend"] = True
    for (plural, name), document in list(cluster.objects.items()):
        if plural == "pods":
            del cluster.objects[plural, name]
        if plural == "jobs":
            document["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "interrupted")


@pytest.mark.parametrize("fatal", range(1, 40))
def test_a_gang_is_measured_once_though_the_operator_is_killed_after_any_request(
    fatal: int,
) -> None:
    cluster = FakeCluster()
    asked(cluster, **KUEUE)
    cluster.fatal = fatal

    def measured() -> Mapping[str, Any]:
        for _ in range(20):
            state = look(cluster)
            if state.get("phase") in ("Completed", "Failed"):
                return state
            if ("jobsets", "one") in cluster.objects:
                before = cluster.requests, cluster.fatal
                cluster.fatal = 0
                admit(cluster)
                cluster.requests, cluster.fatal = before
        raise AssertionError(state)

    with pytest.raises(Killed):
        measured()
    assert measured()["phase"] == "Completed"
    assert cluster.made.count("jobsets/one") == 1


def test_volcano_says_why_it_waits() -> None:
    cluster = FakeCluster()
    asked(cluster, gang="volcano")
    look(cluster)
    group = cluster.objects["podgroups", "one"]
    why = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks unschedulable"}
    group["status"] = {"phase": "Pending", "conditions": [why]}
    state = look(cluster)
    assert state["phase"] == "Pending" and "all 2 pods: 2/2 tasks unschedulable" in state["message"]
    group = cluster.objects["podgroups", "one"]
    group["status"] = {"phase": "Running"}
    assert until_ended(cluster)["phase"] == "Completed"
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases"}


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        (KUEUE, "needs Kueue and JobSet"),
        ({"gang": "volcano"}, "needs Volcano"),
    ],
)
@pytest.mark.parametrize(
    "error", [Missing("cannot make it: there is none"), Unreachable("Kubernetes does not let us")]
)
def test_a_cluster_without_gang_scheduling_refuses_a_gang_at_once(
    spec: dict[str, str], missing: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a cluster without the definitions, or an operator without the rights
    cluster, create_object = FakeCluster(), FakeCluster.create

    def create(
        self: FakeCluster, resource: Resource, namespace: str, body: Document
    ) -> Document | None:
        if resource in (gang_scheduling.JOBSETS, gang_scheduling.POD_GROUPS):
            raise error
        return create_object(self, resource, namespace, body)

    monkeypatch.setattr(FakeCluster, "create", create)
    asked(cluster, **spec)
    # expect that two looks are enough
    look(cluster)
    state = look(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "refused")
    assert missing in state["message"] and "operator.gang" in state["remedy"]


def test_a_kind_without_servers_is_admitted_by_a_queue() -> None:
    cluster = FakeCluster()
    kind = KINDS["PyTorch"]
    asked(cluster, kind="PyTorch", model="resnet50", **KUEUE)
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    job = cluster.objects["jobsets", "one"]["spec"]["replicatedJobs"]
    # it begins when it is its turn, which may be long after it is admitted
    (wait,) = job[0]["template"]["spec"]["template"]["spec"]["initContainers"]
    assert len(job) == 1 and manifests.MEASURING in wait["command"][-1]
    # nothing is measured before its pod is there
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING not in cluster.objects["configmaps", "one-peers"]["data"]
    admit(cluster)
    benchmark_reconciler.reconcile(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING in cluster.objects["configmaps", "one-peers"]["data"]


@pytest.mark.parametrize(
    "spec",
    [
        {"gang": "kueue"},
        {"queueName": "team"},
        {"gang": "jobset"},
        {"gang": "slurm"},
        {"queueLimit": 60},
    ],
)
def test_a_queue_name_without_effect_is_refused(spec: dict[str, str]) -> None:
    with pytest.raises(InvalidValue):
        benchmark.read({"kind": "IPerf", "spec": spec})


def test_a_queued_benchmark_does_not_keep_others_from_measuring() -> None:
    # given one that waits in a queue, and another that waits for its turn
    cluster = queued()
    asked(cluster, "two")
    assert look(cluster, "two")["message"] == benchmark_reconciler.WAITING
    # when the first is not admitted at once
    cluster.now += gang_scheduling.AT_ONCE_S + 1
    look(cluster)
    # expect the second measured, and the first when it is admitted
    assert until_ended(cluster, "two")["phase"] == "Completed"
    admit(cluster)
    assert until_ended(cluster)["phase"] == "Completed"


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
    cluster.now += manifests.START_S
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
    cluster.logs["one-client-0-0"] = frame(
        BenchmarkResult("one", BenchmarkPhase.COMPLETED, {"bandwidth": 5e9})
    )
    assert until_ended(cluster)["phase"] == "Completed"


def test_a_gang_suspended_before_its_turn_is_queued_again() -> None:
    cluster = queued()
    cluster.now += gang_scheduling.AT_ONCE_S + 1
    look(cluster)
    asked(cluster, "two")
    cluster.ready = False
    assert look(cluster, "two")["phase"] == "Preparing"
    admit(cluster)
    assert look(cluster)["message"] == benchmark_reconciler.ADMITTED
    cluster.objects["jobsets", "one"]["spec"]["suspend"] = True
    state = look(cluster)
    assert (state["phase"], state["message"]) == (
        "Pending",
        "waits in queue team until all parts are admitted; Kueue's Workload says why",
    )


def test_a_full_queue_is_named_and_where_its_reason_stands() -> None:
    message = look(queued())["message"]
    assert message == (
        "waits in queue team until all parts are admitted; Kueue's Workload says why"
    )


def test_the_spec_says_how_long_a_queue_is_waited_for() -> None:
    cluster = FakeCluster()
    asked(cluster, **KUEUE, queueLimit=60)
    look(cluster)
    cluster.now += 61
    state = until_ended(cluster)
    assert (state["failure"], state["message"].partition(":")[0]) == (
        "timed_out",
        "not admitted in 60 s",
    )


@pytest.mark.parametrize("spec", [KUEUE, {}])
def test_servers_that_are_admitted_wait_for_their_turn(
    spec: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a server whose peers are told long after it was started, since another is being measured
    pingpong, now = benchmark.read({"kind": "MPIPingPong", "spec": spec}), [0.0]

    def sleep(seconds: float) -> None:
        now[0] += 60.0
        if now[0] > 10 * manifests.START_S:
            (tmp_path / manifests.PEERS).write_text(
                '[{"role": "worker", "index": 0, "host": "h", "address": "a"}]'
            )

    monkeypatch.setattr(pod_main, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
    # then it has waited where it is part of a gang; else it is told as soon as all are ready, or
    # never
    if spec:
        assert pod_main._site(pingpong, tmp_path, tmp_path).peers["worker"][0].address == "a"
    else:
        with pytest.raises(BenchmarkFailed, match="did not arrive"):
            pod_main._site(pingpong, tmp_path, tmp_path)


@pytest.mark.parametrize("queue", [KUEUE, {"gang": "volcano"}])
def test_the_deadline_of_a_job_includes_the_wait_in_its_queue(queue: dict[str, str]) -> None:
    # given a queue that is waited for for a week
    week = 7 * 24 * 3600
    pingpong = benchmark.read({"kind": "MPIPingPong", "spec": {**queue, "queueLimit": week}})
    # then its Jobs, which run while Volcano has no place for their pods, last longer
    (_, first), *rest = gang_scheduling.manifests_of(pingpong, {"uid": "u"}, "image")
    jobs = [job["spec"] for _, job in rest] or [
        row["template"]["spec"] for row in first["spec"]["replicatedJobs"]
    ]
    assert len(jobs) == 2 and all(
        job["activeDeadlineSeconds"] > week + pingpong.limit_s for job in jobs
    )


@pytest.mark.parametrize("fatal", range(1, 60, 2))
def test_killed_after_any_request_two_in_queues_are_measured_one_at_a_time(fatal: int) -> None:
    # given two that are admitted together, after others could have measured
    cluster = FakeCluster()
    for name in ("one", "two"):
        asked(cluster, name, **KUEUE)

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
