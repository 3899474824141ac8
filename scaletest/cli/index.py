"""An index of all commands and options, for who needs their names at once: shells that complete a
line, and the check of the settings file. To import all commands takes longer than a person waits.

It is generated (hack/docs). A shell completes stand-ins that are made from it; only names that are
found out, such as those of runs, import the module that does so.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypedDict, cast

import click
from click.shell_completion import CompletionItem

from scaletest.cli.headings import HeadedCommand

FILE = Path(__file__).with_name("index.json")
# A module and a function of it, as in scaletest.cli.stored:complete.
Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


class Parameter(TypedDict, total=False):
    """An option, or an argument, which has no names. What is left out is as click has it.

    names: as they are declared, with the name of the parameter. heading: above it in the help.
    path: file or dir. complete: module and function that know the values.
    """

    names: list[str]
    parameter: str
    help: str
    heading: str
    flag: bool
    multiple: bool
    nargs: int
    choices: list[str]
    path: str
    default: str
    envvar: str
    complete: str


class Entry(TypedDict, total=False):
    """A command with its parameters, or a group with its commands."""

    help: str
    parameters: list[Parameter]
    commands: dict[str, Entry]


@cache
def entries() -> dict[str, Entry]:
    """The commands of the program."""
    return cast(dict[str, Entry], json.loads(FILE.read_text("utf-8")))


def keys_of(entry: Entry) -> list[str]:
    """What a settings file may hold below a command: its options, or the commands of a group."""
    if "commands" in entry:
        return list(entry["commands"])
    names = [each["names"] for each in entry.get("parameters", []) if "names" in each]
    return [key_of(options) for options in names]


def key_of(options: list[str]) -> str:
    """The key of an option in a settings file: its longest name, with underscores."""
    return max(options, key=len).partition("/")[0].removeprefix("--").replace("-", "_")


def stand_in(name: str, entry: Entry) -> click.Command:
    """A command that can be completed, and not be called."""
    if "commands" in entry:
        children = {child: stand_in(child, below) for child, below in entry["commands"].items()}
        return click.Group(name, children, help=entry["help"])
    parameters = [_parameter(each) for each in entry.get("parameters", [])]
    settings = {"help_option_names": ["-h", "--help"]}
    return HeadedCommand(name, settings, params=parameters, help=entry["help"])


def _parameter(entry: Parameter) -> click.Parameter:
    known: dict[str, Any] = {"nargs": entry.get("nargs", 1), "type": _type(entry)}
    for name in ("default", "envvar"):
        if name in entry:
            known[name] = cast(Mapping[str, Any], entry)[name]
    if "complete" in entry:
        known["shell_complete"] = _late(entry["complete"])
    if "names" not in entry:
        return click.Argument([entry["parameter"]], required=False, **known)
    declared = [*entry["names"], entry["parameter"]]
    if entry.get("flag"):
        return click.Option(declared, is_flag=True, help=entry["help"])
    return click.Option(
        declared, multiple=entry.get("multiple", False), help=entry["help"], **known
    )


def _type(entry: Parameter) -> click.ParamType[Any]:
    if "choices" in entry:
        return click.Choice(entry["choices"])
    if "path" in entry:
        return click.Path(file_okay=entry["path"] == "file")
    return click.STRING


def _late(place: str) -> Completion:
    """A function that imports what it calls. place: module:name."""
    module, _, name = place.partition(":")

    def complete(
        context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        function: Completion = getattr(importlib.import_module(module), name)
        return function(context, parameter, incomplete)

    return complete
