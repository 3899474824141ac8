"""Parts that are admitted together: what is made and waited for, and that a cluster that cannot says so at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from scaletest.benchmarks import gang, manifests
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import JOBS, Missing, Resource
from scaletest.kinds import benchmark
from scaletest.kinds.registry import KINDS
from scaletest.model.errors import InvalidValue, Unreachable
from scaletest.operator import benchmarks, status
from tests.unit.test_operator import FakeCluster, Killed, asked, look, settings, until_ended

KUEUE = {"gang": "kueue", "queueName": "team"}
QUEUE = {"metadata": {"name": "team"}}


def queued() -> FakeCluster:
    """A cluster in which a benchmark waits in a queue of Kueue."""
    cluster = FakeCluster()
    cluster.put(gang.LOCAL_QUEUES[1], QUEUE)
    asked(cluster, **KUEUE)
    look(cluster)
    return cluster


def admit(cluster: FakeCluster, name: str = "one") -> None:
    """What Kueue does, and then JobSet."""
    found = cluster.objects["jobsets", name]
    found["spec"]["suspend"] = False
    resumed = {"type": "Suspended", "status": "False", "lastTransitionTime": status.stamp(cluster.now)}
    found["status"] = {"conditions": [resumed]}
    for job in found["spec"]["replicatedJobs"]:
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
    one = benchmark.read({"kind": "MPIPingPong", "spec": KUEUE})
    ((what, found),) = gang.made(one, {"uid": "u"}, "image")
    assert (what, found["kind"], found["spec"]["suspend"]) == (gang.JOBSETS, "JobSet", True)
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"
    jobs = {row["name"]: row["template"]["spec"] for row in found["spec"]["replicatedJobs"]}
    assert {role: job["completions"] for role, job in jobs.items()} == {"worker": 2, "master": 1}
    # the measuring part alone waits for the others
    waits = {role: job["template"]["spec"].get("initContainers", []) for role, job in jobs.items()}
    assert [row["name"] for row in waits["master"]] == ["wait"] and waits["worker"] == []
    assert waits["master"][0]["securityContext"]["allowPrivilegeEscalation"] is False


def test_volcano_gets_a_group_of_all_pods() -> None:
    one = benchmark.read({"kind": "MPIPingPong", "spec": {"gang": "volcano", "queueName": "fast"}})
    (what, group), *jobs = gang.made(one, {"uid": "u"}, "image")
    assert (what, group["spec"]) == (gang.POD_GROUPS, {"minMember": 3, "queue": "fast"})
    assert [job["metadata"]["name"] for _, job in jobs] == [f"{one.name}-worker", f"{one.name}-master"]
    for _, job in jobs:
        template = job["spec"]["template"]
        assert template["spec"]["schedulerName"] == "volcano"
        assert template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == group["metadata"]["name"]


def test_without_a_gang_nothing_of_it_is_made() -> None:
    cluster = FakeCluster()
    asked(cluster)
    assert until_ended(cluster)["phase"] == "Completed"
    assert not [one for one in cluster.made if one.startswith(("jobsets", "podgroups"))]


def test_a_queue_is_waited_for_longer_than_pods_are() -> None:
    cluster = queued()
    cluster.now += manifests.START_S + 1
    found = look(cluster)
    assert (found["phase"], found["message"]) == ("Pending", "waits in queue team until all parts are admitted")
    assert "startedAt" not in found
    # when it is admitted; expect it measured, and all of it gone
    admit(cluster)
    assert until_ended(cluster)["phase"] == "Completed"
    drop_jobs(cluster)
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases", "localqueues"}


def test_17_a_queue_that_admits_nothing_is_not_waited_for_without_end() -> None:
    cluster = queued()
    cluster.now += gang.ADMIT_S + 1
    found = until_ended(cluster)
    assert found["failure"] == "timed_out" and "queue team" in found["message"]


def test_parts_that_are_admitted_have_the_usual_time_to_start() -> None:
    cluster = queued()
    cluster.now += 10 * manifests.START_S
    cluster.ready = False
    admit(cluster)
    assert look(cluster)["phase"] == "Preparing"
    cluster.now += manifests.START_S + 1
    assert until_ended(cluster)["failure"] == "timed_out"


@pytest.mark.parametrize("running", [False, True])
def test_what_is_taken_back_is_never_measured_a_second_time(running: bool) -> None:
    # given one whose parts run, when Kueue takes its place away
    cluster = queued()
    cluster.ready = running
    admit(cluster)
    cluster.logs.clear()
    look(cluster)
    look(cluster)
    cluster.objects["jobsets", "one"]["spec"]["suspend"] = True
    for (plural, name), one in list(cluster.objects.items()):
        if plural == "pods":
            del cluster.objects[plural, name]
        if plural == "jobs":
            one["status"] = {"conditions": [{"type": "Suspended", "status": "True"}]}
    found = until_ended(cluster)
    assert (found["phase"], found["failure"]) == ("Failed", "interrupted")


@pytest.mark.parametrize("fatal", range(1, 40))
def test_killed_after_any_request_it_is_measured_once(fatal: int) -> None:
    cluster = FakeCluster()
    cluster.put(gang.LOCAL_QUEUES[0], QUEUE)
    asked(cluster, **KUEUE)
    cluster.fatal = fatal

    def measured() -> Mapping[str, Any]:
        for _ in range(20):
            found = look(cluster)
            if found.get("phase") in ("Completed", "Failed"):
                return found
            if ("jobsets", "one") in cluster.objects:
                before = cluster.requests, cluster.fatal
                cluster.fatal = 0
                admit(cluster)
                cluster.requests, cluster.fatal = before
        raise AssertionError(found)

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
    found = look(cluster)
    assert found["phase"] == "Pending" and "all 2 pods: 2/2 tasks unschedulable" in found["message"]
    group = cluster.objects["podgroups", "one"]
    group["status"] = {"phase": "Running"}
    assert until_ended(cluster)["phase"] == "Completed"
    assert {plural for plural, _ in cluster.objects} == {"iperfs", "configmaps", "leases"}


@pytest.mark.parametrize(("spec", "missing"), [
    (KUEUE, "no LocalQueue team"), ({"gang": "jobset"}, "needs JobSet"), ({"gang": "volcano"}, "needs Volcano"),
])  # fmt: skip
@pytest.mark.parametrize("error", [Missing("cannot make it: there is none"), Unreachable("Kubernetes does not let us")])
def test_a_cluster_that_cannot_says_so_at_once(
    spec: dict[str, str], missing: str, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given a cluster without the definitions, or an operator without the rights
    cluster, made = FakeCluster(), FakeCluster.create

    def create(self: FakeCluster, what: Resource, namespace: str, body: Document) -> Document | None:
        if what in (gang.JOBSETS, gang.POD_GROUPS):
            raise error
        return made(self, what, namespace, body)

    monkeypatch.setattr(FakeCluster, "create", create)
    asked(cluster, **spec)
    # expect that two looks are enough
    look(cluster)
    found = look(cluster)
    assert (found["phase"], found["failure"]) == ("Failed", "refused")
    assert missing in found["message"] and "operator.gang" in found["lines"][0]


def test_a_kind_without_servers_is_admitted_too() -> None:
    cluster = FakeCluster()
    kind = KINDS["PyTorch"]
    asked(cluster, kind="PyTorch", model="resnet50", gang="jobset")
    benchmarks.look(kind, cluster, "ns", "one", settings(cluster))
    job = cluster.objects["jobsets", "one"]["spec"]["replicatedJobs"]
    assert len(job) == 1 and "initContainers" not in job[0]["template"]["spec"]["template"]["spec"]
    # nothing is measured before its pod is there
    benchmarks.look(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING not in cluster.objects["configmaps", "one-peers"]["data"]
    admit(cluster)
    benchmarks.look(kind, cluster, "ns", "one", settings(cluster))
    assert manifests.MEASURING in cluster.objects["configmaps", "one-peers"]["data"]


@pytest.mark.parametrize("spec", [{"gang": "kueue"}, {"queueName": "team"}, {"gang": "jobset", "queueName": "team"},
                                  {"gang": "slurm"}])  # fmt: skip
def test_a_queue_that_would_queue_nothing_is_refused(spec: dict[str, str]) -> None:
    with pytest.raises(InvalidValue):
        benchmark.read({"kind": "IPerf", "spec": spec})
