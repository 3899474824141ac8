"""scaletest schema: the schemas of documents."""

from __future__ import annotations

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output
from scaletest.cli.schemas import documents
from scaletest.model import checks


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
    saturation-plan-file  what saturate -f takes
    plan                  plan.json of a run
    record                a line of records.jsonl: one request
    measurement           a line of steps.jsonl: one measuring of a step
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
