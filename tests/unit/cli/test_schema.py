"""Schemas: they are valid, complete, and every document that is made fits its own."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given

from scaletest.cli.main import run as program
from scaletest.cli.schema import documents
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import LifecycleObject, Stamp
from scaletest.model import Measurement, NodeSample, Record
from scaletest.model.json_schema import DRAFT
from scaletest.runs.environment import read_environment
from scaletest.validation.judging.evaluation import evaluate
from scaletest.validation.judging.thresholds import evaluate_thresholds
from scaletest.validation.plan import Background, Plan
from tests.unit.made import measured
from tests.unit.model.test_model import records
from tests.unit.valid import checked, validator

# what follows from the kinds of benchmarks has tests of its own
DOCUMENTS = {name: schema for name, schema in documents().items() if name != "benchmark"}
SCHEMAS = Path(__file__).parents[2] / "data" / "schemas"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_schema_is_valid_and_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert validator(name).schema["$schema"] == DRAFT
    for form, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        assert program(["schema", name, "--format", form]) == 0
        assert read(capsys.readouterr().out) == validator(name).schema


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_schema_changes_only_where_somebody_means_it(name: str) -> None:
    # after a wanted change: scaletest schema NAME > tests/data/schemas/NAME.json
    assert DOCUMENTS[name]() == json.loads((SCHEMAS / f"{name}.json").read_text("utf-8"))


def test_a_document_that_is_not_known_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert program(["schema", "rezult"]) == 2
    assert "did you mean result?" in capsys.readouterr().err
    assert program(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "scaletest result"


@pytest.mark.parametrize(
    "change", [{"until": "never"}, {"count": -1}, {"more": 1}, {"kind": "validation"}]
)
def test_an_invalid_lifecycle_plan_does_not_fit_its_schema(change: dict[str, Any]) -> None:
    plan = checked(LifecyclePlan("0a1b2c", "job", "n", 3).to_dict(), "lifecycle")
    assert list(validator("lifecycle").iter_errors({**plan, **change}))


def test_a_pod_is_no_workload_and_no_milestone_is_made_up() -> None:
    (line, *_) = LifecycleObject("w", stamps={"created": Stamp(api_s=1.0)}).lines()
    workload = checked(json.loads(line), "lifecycle-record")
    for change in (
        {"record": "pod"},
        {"stamps": {"invented": {"api_s": 1.0}}},
    ):
        assert list(validator("lifecycle-record").iter_errors({**workload, **change}))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(),
        Plan(
            limit=3,
            warmup_s=1,
            command=("x",),
            thresholds=("ratio>1",),
            background=(Background("b"),),
        ),
    ],
)
def test_plans_fit(plan: Plan) -> None:
    checked(plan.to_dict(), "plan")
    wrong = {**plan.to_dict(), "more": 1}
    assert [error.validator for error in validator("plan").iter_errors(wrong)] == [
        "additionalProperties"
    ]
    assert list(validator("plan").iter_errors({**plan.to_dict(), "limit": "8"}))


@given(records)
def test_records_fit(record: Record) -> None:
    checked(json.loads(record.to_json()), "record")


def test_measurements_and_environments_fit() -> None:
    checked(json.loads(Measurement(2, 1, 0.5, 3, "precise").to_json()), "measurement")
    checked(read_environment(["scaletest", "redis://u:p@h"], "/dev/null"), "environment")
    sample = NodeSample("n", "w", 1.5, 1.0, {"device:0": {"busy": 0.5}})
    checked(json.loads(sample.to_json()), "node-sample")


RUNS: dict[str, tuple[dict[int, float], dict[str, Any]]] = {
    "linear": ({1: 0.1, 2: 0.1}, {}),
    "five steps": ({1: 0.1, 2: 0.1, 4: 0.11, 8: 0.13, 16: 0.17}, {"count": 60}),
    "with a peak": ({1: 0.1, 2: 0.12, 4: 0.17, 8: 0.4, 16: 1.2, 32: 4.0}, {"count": 60}),
    "capped": ({1: 0.1, 2: 0.1, 4: 0.1, 8: 0.2, 16: 0.4}, {"count": 60}),
    "repeats": ({1: 0.1, 2: 0.1, 4: 0.11}, {"repeats": 3, "between": 0.02}),
    "two repeats": ({1: 0.1, 2: 0.1}, {"repeats": 2}),
    "failures": ({1: 0.1, 2: 0.1}, {"failed": 3}),
    "only failures": ({1: 0.1}, {"failed": 3, "count": 0}),
    "too few": ({1: 0.1, 2: 0.1}, {"count": 2}),
    "percentiles": ({1: 0.01}, {"count": 3000}),
}


@pytest.mark.parametrize("name", RUNS)
def test_results_fit(name: str) -> None:
    cycles, options = RUNS[name]
    plan = Plan(
        limit=max(cycles),
        repeats=options.get("repeats", 1),
        queue="q",
        background=(Background("b"),),
    )
    measurements, rows = measured(cycles, **options)
    result = evaluate(
        plan, measurements, rows, random.Random(1), interrupted="Ctrl-C", elapsed_s=3.0
    )
    # as it leaves the program
    document = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    checked(document)
    checked({**document, "folder": "/x"})


def test_thresholds_fit() -> None:
    plan = Plan(
        limit=2, queue="q", thresholds=("ratio>1", "efficiency>0.5", "run.p99<1s", "failures<1%")
    )
    measurements, rows = measured({1: 0.1, 2: 0.1})
    result = evaluate(plan, measurements, rows, random.Random(1))
    judged = [threshold.to_dict() for threshold in evaluate_thresholds(plan, result.steps)]
    assert [
        threshold["kind"]
        for threshold in checked({**result.to_dict(), "thresholds": judged})["thresholds"]
    ] == [
        "PASS",
        "PASS",
        "INVALID",
        "PASS",
    ]


def test_an_empty_result_fits_its_schema() -> None:
    checked(evaluate(Plan(), [], {}, random.Random(1)).to_dict())
