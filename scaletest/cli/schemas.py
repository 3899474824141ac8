"""JSON Schemas (draft 2020-12) of all documents that are written or read, from their classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from scaletest.model import Measurement, NodeSample, Record
from scaletest.model.environment import Environment
from scaletest.model.json_schema import Schema, described
from scaletest.model.run_progress import ProgressEvent
from scaletest.runs import registry
from scaletest.stats.comparison import Comparison

_CLASSES: Mapping[str, tuple[type, str]] = {
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
    "progress-event": (
        ProgressEvent,
        "A line of --progress json: how far a run is, after something happened.",
    ),
    "comparison": (
        Comparison,
        "What comparing a run with others of its type found.",
    ),
}


def documents() -> dict[str, Callable[[], Schema]]:
    """Return what makes the schema of each document, by the document's name: those that all runs
    share, and those of every run type.
    """
    schemas: dict[str, Callable[[], Schema]] = {
        name: partial(described, name, description, kind)
        for name, (kind, description) in _CLASSES.items()
    }
    for name in registry.TYPES:
        schemas.update(registry.schemas(name))
    return schemas
