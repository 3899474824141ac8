"""scaletest config: the settings of a validation, and the schemas of documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from scaletest.cli import options
from scaletest.cli.output import echo


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
    from scaletest.cli import saturate, saturate_file
    from scaletest.kinds import json_schema
    from scaletest.model.schema import DOCUMENTS
    from scaletest.model.schema.check import known
    from scaletest.model.schema.parts import Schema

    all_: dict[str, Callable[[], Schema]] = {
        **DOCUMENTS,
        "benchmark": json_schema.schema,
        saturate_file.NAME: lambda: saturate_file.schema(saturate.command),
    }
    options.show(all_[known(document, all_, "the list of documents")](), output)


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
    from scaletest.cli import plans, validate

    prefix = "SCALETEST_VALIDATE"
    with validate.command.make_context(
        "validate", list(arguments), auto_envvar_prefix=prefix
    ) as context:
        found = [*plans.settings(context), *_others(context)]
        form = context.params["output"]
    if form != "table":
        options.show({one.key: {"value": one.value, "origin": one.origin} for one in found}, form)
        return
    rows = [
        ("setting", "value", "origin"),
        *((one.key, _shown(one.value), one.origin) for one in found),
    ]
    widths = [max(len(row[index]) for row in rows) for index in (0, 1)]
    for key, value, origin in rows:
        echo(f"{key:{widths[0]}}  {value:{widths[1]}}  {origin}")


def _others(context: click.Context) -> list[Any]:
    """The settings of validate that are no part of a plan: where to run, what to print."""
    from scaletest.cli import plans
    from scaletest.model.schema import plan
    from scaletest.model.secrets import masked

    known = {*plan.file()["properties"], "sets"}
    names = [one.name for one in context.command.params if one.name and one.name not in known]
    found = []
    for name in names:
        value, origin = plans.given(context, name)
        found.append(
            plans.Setting(name, masked(value) if isinstance(value, str) else value, origin)
        )
    return found


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value)) or "-"
    return (
        "-"
        if value in (None, "")
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
