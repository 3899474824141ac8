"""Where the settings of a plan of scaletest validate come from.

A setting comes from a flag, --set, the environment, a plan file, the settings file, or its default,
in this order. A plan file is YAML; its keys are the names of the options with underscores, and
`command`, `thresholds` and `background`. A list given on the command line replaces the file's. The
plan.json of a run is a plan file too.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

import click
from click.core import ParameterSource

from scaletest.cli.options import filled
from scaletest.documents import reader
from scaletest.model import Plan
from scaletest.model import plan as schemas
from scaletest.model.errors import UsageError
from scaletest.model.json_schema import Schema, check, known, type_names
from scaletest.model.plan import as_plan
from scaletest.validation.options import new_queue

_HINT = "give a plan file; see: scaletest schema plan-file"


@dataclass(frozen=True, slots=True)
class PlanFileOptions:
    """Where settings come from beside their own options."""

    file: str
    sets: tuple[str, ...]


def plan(context: click.Context) -> tuple[Plan, bool]:
    """Return the plan that the command line, the environment and the plan file make together; and
    whether they say how many workers it has at most.

    InvalidValue for an unknown key, or a value of the wrong type.
    """
    schema = schemas.file()
    named = filled(PlanFileOptions, context.params)
    from_file = read(named.file, schema) if named.file else {}
    from_sets = dict(parse_set(text, schema) for text in named.sets)
    values, given = {}, set()
    for key, property_schema in schema["properties"].items():
        source = context.get_parameter_source(key)
        if source is ParameterSource.COMMANDLINE:
            values[key] = context.params[key]
        elif key in from_sets:
            values[key] = from_sets[key]
        elif source is ParameterSource.ENVIRONMENT:
            values[key] = context.params[key]
        elif key in from_file:
            values[key] = from_file[key]
        else:
            # of the settings file, which counts less than a plan, or of this program
            values[key] = context.params.get(key, property_schema["default"])
            continue
        given.add(key)
    values = {
        key: list(value) if isinstance(value, tuple) else value for key, value in values.items()
    }
    return as_plan(values, new_queue()), "limit" in given


def read(name: str, schema: Schema) -> dict[str, object]:
    """The checked values of a plan file; - is standard input."""
    label = "the plan on standard input" if name == "-" else name
    document = reader.read_file(name, label, _HINT)
    if document is None:
        raise UsageError(
            f"{label} is empty", hint="write one KEY: VALUE a line; see: scaletest schema plan-file"
        )
    if isinstance(document, dict) and "schema_version" in document:
        document = schemas.as_file(document)
    check(document, schema, label)
    return schemas.in_seconds(document)


def parse_set(text: str, schema: Schema) -> tuple[str, object]:
    """Key and checked value of one --set. Lists are words as in a shell, or YAML in brackets."""
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"--set {text!r} has no value", hint="write --set KEY=VALUE, as in --set limit=8"
        )
    key = known(key.strip(), schema["properties"], "the plan")
    key_schema = schema["properties"][key]
    setting = _value(value.strip(), key_schema)
    check(setting, key_schema, f"{key} of --set")
    return key, schemas.in_seconds({key: setting})[key]


def _value(text: str, schema: Schema) -> object:
    """The text as a value of that schema; as it is when it cannot be read, for the check to say
    so.
    """
    types = type_names(schema)
    if "null" in types and text in ("", "null"):
        return None
    try:
        if "array" in types:
            return _list(text, schema)
        if "integer" in types:
            return int(text)
        return float(text) if "number" in types else text
    except ValueError:
        return text


def _list(text: str, schema: Schema) -> object:
    if text.startswith("["):
        return reader.read(text, f"--set {text}", "write a YAML list, as in [1, 2]")
    if schema["items"]["type"] == "integer":
        return list(map(int, text.replace(",", " ").split()))
    return shlex.split(text)
