"""Documents of kube-perftest: read as they are, and converted."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from scaletest.benchmarks.documents import benchmark, custom_resources, kube_perftest
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.objects.manifests import MULTUS, job
from scaletest.benchmarks.operator import benchmark_reconciler, perftest
from scaletest.cli.main import run as cli
from tests.unit.fake_cluster import FakeCluster, cluster_with, look, settings

FILE = Path(__file__).parents[1] / "samples" / "kube-perftest.yaml"
DOCUMENTS = [*yaml.safe_load_all(FILE.read_text("utf-8"))]
GROUP = "perftest.stackhpc.com"
API = f"{GROUP}/v1alpha1"
OURS = benchmark_reconciler.resource_of(KINDS["IPerf"])
THEIRS = replace(OURS, api=f"/apis/{API}", plural="theirs")


def by_kind(document: Any) -> str:
    return str(document["kind"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_kind)
def test_every_document_of_the_readme_is_accepted_as_it_is(document: Any) -> None:
    plan, warnings = plan_of(document, lambda: ())
    assert plan.name == document["metadata"]["name"]
    assert plan.count == (15 if document["kind"] == "BenchmarkSet" else 1)
    assert f"apiVersion {API} is read as {API_VERSION}" in warnings


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_kind)
def test_their_definitions_admit_every_document(document: Any) -> None:
    (definition,) = [
        each
        for each in custom_resources.make_definitions(GROUP)
        if (each["spec"]["group"], each["spec"]["names"]["kind"]) == (GROUP, document["kind"])
    ]
    plural = definition["spec"]["names"]["plural"]
    assert definition["metadata"]["name"] == f"{plural}.{GROUP}"
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = schema["properties"]["spec"]
    Draft202012Validator(properties).validate(document["spec"])
    assert set(document["spec"]) <= set(properties["properties"])


def test_without_their_group_there_are_our_definitions_alone() -> None:
    assert (
        custom_resources.make_definitions()
        == custom_resources.make_definitions(GROUP)[: len(KINDS) + 1]
    )
    assert len(custom_resources.make_definitions(GROUP)) == len(KINDS) + 2 + len(
        kube_perftest.KINDS
    )


def test_a_network_of_the_pod_is_ignored_with_that_of_the_node() -> None:
    spec = {"hostNetwork": True, "networkName": "ns/net", "mtu": 9000, "streams": 8}
    on_node = benchmark.read_benchmark({"apiVersion": API, "kind": "IPerf", "spec": spec})
    assert on_node.warnings[1:] == (
        "networkName is ignored: with hostNetwork pods use the node's network",
        "mtu is ignored: with hostNetwork pods use the node's network",
    )
    server = job(on_node, "server", {"uid": "u"}, "image")["spec"]["template"]
    assert MULTUS not in server["metadata"]["annotations"]
    assert server["spec"]["hostNetwork"] and "initContainers" not in server["spec"]


def test_a_sweep_over_host_network_uses_the_network_of_the_template_where_there_is_one() -> None:
    spec = {
        "template": {"apiVersion": API, "kind": "IPerf", "spec": {"networkName": "ns/net"}},
        "permutations": {"product": {"hostNetwork": [True, False]}},
    }
    plan, warnings = plan_of({"apiVersion": API, "kind": "BenchmarkSet", "spec": spec}, lambda: ())
    assert [each.spec.network_name for each in plan.benchmarks] == ["", "ns/net"]
    assert "networkName is ignored: with hostNetwork pods use the node's network" in warnings


@pytest.mark.parametrize(
    ("api", "arguments"), [(API, ["--tclass=96", "--size=8"]), (API_VERSION, ["--size=8"])]
)
@pytest.mark.parametrize("place", ["product", "explicit"])
def test_extra_arguments_of_a_permutation_are_appended_in_their_documents_alone(
    api: str, arguments: list[str], place: str
) -> None:
    changes: dict[str, Any] = {
        "product": {"extraArgs": [["--size=8"]], "qps": [2]},
        "explicit": [{"extraArgs": ["--size=8"], "qps": 2}],
    }
    template = {"kind": "RDMABandwidth", "spec": {"extraArgs": ["--tclass=96"]}}
    spec = {"template": template, "permutations": {place: changes[place]}}
    plan, _ = plan_of({"apiVersion": api, "kind": "BenchmarkSet", "spec": spec}, lambda: ())
    (single,) = plan.benchmarks
    assert list(single.spec.extra_args) == arguments  # type: ignore[attr-defined]
    assert single.spec.qps == 2  # type: ignore[attr-defined]


def test_lists_within_maps_are_appended_too() -> None:
    spec = {
        "template": {"spec": {"pods": {"tolerations": [{"key": "a"}]}}},
        "permutations": {"explicit": [{"pods": {"tolerations": [{"key": "b"}], "labels": {}}}]},
    }
    changed = kube_perftest.convert({"kind": "BenchmarkSet", "spec": spec}, API_VERSION)["spec"]
    assert changed["permutations"]["explicit"] == [
        {"pods": {"tolerations": [{"key": "a"}, {"key": "b"}], "labels": {}}}
    ]


@pytest.mark.parametrize(
    ("spec", "changed"),
    [
        ("text", "text"),
        ({"template": 1}, {"template": 1}),
        (
            {"template": {}, "permutations": 1},
            {"template": {"apiVersion": API_VERSION}, "permutations": 1},
        ),
        (
            {"template": {"spec": 1}, "permutations": {"product": 2}},
            {
                "template": {"spec": 1, "apiVersion": API_VERSION},
                "permutations": {"product": 2},
            },
        ),
    ],
)
def test_odd_documents_stay_as_they_are(spec: Any, changed: Any) -> None:
    assert kube_perftest.convert({"spec": spec}, API_VERSION)["spec"] == changed


def test_convert_writes_documents_that_need_no_conversion(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli(["bench", "convert", str(FILE)]) == 0
    shown = capsys.readouterr()
    ours = [*yaml.safe_load_all(shown.out)]
    assert [each["kind"] for each in ours] == [each["kind"] for each in DOCUMENTS]
    assert GROUP not in shown.out and GROUP in shown.err
    for mine, original in zip(ours, DOCUMENTS, strict=True):
        assert mine["metadata"] == original["metadata"]
        plan, warnings = plan_of(mine, lambda: ())
        theirs, _ = plan_of(original, lambda: ())
        assert [each.document() for each in plan.benchmarks] == [
            each.document() for each in theirs.benchmarks
        ]
        assert not any("apiVersion" in line for line in warnings)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "no document"), ("kind: IPerf\nspec: {stream: 1}", "stream"), ("[]", "no kind")],
)
def test_convert_refuses_what_cannot_be_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, text: str, problem: str
) -> None:
    (tmp_path / "theirs.yaml").write_text(text)
    assert cli(["bench", "convert", str(tmp_path / "theirs.yaml")]) == 2
    assert problem in capsys.readouterr().err


def theirs(cluster: FakeCluster, **spec: Any) -> None:
    """An object of their group."""
    body = {"apiVersion": API, "kind": "IPerf", "metadata": {"name": "one"}, "spec": spec}
    cluster.put(THEIRS, body)


def copied(cluster: FakeCluster) -> Any:
    """The status of theirs after a pass over it."""
    perftest.reconcile(THEIRS, OURS, cluster, "ns", "one", settings=settings(cluster))  # type: ignore[arg-type]
    return cluster.objects["theirs", "one"]["status"]


def test_an_object_of_their_group_is_measured_as_ours_and_has_its_status() -> None:
    # given one of theirs
    cluster = FakeCluster()
    theirs(cluster, streams=2, duration=5, hostNetwork=True, networkName="a/b")
    # when it is looked at
    assert copied(cluster)["phase"] == "Pending"
    # expect ours, which belongs to it
    mine = cluster.objects["iperfs", "one"]
    assert mine["metadata"]["ownerReferences"][0]["apiVersion"] == API
    assert mine["spec"] == {"streams": 2, "duration": 5, "hostNetwork": True}
    # and its status followed to the end
    look(cluster)
    assert copied(cluster)["phase"] == cluster.objects["iperfs", "one"]["status"]["phase"]
    mine = cluster.objects["iperfs", "one"]
    mine["status"] = {"phase": "Completed", "summary": "5.000 Gbit/s"}
    status = copied(cluster)
    assert (status["phase"], status["summary"]) == ("Completed", "5.000 Gbit/s")
    # and nothing more once it has ended, not even when ours is gone
    del cluster.objects["iperfs", "one"]
    assert copied(cluster) == status and ("iperfs", "one") not in cluster.objects


def test_an_object_of_ours_with_their_name_is_left_alone() -> None:
    cluster = cluster_with()
    theirs(cluster)
    status = copied(cluster)
    assert status["phase"] == "Failed" and "another IPerf one" in status["message"]
    assert "status" not in cluster.objects["iperfs", "one"]
