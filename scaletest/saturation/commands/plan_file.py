"""The file that may hold the options of scaletest saturate.

Flags and environment variables come before the plan file. The file's keys are the flags with
underscores, and its schema and its reader are made from the options, so that a key is described
once. Every error names the file, the key, what is wrong and what to do.
"""

import dataclasses
from collections.abc import Mapping
from typing import Annotated, Any

import click

from scaletest.cli.plan_settings import key_of
from scaletest.cli.quantity import DURATION, RATE
from scaletest.documents import reader
from scaletest.model.declared import choice
from scaletest.model.errors import UsageError
from scaletest.model.file_documents import read_members
from scaletest.model.json_schema import Form, Schema, class_schema

NAME = "saturation-plan-file"
# What says where the file is, who reads it, or how something is shown is not a setting of a run.
_NO_SETTINGS = ("file", "agent", "dry_run", "output", "form", "ui")


def plan_file_schema(command: click.Command) -> Schema:
    """Return the JSON Schema of a plan file. Every key may be left out."""
    return class_schema(
        NAME, "Settings of scaletest saturate -f.", _file_class(command), Form(is_file=True)
    )


def options_by_key(command: click.Command) -> dict[str, click.Parameter]:
    """Return the options by their keys: the flag's name with underscores."""
    options = [option for option in command.params if option.name not in _NO_SETTINGS]
    return {key_of(option): option for option in options}


def read_plan_file(name: str, command: click.Command) -> dict[str, object]:
    """Read the settings of a plan file, by the option's name.

    InvalidValue or UsageError names the key that is wrong.
    """
    label = "the plan on standard input" if name == "-" else name
    data = reader.read_file(name, label, f"give a plan file; see: scaletest schema {NAME}")
    options = options_by_key(command)
    values: dict[str, object] = {}
    for key, value in read_members(_file_class(command), data, label).items():
        option = options[key]
        if _takes_many(option):
            # click takes texts, one for each time that the flag is given
            value = list(map(str, value if isinstance(value, list) else [value]))
        else:
            # click would convert it later too, and could not say that it stands in a file
            try:
                option.type.convert(value, option, None)
            except (click.BadParameter, UsageError) as error:
                raise UsageError(
                    f"{key} in {label}: {error.message}",
                    hint=f"see: scaletest schema {NAME}",
                ) from error
        values[str(option.name)] = value
    return values


def _takes_many(option: click.Parameter) -> bool:
    """Whether the file may give a list for an option."""
    return option.multiple if isinstance(option, click.Option) else option.nargs == -1


def _file_class(command: click.Command) -> type:
    """Make the class of a plan file, with a field for each option."""
    hints: Mapping[object, Any] = {
        click.INT: int,
        click.FLOAT: float,
        DURATION: float | str,
        RATE: float | str,
    }
    fields = []
    for key, option in options_by_key(command).items():
        default, hint = option.default, hints.get(option.type, str)
        if _takes_many(option):
            default, hint = (), str | int | float | list[str | int | float]
        elif isinstance(option.type, click.types.BoolParamType):
            # a flag that is off has a default that is not a bool
            default, hint = default is True, bool
        elif isinstance(option.type, click.Choice):
            hint = Annotated[str, choice(option.type.choices)]
        text = getattr(option, "help", None) or "the URL, or arguments of requests on a queue"
        fields.append((key, Annotated[hint, text], dataclasses.field(default=default)))
    return dataclasses.make_dataclass("SaturationFile", fields)


def take_file_first(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Read the plan file before the other options take their defaults from it."""
    if value:
        context.default_map = {
            **(context.default_map or {}),
            **read_plan_file(value, context.command),
        }
    return value
