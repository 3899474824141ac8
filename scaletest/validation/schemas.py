"""JSON Schemas of a validation's documents."""

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.model.json_schema import Form, Schema, class_schema
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.plan import Plan


def describe_result() -> Schema:
    """Describe result.json of a validation; what is printed also has its folder."""
    description = (
        "What a validation found. Seconds, requests per second, fractions; unknown values are null."
    )
    schema = class_schema("result", description, Evaluation)
    schema["properties"]["folder"] = {
        "type": "string",
        "description": "where the run is stored; printed, not stored",
    }
    return schema


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "plan": partial(class_schema, "plan", "The plan of a run.", Plan),
    "plan-file": partial(
        class_schema, "plan-file", "Settings of scaletest validate -f.", Plan, Form(is_file=True)
    ),
    "result": describe_result,
}
