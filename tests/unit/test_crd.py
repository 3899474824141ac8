"""Definitions for Kubernetes: structural schemas, columns that exist, and documents that they
accept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from scaletest.kinds import benchmark, crd, fields
from scaletest.kinds.registry import KINDS

DEFINITIONS = {one["spec"]["names"]["kind"]: one for one in crd.definitions()}


def schema_of(name: str) -> dict[str, Any]:
    found = DEFINITIONS[name]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    assert isinstance(found, dict)
    return found


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
def test_every_column_shows_a_field_that_there_is(name: str) -> None:
    version = DEFINITIONS[name]["spec"]["versions"][0]
    paths = {path for path, _ in walk(schema_of(name))}
    titles = [column["name"] for column in version["additionalPrinterColumns"]]
    assert all(column["jsonPath"] in paths for column in version["additionalPrinterColumns"])
    assert len(set(titles)) == len(titles)
    assert version["subresources"] == {"status": {}}
    assert re.fullmatch(r"[a-z]+\.scaletest\.dev", DEFINITIONS[name]["metadata"]["name"])


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_schema_accepts_what_we_write_and_refuses_what_we_refuse(kind: Any) -> None:
    spec = schema_of(kind.name)["properties"]["spec"]
    whole = fields.written(benchmark.read({"kind": kind.name}).spec)
    assert set(whole) == set(spec["properties"])
    plain = {name: value for name, value in whole.items() if value is not None}
    jsonschema.validate(plain, spec)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"ipFamily": "IPX"}, spec)


def test_columns_are_the_originals_and_more() -> None:
    columns = [
        one["name"]
        for one in DEFINITIONS["IPerf"]["spec"]["versions"][0]["additionalPrinterColumns"]
    ]
    assert {
        "Host Network",
        "Duration",
        "Streams",
        "Status",
        "Started",
        "Finished",
        "Result",
    } <= set(columns)
    counts = [
        one["name"]
        for one in DEFINITIONS["BenchmarkSet"]["spec"]["versions"][0]["additionalPrinterColumns"]
    ]
    assert {"Permutations", "Repetitions", "Count", "Succeeded", "Failed", "Finished"} <= set(
        counts
    )
    assert DEFINITIONS["RDMALatency"]["spec"]["names"]["plural"] == "rdmalatencies"


def test_an_alias_gets_past_admission_and_what_cannot_work_does_not() -> None:
    fio = schema_of("Fio")["properties"]["spec"]["properties"]["rw"]
    assert {"rw", "readwrite", "rw,readwrite"} <= set(fio["enum"])
    foam = schema_of("OpenFOAM")["properties"]["spec"]["properties"]["iterativeMethod"]
    assert not any("PETSc" in one for one in foam["enum"])
