"""JSON Schemas of a validation's documents."""

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.model.json_schema import Form, Schema, described
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.plan import Plan


def describe_result() -> Schema:
    """Describe result.json of a validation; what is printed also has its folder."""
    description = (
        "What a validation found. Seconds, requests per second, parts of 1; what is not known is"
        " null."
    )
    schema = described("result", description, Evaluation)
    schema["properties"]["folder"] = {
        "type": "string",
        "description": "where the run is stored; printed, not stored",
    }
    return schema


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "plan": partial(described, "plan", "The plan of a run.", Plan),
    "plan-file": partial(
        described, "plan-file", "Settings of scaletest validate -f.", Plan, Form(is_file=True)
    ),
    "result": describe_result,
}
