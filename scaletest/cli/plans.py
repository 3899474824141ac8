"""Where the settings of a validation come from: flag, --set, environment, plan file, default, in
this order.

A plan file is YAML; its keys are the names of the options with underscores, and `command`,
`thresholds` and `background`. A list given on the command line replaces the file's. The plan.json
of a run is a plan file too.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from scaletest.documents import reader
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.model import Plan
    from scaletest.model.schema import Schema

F = TypeVar("F", bound=Callable[..., Any])
_HINT = "give a plan file; see: config schema plan-file"


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, and where its value comes from."""

    key: str
    value: Any
    origin: str


def options(function: F) -> F:
    """-f, --set and --threshold."""
    for option in (
        click.option(
            "--threshold",
            "thresholds",
            multiple=True,
            envvar="SCALETEST_VALIDATE_THRESHOLD",
            metavar="EXPR",
            help=(
                "Further condition of a PASS, as in 'efficiency(8)>=0.8' or 'wait.p95<200ms'; may"
                " be repeated."
            ),
        ),
        click.option(
            "--set",
            "sets",
            multiple=True,
            envvar="SCALETEST_VALIDATE_SET",
            metavar="KEY=VALUE",
            help="Override one key of the plan file; may be repeated.",
        ),
        click.option(
            "-f",
            "--file",
            default="",
            metavar="PLAN",
            help="Take settings from a YAML file; -: from stdin.",
        ),
    ):
        function = option(function)
    return function


def plan(
    context: click.Context, queue: str, devices: Callable[[dict[str, Any]], int] = lambda values: 0
) -> Plan:
    """The plan that the command line, the environment and the plan file make together, on that
    queue.

    devices: counts those of a plan, where it matters.
    """
    from scaletest.model.schema.plan import as_plan

    found = settings(context)
    values = {one.key: one.value for one in found}
    count = devices(values)
    if count and len(values["per_device"]) > 1:
        most = values["per_device"][-1] * count
        limit = next(one for one in found if one.key == "limit")
        if limit.origin != "default" and limit.value < most:
            raise UsageError(
                f"limit is {limit.value}, fewer than {values['per_device'][-1]} workers on each of"
                f" {count} devices",
                hint="leave it out: a run that compares numbers of workers fills all devices",
            )
        values["limit"] = most
    return as_plan(values, queue, count)


def settings(context: click.Context) -> list[Setting]:
    """Every key of a plan file with its value; InvalidValue for one that is unknown or of the wrong
    type.
    """
    from scaletest.model.schema import plan as schemas

    schema = schemas.file()
    file, sets = str(context.params["file"]), context.params["sets"]
    from_file = read(file, schema) if file else {}
    from_sets = dict(parse_set(text, schema) for text in sets)
    found = []
    for key, one in schema["properties"].items():
        value, origin = (
            given(context, key) if key in context.params else (one["default"], "default")
        )
        if key in from_sets and origin != "flag":
            value, origin = from_sets[key], "--set"
        elif key in from_file and origin == "default":
            value, origin = from_file[key], "stdin" if file == "-" else f"file {file}"
        found.append(Setting(key, list(value) if isinstance(value, tuple) else value, origin))
    return found


def given(context: click.Context, name: str) -> tuple[Any, str]:
    """The value of an option or argument and its origin: flag, environment VARIABLE or default."""
    value, source = context.params[name], context.get_parameter_source(name)
    if source is ParameterSource.ENVIRONMENT:
        return value, f"environment {variable(context, name)}"
    # an argument of no words counts as given for some versions of click
    return value, "flag" if source is ParameterSource.COMMANDLINE and value != () else "default"


def variable(context: click.Context, name: str) -> str:
    """The environment variable of an option."""
    option = next(one for one in context.command.params if one.name == name)
    if isinstance(option.envvar, str):
        return option.envvar
    return f"{context.auto_envvar_prefix}_{name.upper()}"


def read(name: str, schema: Schema) -> dict[str, Any]:
    """The checked values of a plan file; - is standard input."""
    from scaletest.model.schema import plan as schemas
    from scaletest.model.schema.check import check

    what = "the plan on standard input" if name == "-" else name
    data = reader.read_file(name, what, _HINT)
    if data is None:
        raise UsageError(
            f"{what} is empty", hint="write one KEY: VALUE a line; see: config schema plan-file"
        )
    if isinstance(data, dict) and "schema_version" in data:
        data = schemas.as_file(data)
    check(data, schema, what)
    return dict(data)


def parse_set(text: str, schema: Schema) -> tuple[str, Any]:
    """Key and checked value of one --set. Lists are words as in a shell, or YAML in brackets."""
    from scaletest.model.schema.check import check, known

    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"--set {text!r} has no value", hint="write --set KEY=VALUE, as in --set limit=8"
        )
    one = schema["properties"][known(key.strip(), schema["properties"], "the plan")]
    found = _value(value.strip(), one)
    check(found, one, f"{key.strip()} of --set")
    return key.strip(), found


def _value(text: str, schema: Schema) -> Any:
    """The text as a value of that schema; as it is when it cannot be read, for the check to say
    so.
    """
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    try:
        if "array" in types and text.startswith("["):
            return reader.read(text, f"--set {text}", _HINT)
        if "array" in types and schema["items"]["type"] == "integer":
            return [int(one) for one in text.replace(",", " ").split()]
        if "array" in types:
            return shlex.split(text)
        if "null" in types and text in ("", "null"):
            return None
        if "integer" in types:
            return int(text)
        return float(text) if "number" in types else text
    except ValueError:
        return text
