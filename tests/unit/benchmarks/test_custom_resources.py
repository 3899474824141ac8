"""CustomResourceDefinitions of the kinds and of the set."""

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from scaletest.benchmarks.documents import benchmark, custom_resources
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.model.file_documents import read_file_document
from scaletest.model.writing import document_members, to_plain

DEFINITIONS = {
    definition["spec"]["names"]["kind"]: definition
    for definition in custom_resources.make_definitions()
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
    spec_of_kind = benchmark.read_benchmark({"kind": kind.name}).spec
    whole = {member.name: to_plain(member.default) for member in document_members(kind.spec)}
    assert read_file_document(kind.spec, whole, "the spec") == spec_of_kind
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
