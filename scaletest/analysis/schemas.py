"""JSON Schemas (draft 2020-12) of all documents that are written or read, from their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from scaletest.analysis.comparison import Comparison
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.lifecycle.result import LifecycleResult
from scaletest.model import Measurement, NodeSample, Plan, Record, plan
from scaletest.model.json_schema import VERSION, Form, Schema, closed, described, headed
from scaletest.model.lifecycle import (
    OWN_MILESTONES,
    POD_INCIDENTS,
    POD_MILESTONES,
    LifecycleObject,
    LifecyclePlan,
    LifecyclePod,
    Submission,
)
from scaletest.model.measurement import Environment
from scaletest.model.run_progress import ProgressEvent

# Documents that nobody reads have no defaults.
_WRITTEN = Form(defaults=False)


def _result() -> Schema:
    """result.json of a validation; what is printed also has its folder."""
    description = (
        "What a validation found. Seconds, requests per second, parts of 1; what is not known is"
        " null."
    )
    schema = described("result", description, Evaluation, _WRITTEN)
    schema["properties"]["folder"] = _text("where the run is stored; printed, not stored")
    return schema


def _lifecycle() -> Schema:
    """lifecycle.json."""
    return described("lifecycle", "What a lifecycle was to do.", LifecyclePlan)


def _lifecycle_result() -> Schema:
    """result.json of a lifecycle, and what its commands print."""
    schema = described(
        "lifecycle-result",
        "What a lifecycle found. Seconds; what is not known is null.",
        LifecycleResult,
        _WRITTEN,
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
        "stamps": _stamps(OWN_MILESTONES),
    }
    pod = {
        "record": {"const": "pod"},
        "workload": _text("its name"),
        **Form().properties(LifecyclePod),
        "stamps": _stamps((*POD_MILESTONES, *POD_INCIDENTS)),
    }
    rows = [
        {**closed(workload), "description": "what is known of a workload"},
        {**closed(pod), "description": "of the workload before it"},
    ]
    return headed("lifecycle-record", {"oneOf": rows})


def _stamps(milestones: Sequence[str]) -> Schema:
    names = {
        "api_s": "by the API, whole seconds",
        "watch_s": "this machine's clock when it was seen",
        "event_s": "by an Event",
    }
    times = {
        name: {"type": "number", "description": description} for name, description in names.items()
    }
    stamp = closed(times, list(times))
    return {
        **closed(dict.fromkeys(milestones, stamp), milestones),
        "description": "when each milestone was passed, seconds since the epoch; never a guess",
    }


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_CLASSES: Mapping[str, tuple[type, str, Form]] = {
    "plan": (Plan, "The plan of a run.", Form()),
    "record": (Record, "One request that ended.", Form()),
    "measurement": (Measurement, "One measurement of one step.", Form()),
    "node-sample": (
        NodeSample,
        "One sample of the resources and devices of a node.",
        _WRITTEN,
    ),
    "environment": (
        Environment,
        "Machine and versions of a run. What cannot be read is empty.",
        _WRITTEN,
    ),
    "lifecycle-submission": (Submission, "One workload that was submitted.", Form()),
    "progress-event": (
        ProgressEvent,
        "A line of --progress json: how far a run is, after something happened.",
        _WRITTEN,
    ),
    "comparison": (
        Comparison,
        "What comparing a run with others of its type found.",
        _WRITTEN,
    ),
}
DOCUMENTS: Mapping[str, Callable[[], Schema]] = {
    **{
        name: partial(described, name, description, kind, form)
        for name, (kind, description, form) in _CLASSES.items()
    },
    "plan-file": plan.file,
    "result": _result,
    "lifecycle": _lifecycle,
    "lifecycle-result": _lifecycle_result,
    "lifecycle-record": _lifecycle_record,
}
