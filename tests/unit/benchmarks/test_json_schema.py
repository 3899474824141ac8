"""The schema that editors take agrees with the reader on what is right and wrong."""

from functools import lru_cache
from typing import Any

import jsonschema
import pytest
import yaml

from scaletest.benchmarks.commands.bench_explain import write_example
from scaletest.benchmarks.documents import json_schema
from scaletest.benchmarks.documents.sweep import plan_of
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.cli.main import run as cli
from scaletest.model.errors import InvalidValue


@lru_cache
def validator() -> jsonschema.Draft202012Validator:
    jsonschema.Draft202012Validator.check_schema(json_schema.benchmark_schema())
    return jsonschema.Draft202012Validator(json_schema.benchmark_schema())


def a_set(**spec: Any) -> dict[str, Any]:
    return {"kind": "BenchmarkSet", "spec": {"template": {"kind": "IPerf"}, **spec}}


@pytest.mark.parametrize("kind", KINDS)
def test_the_example_of_every_kind_fits(kind: str) -> None:
    validator().validate(yaml.safe_load(write_example(KINDS[kind])))


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
    from scaletest.benchmarks.documents import Node

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
    assert yaml.safe_load(capsys.readouterr().out) == json_schema.benchmark_schema()
