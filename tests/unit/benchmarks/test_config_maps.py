"""ConfigMaps that somebody has changed by hand: repaired where that can be, else the end, with the
reason.
"""

import base64
import gzip
import json
from typing import Any

import pytest

from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.objects.config_maps import MOST_UNPACKED, Damaged, load_result
from scaletest.cluster.api_calls import Busy
from scaletest.cluster.resources import PODS
from tests.unit.fake_cluster import FakeCluster, asked, cluster_with, look, look_at_set, until_ended


def pack(text: bytes) -> dict[str, Any]:
    return {"binaryData": {"result.json.gz": base64.b64encode(text).decode()}}


PEERS = [
    {},
    {"data": None},
    {"data": {}},
    {"data": {manifests.DOCUMENT: "no JSON"}},
    {"data": {manifests.DOCUMENT: "[]"}},
    {"data": {manifests.DOCUMENT: json.dumps({"kind": "Nothing"})}},
    {
        "data": {
            manifests.DOCUMENT: json.dumps(
                {"kind": "IPerf", "metadata": {"name": "other"}, "spec": {}}
            )
        }
    },
    {
        "data": {
            manifests.DOCUMENT: json.dumps({"kind": "Fio", "metadata": {"name": "one"}, "spec": {}})
        }
    },
]
RESULTS = [
    {},
    {"binaryData": None},
    {"binaryData": {}},
    {"binaryData": {"result.json.gz": "!"}},
    pack(b"not packed"),
    pack(gzip.compress(b"whole")[:-9]),
    pack(gzip.compress(b"\xff")),
    pack(gzip.compress(b'{"name":"' + b" " * MOST_UNPACKED + b'"}')),
    pack(gzip.compress(b"{}") + gzip.compress(b"{}")),
    pack(gzip.compress(b"[]")),
    pack(gzip.compress(b"{}")),
    pack(gzip.compress(json.dumps({"name": "one", "phase": "Nothing"}).encode())),
]


def damage(cluster: FakeCluster, name: str, change: dict[str, Any]) -> None:
    """The ConfigMap with nothing but its metadata and the change."""
    whole = cluster.objects["configmaps", name]
    cluster.objects["configmaps", name] = {"metadata": whole["metadata"], **change}


@pytest.mark.parametrize("ready", [False, True], ids=["prepared", "measured"])
@pytest.mark.parametrize("change", PEERS)
def test_peers_that_cannot_be_read_end_the_benchmark(change: dict[str, Any], ready: bool) -> None:
    # given one whose servers start, or that measures
    cluster = cluster_with(ready=ready)
    look(cluster)
    cluster.logs.clear()
    # when its peers are damaged
    damage(cluster, "one-peers", change)
    # expect the end and why, nothing left, and the next one measured
    state = until_ended(cluster)
    assert (state["phase"], state["failure"]) == ("Failed", "interrupted")
    assert state["message"].startswith(
        "the ConfigMap one-peers was changed by somebody and cannot be read: "
    )
    assert not [key for key in cluster.objects if key[0] in ("jobs", "pods")]
    cluster.ready = True
    asked(cluster, "two")
    assert until_ended(cluster, "two")["phase"] == "Completed"


def test_a_removed_start_of_measuring_is_written_again() -> None:
    # given one that measures
    cluster = cluster_with()
    look(cluster)
    before = list(cluster.made)
    # when that is taken out of its peers; expect it measured by the pods that are there
    del cluster.objects["configmaps", "one-peers"]["data"][manifests.MEASURING]
    assert until_ended(cluster)["phase"] == "Completed"
    assert [change for change in cluster.made if change.startswith("jobs")] == [
        change for change in before if change.startswith("jobs")
    ]


def test_a_benchmark_whose_spec_was_made_invalid_ends_and_leaves_no_objects() -> None:
    cluster = cluster_with(ready=False)
    look(cluster)
    cluster.objects["iperfs", "one"]["spec"] = {"streams": 0}
    assert until_ended(cluster)["failure"] == "refused"
    assert not [key for key in cluster.objects if key[0] in ("jobs", "pods")]


def unread() -> FakeCluster:
    """A cluster in which a result is stored; the operator has not looked at it."""
    cluster = cluster_with()
    while ("configmaps", "one-result") not in cluster.objects:
        look(cluster)
    return cluster


@pytest.mark.parametrize("change", RESULTS)
def test_a_result_that_cannot_be_read_ends_the_benchmark(change: dict[str, Any]) -> None:
    # given one whose result is stored and was not read yet
    cluster = unread()
    before = dict(cluster.objects["iperfs", "one"])
    damage(cluster, "one-result", change)
    state = until_ended(cluster)
    # expect it not to be measured again
    assert (state["phase"], state["failure"]) == ("Failed", "interrupted")
    assert state["message"].startswith(
        "the ConfigMap one-result was changed by somebody and cannot be read: "
    )
    # and whoever asks for it to get the same words
    with pytest.raises(Damaged, match="one-result"):
        load_result(cluster, "ns", "one", before["metadata"]["uid"])


@pytest.mark.parametrize(
    "change", [{}, {"binaryData": {"plan.json.gz": "eA=="}}, pack(gzip.compress(b"{}"))]
)
def test_a_plan_that_cannot_be_read_ends_the_set(change: dict[str, Any]) -> None:
    cluster = cluster_with("set", "BenchmarkSet", template={"kind": "IPerf"}, paused=True)
    look_at_set(cluster)
    # when an operator that has read it is gone
    damage(cluster, "set-plan", change)
    state = look_at_set(cluster)
    assert (state["phase"], state["verdict"]) == ("Failed", "INVALID")
    assert "the ConfigMap set-plan was changed by somebody" in state["verdictReason"]


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_a_log_lost_with_its_node_is_waited_for_until_a_deadline(
    phase: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # given one that measures, whose node is gone: the API server cannot read the log, and says so
    # for ever
    cluster = cluster_with()
    look(cluster)

    def log(namespace: str, pod: str) -> str | None:
        raise Busy("cannot read the log of one-client-0: 502 no route to host")

    monkeypatch.setattr(cluster, "log", log)
    cluster.objects["pods", "one-client-0"]["status"]["phase"] = phase
    # expect it to be said, and waited for as long as a result may take
    state = look(cluster)
    assert (state["phase"], "no route to host" in state["message"]) == ("Running", True)
    cluster.now += KINDS["IPerf"].limit_s(KINDS["IPerf"].spec()) + manifests.LIMIT_SLACK_S + 1
    state = until_ended(cluster)
    assert (state["failure"], "no route to host" in state["message"]) == ("timed_out", True)
    asked(cluster, "two")
    assert look(cluster, "two")["phase"] == "Preparing"


def test_a_server_that_failed_on_a_node_that_is_gone_ends_the_benchmark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_with(ready=False)
    look(cluster)

    def log(namespace: str, pod: str) -> str | None:
        raise Busy("cannot read the log")

    monkeypatch.setattr(cluster, "log", log)
    cluster.objects["pods", "one-server-0"]["status"]["phase"] = "Failed"
    assert until_ended(cluster)["failure"] == "exit"


@pytest.mark.parametrize(
    "change", [{"labels": {manifests.ROLE: None}}, {"annotations": {manifests.INDEX: "x"}}]
)
def test_a_pod_that_does_not_say_which_part_it_is_does_not_count(change: dict[str, Any]) -> None:
    # given one that starts, and a copy of its server without all of our marks
    cluster = cluster_with(ready=False)
    look(cluster)
    copy = cluster.objects["pods", "one-server-0"]
    cluster.create(PODS, "ns", {**copy, "metadata": {**copy["metadata"], "name": "copy", **change}})
    meta = cluster.objects["pods", "copy"]["metadata"]
    meta["labels"] = {
        key: value
        for key, value in {**copy["metadata"]["labels"], **meta["labels"]}.items()
        if value
    }
    # expect it to be nobody's
    cluster.objects["pods", "one-server-0"]["status"]["conditions"] = [
        {"type": "Ready", "status": "True"}
    ]
    assert until_ended(cluster)["phase"] == "Completed"
