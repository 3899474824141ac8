"""Where the settings of a plan of scaletest validate come from.

A setting comes from a flag, --set, the environment, a plan file, the settings file, or its default,
in this order. A plan file is YAML; its keys are the names of the options with underscores, and
`command`, `thresholds` and `background`. A list given on the command line replaces the file's. The
plan.json of a run is a plan file too.
"""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, get_args, get_origin

import click
import msgspec
from click.core import ParameterSource

from scaletest.cli.options import filled
from scaletest.documents import reader
from scaletest.model import Plan
from scaletest.model.declared import (
    Declared,
    declared,
    file_values,
    known_key,
    read_members,
    read_value,
)
from scaletest.model.errors import UsageError
from scaletest.model.plan import FILE_MEMBERS
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
    named = filled(PlanFileOptions, context.params)
    from_file = read(named.file) if named.file else {}
    from_sets = dict(map(parse_set, named.sets))
    values, given = {}, set()
    for key, member in FILE_MEMBERS.items():
        name = member.attribute
        source = context.get_parameter_source(key)
        if source is ParameterSource.COMMANDLINE:
            values[name] = context.params[key]
        elif name in from_sets:
            values[name] = from_sets[name]
        elif source is ParameterSource.ENVIRONMENT:
            values[name] = context.params[key]
        elif name in from_file:
            values[name] = from_file[name]
        else:
            # of the settings file, which counts less than a plan, or of this program
            values[name] = context.params.get(key, member.default)
            continue
        given.add(name)
    return Plan(queue=new_queue(), **values), "limit" in given


def read(name: str) -> dict[str, Any]:
    """The values of a plan file by the plan's attributes; - is standard input."""
    label = "the plan on standard input" if name == "-" else name
    document = reader.read_file(name, label, _HINT)
    if document is None:
        raise UsageError(
            f"{label} is empty", hint="write one KEY: VALUE a line; see: scaletest schema plan-file"
        )
    if isinstance(document, dict) and "schema_version" in document:
        document = file_values(Plan.from_dict(document))
    return read_members(Plan, document, label)


def parse_set(text: str) -> tuple[str, Any]:
    """The plan's attribute and the value of one --set. Lists are words as in a shell, or YAML in
    brackets.
    """
    key, equals, value = text.partition("=")
    if not equals:
        raise UsageError(
            f"--set {text!r} has no value", hint="write --set KEY=VALUE, as in --set limit=8"
        )
    key = key.strip()
    member = known_key(key, FILE_MEMBERS, "the plan")
    return member.attribute, read_value(
        member.hint, _value(value.strip(), member.rule), key, "--set"
    )


def _value(text: str, rule: Declared) -> Any:
    """The text as a value of that type; as it is when it is none, for `read_value` to say so."""
    if rule.optional and text in ("", "null"):
        return None
    if get_origin(rule.base) is not tuple:
        with suppress(msgspec.ValidationError, UnicodeEncodeError):
            return msgspec.convert(text, rule.base, strict=False)
    elif text.startswith("["):
        return reader.read(text, f"--set {text}", "write a YAML list, as in [1, 2]")
    elif declared(get_args(rule.base)[0]).base is int:
        with suppress(ValueError):
            return list(map(int, text.replace(",", " ").split()))
    else:
        with suppress(ValueError):
            return shlex.split(text)
    return text
