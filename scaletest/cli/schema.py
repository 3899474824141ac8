"""scaletest schema: the schemas of documents."""

from collections.abc import Callable, Mapping
from functools import partial

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output
from scaletest.model import Measurement, NodeSample, Record, checks
from scaletest.model.environment import Environment
from scaletest.model.json_schema import Schema, class_schema
from scaletest.model.run_progress import ProgressEvent
from scaletest.runs import registry
from scaletest.stats.comparison import Comparison

# The documents that all runs share: class and description by name.
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


@cloup.command("schema")
@click.argument("document", default="result", metavar="[DOCUMENT]")
@shared.output("json", "yaml")
def command(document: str, output: Output) -> None:
    """Print the JSON Schema (draft 2020-12) of a document.

    \b
    scaletest schema plan-file
    scaletest schema benchmark -o benchmark.schema.json

    \b
    result                what validate --format json prints, and result.json
    plan-file             what validate -f takes
    plan                  plan.json of a run
    record                a line of records.jsonl: one request
    measurement           a line of steps.jsonl: one measurement of a step
    node-sample           a line of samples.jsonl: what a node did in one interval
    environment           environment.json of a run
    comparison            what compare --format json prints
    lifecycle             a lifecycle's plan.json: what it was to do
    lifecycle-result      result.json of a lifecycle, as its report prints it
    lifecycle-submission  a line of its submissions.jsonl
    lifecycle-record      a line of its records.jsonl: a workload or a pod
    benchmark             what bench run takes: a benchmark, or a BenchmarkSet
    """
    schemas = documents()
    output.show(schemas[checks.one_of(document, schemas, "document")](), ())


def documents() -> dict[str, Callable[[], Schema]]:
    """Return the functions that make schemas, by the names of the documents.

    They are those of documents that all runs share, and of every run type.
    """
    schemas: dict[str, Callable[[], Schema]] = {
        name: partial(class_schema, name, description, kind)
        for name, (kind, description) in _CLASSES.items()
    }
    for name in registry.TYPES:
        schemas.update(registry.schemas(name))
    return schemas
