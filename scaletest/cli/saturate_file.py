"""The plan file of scaletest saturate: its schema, and how it is read. Its keys are the flags with
underscores.

Both are made from the options, so that a key is described once. The original tool's configuration
file is understood too (`compat.article`). Every error names the file, the key, what is wrong
and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping

import click

from scaletest.cli.durations import DURATION
from scaletest.compat import article
from scaletest.documents import reader
from scaletest.model.errors import UsageError
from scaletest.model.schema import Schema, parts
from scaletest.model.schema.check import check, known

NAME = "saturation-plan-file"
# What says where the file is, who reads it, or how something is shown is no setting of a run.
_NO_SETTINGS = ("file", "agent", "dry_run", "restore", "output")


def schema(command: click.Command) -> Schema:
    """JSON Schema of a plan file. Every key may be left out."""
    properties = {key: _schema(option) for key, option in settings(command).items()}
    return parts.document(NAME, "Settings of scaletest saturate -f.", properties, tuple(properties))


def settings(command: click.Command) -> dict[str, click.Parameter]:
    """The options by their keys: the flag's name with underscores."""
    return {_key(option): option for option in command.params if option.name not in _NO_SETTINGS}


def read(name: str, command: click.Command) -> dict[str, object]:
    """The settings of a plan file by the option's name; InvalidValue or UsageError names the key
    that is wrong.
    """
    label = "the plan on standard input" if name == "-" else name
    data = reader.read_file(name, label, f"give a plan file; see: config schema {NAME}")
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise UsageError(
            f"{label} is no mapping of settings", hint="write KEY: VALUE, as in url: http://..."
        )
    if article.is_settings(data):
        data = article.settings(data)
    named = settings(command)
    return {
        str(named[known(key, named, label)].name): _value(named[key], value, f"{key} in {label}")
        for key, value in data.items()
    }


def _key(option: click.Parameter) -> str:
    if isinstance(option, click.Option):
        return max(option.opts, key=len).lstrip("-").replace("-", "_")
    return option.name or ""


def _many(option: click.Parameter) -> bool:
    return option.multiple if isinstance(option, click.Option) else option.nargs == -1


def _schema(option: click.Parameter) -> Schema:
    """Type, description and default of a key."""
    description = getattr(option, "help", None) or "arguments of the requests on a queue"
    kind = option.type
    if _many(option):
        types = ["string", "integer", "number"]
        return {
            "type": [*types, "array"],
            "items": {"type": types},
            "description": description,
        }
    if isinstance(kind, click.Choice):
        # its type is said too: that is what a value is checked for first
        return {
            "type": "string",
            **parts.one_of(list(kind.choices), description),
            "default": option.default,
        }
    if isinstance(kind, click.types.BoolParamType):
        return {"type": "boolean", "description": description, "default": option.default is True}
    names: Mapping[object, str | list[str]] = {
        click.INT: "integer",
        click.FLOAT: "number",
        DURATION: ["number", "string"],
    }
    return {
        "type": names.get(kind, "string"),
        "description": description,
        "default": option.default,
    }


def _value(option: click.Parameter, value: object, label: str) -> object:
    """A value as click takes it. InvalidValue or UsageError unless it is of the key's type and can
    be read.
    """
    check(value, _schema(option), label)
    if _many(option):
        return list(map(str, value if isinstance(value, list) else [value]))
    try:
        option.type.convert(value, option, None)
    except click.BadParameter as error:
        raise UsageError(
            f"{label}: {error.message}", hint=f"see: scaletest config schema {NAME}"
        ) from error
    return value
