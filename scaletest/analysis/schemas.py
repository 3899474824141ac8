"""JSON Schemas (draft 2020-12) of all documents that are written or read, from their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.analysis.comparison import Comparison
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model import Measurement, NodeSample, Plan, Record, plan
from scaletest.model.json_schema import VERSION, Form, Schema, closed, described, headed
from scaletest.model.lifecycle import (
    LifecycleObject,
    LifecyclePlan,
    LifecyclePod,
    Submission,
)
from scaletest.model.measurement import Environment
from scaletest.model.run_progress import ProgressEvent


def _result() -> Schema:
    """result.json of a validation; what is printed also has its folder."""
    description = (
        "What a validation found. Seconds, requests per second, parts of 1; what is not known is"
        " null."
    )
    schema = described("result", description, Evaluation)
    schema["properties"]["folder"] = _text("where the run is stored; printed, not stored")
    return schema


def _lifecycle_result() -> Schema:
    """result.json of a lifecycle, and what its commands print."""
    schema = described(
        "lifecycle-result",
        "What a lifecycle found. Seconds; what is not known is null.",
        LifecycleResult,
    )
    schema["properties"]["folder"] = _text("where the run is kept")
    schema["required"].append("folder")
    return schema


def _lifecycle_record() -> Schema:
    """A line of a lifecycle's records.jsonl: a workload, or one of the pods that follow it."""
    workload = {
        "schema_version": VERSION,
        "record": {"const": "workload"},
        **Form().properties(LifecycleObject),
    }
    pod = {
        "record": {"const": "pod"},
        "workload": _text("its name"),
        **Form().properties(LifecyclePod),
    }
    rows = [
        {**closed(workload), "description": "what is known of a workload"},
        {**closed(pod), "description": "of the workload before it"},
    ]
    return headed("lifecycle-record", {"oneOf": rows})


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_CLASSES: Mapping[str, tuple[type, str]] = {
    "plan": (Plan, "The plan of a run."),
    "record": (Record, "One request that ended."),
    "measurement": (Measurement, "One measurement of one step."),
    "node-sample": (
        NodeSample,
        "One sample of the resources and devices of a node.",
    ),
    "environment": (
        Environment,
        "Machine and versions of a run. What cannot be read is empty.",
    ),
    "lifecycle": (LifecyclePlan, "What a lifecycle was to do."),
    "lifecycle-submission": (Submission, "One workload that was submitted."),
    "progress-event": (
        ProgressEvent,
        "A line of --progress json: how far a run is, after something happened.",
    ),
    "comparison": (
        Comparison,
        "What comparing a run with others of its type found.",
    ),
}
DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    **{
        name: partial(described, name, description, kind)
        for name, (kind, description) in _CLASSES.items()
    },
    "plan-file": plan.file,
    "result": _result,
    "lifecycle-result": _lifecycle_result,
    "lifecycle-record": _lifecycle_record,
}
