"""Documents of benchmarks: the schemas that editors and Kubernetes take agree with the reader on
what is right and wrong; those of kube-perftest are read as they are, converted, and served in their
own API group.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from jsonschema import Draft202012Validator

from scaletest.benchmarks import benchmark, document_schemas, kube_perftest
from scaletest.benchmarks.commands.bench_explain import explained
from scaletest.benchmarks.kinds.registry import API_VERSION, KINDS
from scaletest.benchmarks.objects.manifests import MULTUS, job
from scaletest.benchmarks.operator import benchmark_reconciler, perftest
from scaletest.benchmarks.sweep import plan_of
from scaletest.cli.main import run as cli
from scaletest.model.errors import InvalidValue
from scaletest.model.file_documents import read_written
from scaletest.model.writing import members, plain
from tests.unit.fake_cluster import FakeCluster, cluster_with, look, settings


@lru_cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(document_schemas.schema())
    return jsonschema.Draft202012Validator(document_schemas.schema())


def a_set(**spec: Any) -> dict[str, Any]:
    return {"kind": "BenchmarkSet", "spec": {"template": {"kind": "IPerf"}, **spec}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_every_kind_fits(kind: str) -> None:
    validator().validate(yaml.safe_load(explained(kind)[0]["example"]))


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "IPerf"},
        {
            "apiVersion": "perftest.stackhpc.com/v1alpha1",
            "kind": "Fio",
            "spec": {"rw": "rw,readwrite"},
        },
        a_set(
            permutations={"product": {"streams": [1, 2]}, "explicit": [{"mtu": None}]},
            thresholds=["bandwidth>=1"],
        ),
        a_set(
            permutations={
                "product": {"nodes": {"combinations": {"length": 2, "source": {"nodes": {}}}}}
            }
        ),
        {
            "kind": "BenchmarkSet",
            "spec": {
                "template": {"kind": "IPerf", "spec": {"streams": "{{ p.n }}"}},
                "matrix": {"product": {"n": [1, 2]}},
            },
        },
    ],
)
def test_a_document_that_is_read_fits_the_schema(document: dict[str, Any]) -> None:
    from scaletest.benchmarks.measure.runner import Node

    plan_of(document, lambda: [Node("a", {}), Node("b", {})])
    validator().validate(document)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "Netperf"},
        {"kind": "IPerf", "stream": 1},
        {"kind": "IPerf", "apiVersion": "apps/v1"},
        {"kind": "IPerf", "spec": {"stream": 1}},
        {"kind": "IPerf", "spec": {"streams": 0}},
        {"kind": "IPerf", "spec": {"streams": "many"}},
        {"kind": "IPerf", "metadata": {"name": "No Name"}},
        {"kind": "IPerf", "spec": {"server": {"label": {}}}},
        a_set(repetitions=0),
        a_set(order="backwards"),
        {"kind": "BenchmarkSet", "spec": {"template": {"kind": "IPerf", "spec": {"stream": 1}}}},
        {"kind": "BenchmarkSet", "spec": {}},
    ],
)
def test_a_document_that_is_refused_does_not_fit_the_schema(document: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        plan_of(document, list)
    assert list(validator().iter_errors(document))


def test_the_command_line_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli(["schema", "benchmark", "--format", "yaml"]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == document_schemas.schema()


DEFINITIONS = {
    definition["spec"]["names"]["kind"]: definition for definition in document_schemas.definitions()
}


def schema_of(name: str) -> dict[str, Any]:
    schema = DEFINITIONS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(schema, dict)
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from walk(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from walk(schema[key], f"{path}[]")


@pytest.mark.parametrize("name", DEFINITIONS)
def test_a_schema_is_structural(name: str) -> None:
    for path, schema in walk(schema_of(name)):
        assert "type" in schema, path
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert schema["type"] != "array" or "items" in schema, path
        if "default" in schema:
            jsonschema.validate(schema["default"], schema)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_every_printer_column_shows_an_existing_field(name: str) -> None:
    version = DEFINITIONS[name]["spec"]["versions"][0]
    paths = {path for path, _ in walk(schema_of(name))}
    titles = [column["name"] for column in version["additionalPrinterColumns"]]
    columns = version["additionalPrinterColumns"]
    # pods are by role, and the first of a role is shown
    shown = {re.sub(r"\.\w+\[0\]", "[][]", column["jsonPath"]) for column in columns}
    assert shown <= paths
    assert len(set(titles)) == len(titles)
    assert version["subresources"] == {"status": {}}
    assert re.fullmatch(r"[a-z]+\.scaletest\.dev", DEFINITIONS[name]["metadata"]["name"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_schema_accepts_and_refuses_the_same_documents_as_the_reader(kind: Any) -> None:
    spec = schema_of(kind.name)["properties"]["spec"]
    spec_of_kind = benchmark.read({"kind": kind.name}).spec
    whole = {member.name: plain(member.default) for member in members(kind.spec)}
    assert read_written(kind.spec, whole, "the spec") == spec_of_kind
    assert set(whole) == set(spec["properties"])
    jsonschema.validate({name: value for name, value in whole.items() if value is not None}, spec)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"ipFamily": "IPX"}, spec)


def test_columns_are_the_originals_and_more() -> None:
    columns = [
        column["name"]
        for column in DEFINITIONS["IPerf"]["spec"]["versions"][0]["additionalPrinterColumns"]
        if not column.get("priority")
    ]
    assert {
        "Host Network",
        "Network Name",
        "Duration",
        "Streams",
        "Status",
        "Started",
        "Finished",
        "Result",
    } <= set(columns)
    counts = [
        column["name"]
        for column in DEFINITIONS["BenchmarkSet"]["spec"]["versions"][0]["additionalPrinterColumns"]
    ]
    assert {"Permutations", "Repetitions", "Count", "Succeeded", "Failed", "Finished"} <= set(
        counts
    )
    assert DEFINITIONS["RDMALatency"]["spec"]["names"]["plural"] == "rdmalatencies"


@pytest.mark.parametrize("kind", ["IPerf", "RDMABandwidth", "RDMALatency"])
def test_network_kinds_have_columns_of_their_network_and_addresses(kind: str) -> None:
    (version,) = DEFINITIONS[kind]["spec"]["versions"]
    columns = {column["name"] for column in version["additionalPrinterColumns"]}
    assert {"Network Name", "MTU", "Server IP", "Client IP"} <= columns


def test_the_schema_admits_aliases_and_refuses_unknown_solvers() -> None:
    fio = schema_of("Fio")["properties"]["spec"]["properties"]["rw"]
    assert {"rw", "readwrite", "rw,readwrite"} <= set(fio["enum"])
    foam = schema_of("OpenFOAM")["properties"]["spec"]["properties"]["iterativeMethod"]
    assert not any("PETSc" in solver for solver in foam["enum"])


FILE = Path(__file__).parents[1] / "samples" / "kube-perftest.yaml"
DOCUMENTS = [*yaml.safe_load_all(FILE.read_text("utf-8"))]
GROUP = "perftest.stackhpc.com"
API = f"{GROUP}/v1alpha1"
OURS = benchmark_reconciler.resource(KINDS["IPerf"])
THEIRS = replace(OURS, api=f"/apis/{API}", plural="theirs")


def by_kind(document: Any) -> str:
    return str(document["kind"])


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_kind)
def test_every_document_of_the_readme_is_accepted_as_it_is(document: Any) -> None:
    plan, warnings = plan_of(document, lambda: ())
    assert plan.name == document["metadata"]["name"]
    assert plan.counted == (15 if document["kind"] == "BenchmarkSet" else 1)
    assert f"apiVersion {API} is read as {API_VERSION}" in warnings


@pytest.mark.parametrize("document", DOCUMENTS, ids=by_kind)
def test_their_definitions_admit_every_document(document: Any) -> None:
    (definition,) = [
        each
        for each in document_schemas.definitions(GROUP)
        if (each["spec"]["group"], each["spec"]["names"]["kind"]) == (GROUP, document["kind"])
    ]
    plural = definition["spec"]["names"]["plural"]
    assert definition["metadata"]["name"] == f"{plural}.{GROUP}"
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    properties = schema["properties"]["spec"]
    Draft202012Validator(properties).validate(document["spec"])
    assert set(document["spec"]) <= set(properties["properties"])


def test_without_their_group_there_are_our_definitions_alone() -> None:
    assert document_schemas.definitions() == document_schemas.definitions(GROUP)[: len(KINDS) + 1]
    assert len(document_schemas.definitions(GROUP)) == len(KINDS) + 2 + len(kube_perftest.KINDS)


def test_a_network_of_the_pod_is_ignored_with_that_of_the_node() -> None:
    spec = {"hostNetwork": True, "networkName": "ns/net", "mtu": 9000, "streams": 8}
    on_node = benchmark.read({"apiVersion": API, "kind": "IPerf", "spec": spec})
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
    changed = kube_perftest.converted({"kind": "BenchmarkSet", "spec": spec}, API_VERSION)["spec"]
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
    assert kube_perftest.converted({"spec": spec}, API_VERSION)["spec"] == changed


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
    perftest.reconcile(THEIRS, OURS, cluster, settings(cluster), "ns", "one")  # type: ignore[arg-type]
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
    mine["status"] = {"phase": "Completed", "summary": "5.000 Gbit/s", "observedGeneration": 7}
    status = copied(cluster)
    assert (status["phase"], status["summary"]) == ("Completed", "5.000 Gbit/s")
    assert "observedGeneration" not in status
    # and nothing more once it has ended, not even when ours is gone
    del cluster.objects["iperfs", "one"]
    assert copied(cluster) == status and ("iperfs", "one") not in cluster.objects


def test_an_object_of_ours_with_their_name_is_left_alone() -> None:
    cluster = cluster_with()
    theirs(cluster)
    status = copied(cluster)
    assert status["phase"] == "Failed" and "another IPerf one" in status["message"]
    assert "status" not in cluster.objects["iperfs", "one"]
