"""scaletest config: the settings of a validation, and the schemas of documents."""

from __future__ import annotations

from collections.abc import Callable

import click

from scaletest.cli import options as shared
from scaletest.cli import plans, saturate, saturate_file, validate
from scaletest.cli.options import filled
from scaletest.cli.output import echo
from scaletest.cli.validate_options import ValidateOptions
from scaletest.kinds import json_schema
from scaletest.model.schema import DOCUMENTS, plan
from scaletest.model.schema.check import known
from scaletest.model.schema.parts import Schema
from scaletest.model.secrets import masked


@click.group("config")
def command() -> None:
    """Show the settings of a validation and where they come from, and the schemas of documents."""


@command.command()
@click.argument("document", default="result", metavar="[DOCUMENT]")
@click.option(
    "-o", "--output", type=click.Choice(["json", "yaml"]), default="json", show_default=True
)
def schema(document: str, output: str) -> None:
    """Print the JSON Schema (draft 2020-12) of a document.

    \b
    result                what validate -o json prints, and result.json
    plan-file             what validate -f takes
    saturation-plan-file  what saturate -f takes
    plan                  plan.json of a run
    record                a line of records.jsonl: one request
    measurement           a line of steps.jsonl: one measuring of a step
    node-sample           a line of samples.jsonl: what a node and its devices did in one interval
    environment           environment.json of a run
    comparison            what compare -o json prints
    lifecycle             lifecycle.json: what a lifecycle was to do
    lifecycle-result      result.json of a lifecycle, and what lifecycle report -t json prints
    lifecycle-submission  a line of its submissions.jsonl
    lifecycle-record      a line of its records.jsonl: a workload or a pod
    lifecycle-comparison  what lifecycle compare prints
    benchmark             what bench run takes: a benchmark of any kind, or a BenchmarkSet
    """
    schemas: dict[str, Callable[[], Schema]] = {
        **DOCUMENTS,
        "benchmark": json_schema.schema,
        saturate_file.NAME: lambda: saturate_file.schema(saturate.command),
    }
    shared.show(schemas[known(document, schemas, "the list of documents")](), output)


@command.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF validate...]")
def view(arguments: tuple[str, ...]) -> None:
    """Show every setting of validate with its value and where that comes from.

    \b
    scaletest config view
    scaletest config view -f plan.yaml --set limit=16 --repeats 3 -o json

    Takes the options of validate. A flag comes before --set, that before the environment, the plan
    file, the default.
    """
    prefix = "SCALETEST_VALIDATE"
    with validate.command.make_context(
        "validate", list(arguments), auto_envvar_prefix=prefix
    ) as context:
        rows = [*plans.settings(context), *_others(context)]
        form = filled(ValidateOptions, context.params).output
    if form != "table":
        by_key = {row.key: {"value": row.value, "origin": row.origin} for row in rows}
        shared.show(by_key, form)
        return
    cells = [("setting", "value", "origin")]
    cells += [(row.key, _shown(row.value), row.origin) for row in rows]
    key_width = max(len(line[0]) for line in cells)
    value_width = max(len(line[1]) for line in cells)
    for key, value, origin in cells:
        echo(f"{key:{key_width}}  {value:{value_width}}  {origin}")


def _others(context: click.Context) -> list[plans.Setting]:
    """The settings of validate that are no part of a plan: where to run, what to print."""
    in_plan = {*plan.file()["properties"], "sets"}
    rows = []
    for option in context.command.params:
        if option.name and option.name not in in_plan:
            value, origin = plans.parameter(context, option.name)
            shown = masked(value) if isinstance(value, str) else value
            rows.append(plans.Setting(option.name, shown, origin))
    return rows


def _shown(value: object) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    if value in (None, ""):
        return "-"
    return str(value).lower() if isinstance(value, bool) else str(value)
