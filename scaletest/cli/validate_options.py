"""Where the settings of a plan of scaletest validate come from.

A setting comes from a flag, the environment, a plan file, the settings file, or its default, in
this order. A plan file is YAML; its keys are the names of the options with underscores, and
`command`, `thresholds` and `background`. A list given on the command line replaces the file's. The
plan.json of a run is a plan file too.
"""

from __future__ import annotations

from dataclasses import dataclass

import click
from click.core import ParameterSource

from scaletest.cli.options import filled
from scaletest.cli.settings import origin_of
from scaletest.documents import reader
from scaletest.model import Plan
from scaletest.model import plan as schemas
from scaletest.model.errors import UsageError
from scaletest.model.json_schema import Schema, check
from scaletest.model.plan import as_plan
from scaletest.validation.options import new_queue

_HINT = "give a plan file; see: config schema plan-file"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and where its value comes from."""

    key: str
    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class PlanFileOptions:
    """Where settings come from beside their own options."""

    file: str


def plan(context: click.Context) -> tuple[Plan, bool]:
    """The plan that the command line, the environment and the plan file make together; and whether
    they say how many workers it has at most.
    """
    by_key = {setting.key: setting for setting in settings(context)}
    values = {key: setting.value for key, setting in by_key.items()}
    return as_plan(values, new_queue()), not _is_default(by_key["limit"].origin)


def settings(context: click.Context) -> list[Setting]:
    """Every key of a plan file with its value; InvalidValue for one that is unknown or of the wrong
    type.
    """
    schema = schemas.file()
    file = filled(PlanFileOptions, context.params).file
    from_file = read(file, schema) if file else {}
    file_origin = "stdin" if file == "-" else f"file {file}"
    rows = []
    for key, property_schema in schema["properties"].items():
        value, origin = property_schema["default"], "default"
        if key in context.params:
            value, origin = parameter(context, key)
        if key in from_file and _is_default(origin):
            value, origin = from_file[key], file_origin
        rows.append(Setting(key, list(value) if isinstance(value, tuple) else value, origin))
    return rows


def parameter(context: click.Context, name: str) -> tuple[object, str]:
    """The value of an option or argument and its origin: flag, environment VARIABLE, settings
    FILE:LINE or default.
    """
    value, source = context.params[name], context.get_parameter_source(name)
    if source is ParameterSource.ENVIRONMENT:
        return value, f"environment {variable(context, name)}"
    if origin := origin_of(context, name):
        return value, origin
    # an argument of no words counts as typed for some versions of click
    return value, "flag" if source is ParameterSource.COMMANDLINE and value != () else "default"


def _is_default(origin: str) -> bool:
    """Whether it is the default of this program or this user's, which counts less than a plan."""
    return origin.startswith(("default", "settings "))


def variable(context: click.Context, name: str) -> str:
    """The environment variable of an option."""
    option = next(option for option in context.command.params if option.name == name)
    if isinstance(option.envvar, str):
        return option.envvar
    return f"{context.auto_envvar_prefix}_{name.upper()}"


def read(name: str, schema: Schema) -> dict[str, object]:
    """The checked values of a plan file; - is standard input."""
    label = "the plan on standard input" if name == "-" else name
    document = reader.read_file(name, label, _HINT)
    if document is None:
        raise UsageError(
            f"{label} is empty", hint="write one KEY: VALUE a line; see: config schema plan-file"
        )
    if isinstance(document, dict) and "schema_version" in document:
        document = schemas.as_file(document)
    check(document, schema, label)
    return schemas.in_seconds(document)
