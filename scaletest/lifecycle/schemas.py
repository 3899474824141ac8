"""JSON Schemas of a lifecycle run's documents."""

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.lifecycle.judging.result import LifecycleResult
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Submission
from scaletest.model.json_schema import (
    VERSION,
    Form,
    Schema,
    class_schema,
    document_schema,
    object_schema,
)


def _result() -> Schema:
    """Describe result.json of a lifecycle, and what its commands print."""
    schema = class_schema(
        "lifecycle-result",
        "What a lifecycle found. Seconds; unknown values are null.",
        LifecycleResult,
    )
    schema["properties"]["folder"] = {"type": "string", "description": "where the run is kept"}
    schema["required"].append("folder")
    return schema


def _record() -> Schema:
    """Describe a line of a lifecycle's records.jsonl: a workload, or a pod of the one before."""
    workload = {
        "schema_version": VERSION,
        "record": {"const": "workload"},
        **Form().properties(LifecycleObject),
    }
    pod = {
        "record": {"const": "pod"},
        "workload": {"type": "string", "description": "its name"},
        **Form().properties(LifecyclePod),
    }
    return document_schema(
        "lifecycle-record",
        {
            "oneOf": [
                {**object_schema(workload), "description": "what is known of a workload"},
                {**object_schema(pod), "description": "of the workload before it"},
            ]
        },
    )


DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    "lifecycle": partial(class_schema, "lifecycle", "What a lifecycle was to do.", LifecyclePlan),
    "lifecycle-submission": partial(
        class_schema, "lifecycle-submission", "One workload that was submitted.", Submission
    ),
    "lifecycle-result": _result,
    "lifecycle-record": _record,
}
