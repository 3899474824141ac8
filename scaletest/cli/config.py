"""scaletest config: the settings of a validation, and the schemas of documents."""

from __future__ import annotations

from collections.abc import Callable

import click

from scaletest.analysis.schemas import DOCUMENTS
from scaletest.cli import options as shared
from scaletest.cli import saturate, saturate_options, validate, validate_options
from scaletest.cli.output import Output
from scaletest.kinds import document_schemas
from scaletest.model import plan
from scaletest.model.json_schema import Schema, known
from scaletest.model.texts import masked
from scaletest.render.contents import Table, aligned


@click.group("config")
def command() -> None:
    """Show the settings of a validation and where they come from, and the schemas of documents."""


@command.command()
@click.argument("document", default="result", metavar="[DOCUMENT]")
@shared.output("json", "yaml")
def schema(document: str, output: Output) -> None:
    """Print the JSON Schema (draft 2020-12) of a document.

    \b
    result                what validate --format json prints, and result.json
    plan-file             what validate -f takes
    saturation-plan-file  what saturate -f takes
    plan                  plan.json of a run
    record                a line of records.jsonl: one request
    measurement           a line of steps.jsonl: one measuring of a step
    node-sample           a line of samples.jsonl: what a node and its devices did in one interval
    environment           environment.json of a run
    comparison            what compare --format json prints
    lifecycle             lifecycle.json: what a lifecycle was to do
    lifecycle-result      result.json of a lifecycle, and what lifecycle report prints as JSON
    lifecycle-submission  a line of its submissions.jsonl
    lifecycle-record      a line of its records.jsonl: a workload or a pod
    benchmark             what bench run takes: a benchmark of any kind, or a BenchmarkSet
    """
    schemas: dict[str, Callable[[], Schema]] = {
        **DOCUMENTS,
        "benchmark": document_schemas.schema,
        saturate_options.NAME: lambda: saturate_options.schema(saturate.command),
    }
    output.show(schemas[known(document, schemas, "the list of documents")](), ())


@command.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF validate...]")
def view(arguments: tuple[str, ...]) -> None:
    """Show every setting of validate with its value and where that comes from.

    \b
    scaletest config view
    scaletest config view -f plan.yaml --set limit=16 --repeats 3 --format json

    Takes the options of validate. A flag comes before --set, that before the environment, the plan
    file, the default.
    """
    prefix = "SCALETEST_VALIDATE"
    with validate.command.make_context(
        "validate", list(arguments), auto_envvar_prefix=prefix
    ) as context:
        rows = [*validate_options.settings(context), *_others(context)]
        output, _ = validate_options.parameter(context, "output")
        assert isinstance(output, Output)
    cells = [(row.key, _shown(row.value), row.origin) for row in rows]
    output.show(
        {row.key: {"value": row.value, "origin": row.origin} for row in rows},
        aligned(Table(("setting", "value", "origin"), cells, texts=(0, 1, 2))),
    )


def _others(context: click.Context) -> list[validate_options.Setting]:
    """The settings of validate that are no part of a plan: where to run, what to print."""
    in_plan = {*plan.file()["properties"], "sets", "output", "form"}
    rows = []
    for option in context.command.params:
        if option.name and option.name not in in_plan:
            value, origin = validate_options.parameter(context, option.name)
            shown = masked(value) if isinstance(value, str) else value
            rows.append(validate_options.Setting(option.name, shown, origin))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    if value in (None, ""):
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
