"""Objects of other benchmarks under the same name: of one that is gone and was made again, or of
another kind.
"""

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult, benchmark, frame_result
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure.operator_executor import RUN
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.objects.config_maps import load_result
from scaletest.benchmarks.operator import benchmark_reconciler
from scaletest.cluster.resources import CONFIG_MAPS, PODS
from tests.unit.benchmarks.test_operator_executor import executor_on
from tests.unit.fake_cluster import FakeCluster, asked, cluster_with, look, until_ended


def leave_a_pod(cluster: FakeCluster, role: str, phase: str = "Running") -> None:
    """One of a benchmark that was deleted a moment ago; its kubelet has not ended it yet."""
    labels = {manifests.BENCHMARK: "one", manifests.UID: "old", manifests.ROLE: role}
    meta = {
        "name": f"one-{role}-0-old",
        "labels": labels,
        "annotations": {},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    pod = cluster.put(PODS, {"metadata": meta, "spec": {"nodeName": "n0"}})
    pod["status"] = {"phase": phase, "podIPs": [{"ip": "10.9.9.9"}], "conditions": []}
    ended = BenchmarkResult(
        "one",
        BenchmarkPhase.COMPLETED,
        {"bandwidth": 1e9},
        {"of": "another"},
        started_s=1.0,
        finished_s=2.0,
    )
    cluster.logs[meta["name"]] = frame_result(ended)


def test_the_result_of_a_deleted_benchmark_is_not_used_for_a_new_one() -> None:
    # given pods of an earlier benchmark of that name, which are about to go, with a result in a log
    cluster = FakeCluster()
    leave_a_pod(cluster, "client")
    leave_a_pod(cluster, "server", "Failed")
    # when one of that name is measured
    asked(cluster)
    state = until_ended(cluster)
    # expect its own result, from its own pods
    assert (state["phase"], state["summary"]) == ("Completed", "5.000 Gbit/s")
    assert {row["name"] for rows in state["pods"].values() for row in rows} <= {
        "one-client-0",
        "one-server-0",
    }
    measured = load_result(
        cluster, "ns", "one", cluster.objects["iperfs", "one"]["metadata"]["uid"]
    )
    assert measured is not None and measured.result == {"some": 1}


def test_deleting_a_benchmark_of_another_kind_deletes_no_object_of_this_one() -> None:
    # given a benchmark that is being measured, and one of another kind with its name
    cluster = cluster_with(ready=False)
    look(cluster)
    asked(cluster, kind="Fio")
    before = {key: document["metadata"]["uid"] for key, document in cluster.objects.items()}
    # when that is deleted
    benchmark_reconciler.clean_up(KINDS["Fio"], cluster, "ns", cluster.objects["fios", "one"])
    # expect everything to be there
    assert {key: document["metadata"]["uid"] for key, document in cluster.objects.items()} == before


def test_a_result_whose_config_map_cannot_be_written_fails_after_a_deadline() -> None:
    # given the result of something else under the name that ours would have
    cluster = FakeCluster()
    foreign = {"name": "one-result", "ownerReferences": [{"uid": "old"}]}
    cluster.put(CONFIG_MAPS, {"metadata": foreign, "binaryData": {}})
    asked(cluster)
    # expect it to be waited for and nothing to be measured in vain
    state = look(cluster)
    assert (state["phase"], state["message"]) == (
        "Preparing", "configmaps one-result already exists and belongs to something else",
    )  # fmt: skip
    assert not [name for name in cluster.made if name.startswith("jobs")]
    # and to fail in the end, so that others may measure
    cluster.now += manifests.START_LIMIT_S + 1
    state = look(cluster)
    assert (state["phase"], state["failure"]) == (
        "Failed",
        "refused",
    ) and "resultConfigMap" not in state
    asked(cluster, "two")
    assert until_ended(cluster, "two")["phase"] == "Completed"


def test_a_paused_benchmark_keeps_nobody_waiting() -> None:
    # given one that had the lock, and was paused before anything was made
    cluster = cluster_with()
    assert until_ended(cluster)["phase"] == "Completed"
    asked(cluster, "two", paused=True)
    uid = cluster.objects["iperfs", "two"]["metadata"]["uid"]
    lease = cluster.objects["leases", "scaletest-benchmarks"]
    lease["spec"]["holderIdentity"] = f"iperfs/two/{uid}"
    assert look(cluster, "two")["message"] == benchmark_reconciler.PAUSED
    # expect another to be measured
    asked(cluster, "three")
    assert until_ended(cluster, "three")["phase"] == "Completed"


def test_a_server_that_is_lost_before_it_is_needed_is_not_waited_for() -> None:
    # given a server whose pod somebody deletes while it starts
    cluster = cluster_with(ready=False)
    look(cluster)
    del cluster.objects["pods", "one-server-0"]
    assert look(cluster)["message"] == "pods are being created"
    why = {
        "type": "Failed",
        "status": "True",
        "message": "Job has reached the specified backoff limit",
    }
    cluster.objects["jobs", "one-server"]["status"] = {"conditions": [why]}
    # expect the end at once, as its Job makes no other
    state = until_ended(cluster)
    assert (state["failure"], state["lines"]) == ("interrupted", [why["message"]])


def test_a_run_that_goes_on_waits_until_what_it_deleted_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given an object that an interrupted run has deleted, and an operator that still cleans up
    # after it
    cluster = cluster_with()
    cluster.objects["iperfs", "one"]["metadata"] |= {
        "labels": {RUN: "run-1"},
        "deletionTimestamp": "2026-01-01T00:00:00Z",
    }
    waited = list[float]()

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            del cluster.objects["iperfs", "one"]
        if len(waited) > 3:
            look(cluster)

    iperf = benchmark.read_benchmark({"kind": "IPerf", "metadata": {"name": "one"}})
    executor = executor_on(cluster, sleep, monkeypatch)
    # expect it to be measured, not to be taken for deleted by somebody
    assert executor.run(iperf, lambda phase: None).headlines == {"bandwidth": 5e9}

    # and one whose result was deleted to say so
    def look_and_lose(seconds: float) -> None:
        if look(cluster)["phase"] == BenchmarkPhase.COMPLETED:
            del cluster.objects["configmaps", "one-result"]

    del cluster.objects["configmaps", "one-result"]
    measured = executor_on(cluster, look_and_lose, monkeypatch).run(iperf, lambda phase: None)
    assert (measured.failure, measured.message) == ("interrupted", "its result is gone")


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ("scaletest-benchmarks:0.1.0", "scaletest-torch:0.1.0"),
        (
            "host:5000/scaletest-benchmarks/scaletest-benchmarks",
            "host:5000/scaletest-benchmarks/scaletest-torch",
        ),
        ("host/scaletest-benchmarks@sha256:1234", "host/scaletest-benchmarks@sha256:1234"),
        ("host/mine:1", "host/mine:1"),
    ],
)
def test_every_kind_has_its_image_or_that_of_benchmarks(image: str, expected: str) -> None:
    assert manifests.image_of(KINDS["PyTorch"], image) == expected
    assert manifests.image_of(KINDS["IPerf"], image) == image
