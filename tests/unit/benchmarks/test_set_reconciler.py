"""Sets: what hinders one is said, and not waited for without end; a look costs little, and the
status is bounded.
"""

import json
from typing import Any

import pytest

from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.operator import set_reconciler
from scaletest.cluster.api_calls import Busy, Missing
from scaletest.cluster.objects import Document
from scaletest.cluster.resources import Resource
from scaletest.model.errors import Unreachable
from tests.unit.fake_cluster import (
    FakeCluster,
    asked,
    cluster_with,
    look,
    look_at_set,
    settings,
    until_set_ended,
)

IPERF = {"kind": "IPerf", "spec": {}}


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (
            Unreachable(
                "Kubernetes does not let us list nodes", hint="give the right to list nodes"
            ),
            "right to list nodes",
        ),
        (Missing("cannot list nodes: there is none", hint="look at its name"), "cannot list nodes"),
    ],
)
def test_a_set_that_is_hindered_says_why_and_goes_on_when_that_is_mended(
    error: Exception, problem: str
) -> None:
    # given a set that chooses nodes, which the operator may not list
    cluster = FakeCluster()
    listed = cluster.list

    def refused(resource: Resource, *arguments: Any, **named: Any) -> list[Document]:
        if resource.plural == "nodes":
            raise error
        return listed(resource, *arguments, **named)

    cluster.list = refused  # type: ignore[method-assign]
    nodes = {"nodes": {"combinations": {"length": 1, "source": {"nodes": {"selector": {}}}}}}
    asked(cluster, "set", "BenchmarkSet", template=IPERF, permutations={"product": nodes})
    state = look_at_set(cluster)
    # expect it to say so, and to fail only when that lasts
    assert state["phase"] == "Pending"
    assert problem in state["conditions"][-1]["message"]
    cluster.now += manifests.START_LIMIT_S - 1
    assert look_at_set(cluster) == state
    cluster.now += 2
    state = look_at_set(cluster)
    assert (state["phase"], state["verdict"]) == ("Failed", "INVALID") and problem in state[
        "verdictReason"
    ]


def test_a_busy_api_server_does_not_fail_a_set() -> None:
    cluster = cluster_with("set", "BenchmarkSet", template=IPERF)

    def busy(*arguments: Any) -> Document:
        raise Busy("cannot read: 503", hint="try again")

    find, cluster.create = cluster.create, busy  # type: ignore[method-assign]
    with pytest.raises(Busy):
        look_at_set(cluster)
    cluster.create = find  # type: ignore[method-assign]
    assert until_set_ended(cluster, settings(cluster))["phase"] == "Completed"


def test_a_set_that_was_deleted_and_made_again_waits_until_the_old_benchmarks_are_gone() -> None:
    # given a benchmark of an earlier set of that name, which is about to go, and then a plan of it
    cluster = cluster_with("set", "BenchmarkSet", template=IPERF)
    asked(cluster, "set-1")
    assert "another IPerf named set-1" in look_at_set(cluster)["conditions"][-1]["message"]
    del cluster.objects["iperfs", "set-1"]
    # expect it to be measured when that is gone
    state = until_set_ended(cluster, settings(cluster))
    assert (state["phase"], [condition["type"] for condition in state["conditions"]]) == (
        "Completed",
        ["Complete", "Failed"],
    )
    # and the same of its plan
    asked(cluster, "set", "BenchmarkSet", template=IPERF)
    assert "set-plan exists" in look_at_set(cluster)["conditions"][-1]["message"]
    del cluster.objects["configmaps", "set-plan"]
    del cluster.objects["iperfs", "set-1"]
    for name in ("set-1-result", "set-1-peers"):
        cluster.objects.pop(("configmaps", name), None)
    assert until_set_ended(cluster, settings(cluster))["phase"] == "Completed"


def test_a_set_that_stopped_when_its_warm_up_failed_has_failed() -> None:
    cluster = cluster_with("set", "BenchmarkSet", template=IPERF, warmUp=1, onFailure="stop")
    look_at_set(cluster)
    cluster.objects["iperfs", "set-warm-up-1"]["status"] = {
        "phase": "Failed",
        "failure": "exit",
        "message": "no",
    }
    state = look_at_set(cluster)
    assert (state["phase"], state["succeeded"], state["verdict"]) == ("Failed", 0, "INVALID")


def test_benchmarks_that_the_watches_did_not_bring_yet_keep_their_nodes() -> None:
    # given three benchmarks, of which the first two use one node each and the third both
    rows = [
        {"nodes": ["a"], "placement": "sameNode"},
        {"nodes": ["a", "b"]},
        {"nodes": ["b"], "placement": "sameNode"},
    ]
    cluster = cluster_with(
        "set",
        "BenchmarkSet",
        template=IPERF,
        parallelism="nodeDisjoint",
        permutations={"explicit": rows},
    )
    reconcile_settings = settings(cluster)
    set_reconciler.reconcile(cluster, "ns", "set", reconcile_settings, lambda *_: [])
    assert {name for plural, name in cluster.objects if plural == "iperfs"} == {"set-1", "set-3"}
    # when the first ends, and the watches do not know the third
    first = cluster.objects["iperfs", "set-1"]
    first["status"] = {"phase": "Completed", "values": {}}
    (known,) = set_reconciler.child_by_owner(first).values()
    set_reconciler.reconcile(cluster, "ns", "set", reconcile_settings, lambda *_: [known])
    # expect the second to wait, until both have ended
    assert ("iperfs", "set-2") not in cluster.objects
    cluster.objects["iperfs", "set-3"]["status"] = {"phase": "Completed", "values": {}}
    look_at_set(cluster, reconcile_settings)
    assert ("iperfs", "set-2") in cluster.objects
    # and what was deleted meanwhile is made again, not waited for
    del cluster.objects["iperfs", "set-2"]
    look_at_set(cluster, reconcile_settings)
    assert ("iperfs", "set-2") in cluster.objects


@pytest.mark.parametrize("character", ["a", "é", "漢", "\U0001f600"])
def test_15_the_status_of_a_set_is_bounded_whatever_its_values_are(character: str) -> None:
    # given permutations as large as they may be in a status, results of all, and long words about a
    # failure
    values = [
        {"pods": {"annotations": {"a": f"{number:02}{character * 219}"}}} for number in range(32)
    ]
    cluster = cluster_with(
        "set",
        "BenchmarkSet",
        template={"kind": "IPerf", "spec": {"duration": 1}},
        permutations={"explicit": values},
        repetitions=2,
    )
    reconcile_settings = settings(cluster)
    look_at_set(cluster, reconcile_settings)
    plan = next(iter(reconcile_settings.plans.values()))
    good = {
        "phase": "Completed",
        "values": {headline.name: 1.23456789e9 for headline in KINDS["IPerf"].headlines},
    }
    rows = [{"metadata": {"name": planned.name}, "status": good} for planned in plan.benchmarks]
    rows[-1]["status"] = {"phase": "Failed", "failure": "exit", "message": character * 2000}
    # when it ends
    set_reconciler.reconcile(cluster, "ns", "set", reconcile_settings, lambda *_: rows)
    state = cluster.objects["benchmarksets", "set"]["status"]
    assert state["phase"] == "Failed"
    assert len(json.dumps(state)) <= 16 * 1024


def test_16_values_that_are_null_are_not_written_again_and_again() -> None:
    # given a permutation that takes a field back, and results of one repetition, which have no
    # interval
    cluster = cluster_with(
        "set",
        "BenchmarkSet",
        template={"kind": "IPerf", "spec": {"mtu": 9000}},
        permutations={"explicit": [{"mtu": None, "streams": 2}, {"streams": 4}]},
    )
    reconcile_settings = settings(cluster)
    for _ in range(8):
        look_at_set(cluster, reconcile_settings)
        look(cluster, "set-1")
    assert look_at_set(cluster, reconcile_settings)["succeeded"] == 1
    version = cluster.objects["benchmarksets", "set"]["metadata"]["resourceVersion"]
    # when nothing changes
    state = look_at_set(cluster, reconcile_settings)
    # expect no request but the one that looks
    assert cluster.objects["benchmarksets", "set"]["metadata"]["resourceVersion"] == version
    assert [row["permutation"] for row in state["results"]] == ["mtu null, streams 2", "streams 4"]


def test_a_set_whose_benchmarks_would_have_too_long_names_is_refused() -> None:
    cluster = FakeCluster()
    name = "a" * 40
    body = {"spec": {"template": {"kind": "IPerf"}}, "kind": "BenchmarkSet"}
    cluster.put(set_reconciler.SETS, {**body, "metadata": {"name": name}})
    set_reconciler.reconcile(cluster, "ns", name, settings(cluster), lambda *_: [])
    state = cluster.objects["benchmarksets", name]["status"]
    assert (state["phase"], state["verdict"]) == ("Failed", "INVALID")
    assert "40 characters at most" in state["verdictReason"]
