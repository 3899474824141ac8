"""The index of all commands and options (scaletest/cli/index.json), made from the commands."""

from __future__ import annotations

import json

import click

from scaletest.cli.headings import NO_HEADING, heading_of
from scaletest.cli.index import Entry, Parameter
from scaletest.cli.main import LazyGroup, cli

# What an option's value is, by its metavariable, where its type is text.
PATHS = {"FILE": "file", "PLAN": "file", "DIR": "dir", "[FILE|KIND]": "file"}


def index_page() -> str:
    """The index as JSON, one line a parameter, so that changes can be merged."""
    text = json.dumps(below(cli), ensure_ascii=False, separators=(",", ":"))
    return text.replace('{"help"', '\n{"help"').replace('{"parameter"', '\n{"parameter"') + "\n"


def below(group: click.Group) -> dict[str, Entry]:
    """The entries of a group's commands that users call, in the order of their help."""
    context = click.Context(group)
    entries = {}
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        text = command.get_short_help_str(200)
        if isinstance(group, LazyGroup):
            text = group.table[name][1]
        if not command.hidden:
            entries[name] = entry_of(command, text)
    return entries


def entry_of(command: click.Command, text: str) -> Entry:
    if isinstance(command, click.Group):
        return {"help": text, "commands": below(command)}
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    return {"help": text, "parameters": [parameter_of(each) for each in shown]}


def parameter_of(parameter: click.Parameter) -> Parameter:
    entry: Parameter = {"parameter": parameter.name or ""}
    if isinstance(parameter, click.Option):
        entry |= of_option(parameter)
    if parameter.nargs != 1:
        entry["nargs"] = parameter.nargs
    entry |= values_of(parameter)
    # completions ask there
    if parameter.name == "redis_url" and parameter.default:
        entry["default"] = str(parameter.default)
    if isinstance(parameter.envvar, str):
        entry["envvar"] = parameter.envvar
    return entry


def values_of(parameter: click.Parameter) -> Parameter:
    """What a shell can offer as the value."""
    function = parameter._custom_shell_complete
    if function is not None:
        return {"complete": f"{function.__module__}:{function.__name__}"}
    if isinstance(parameter.type, click.Choice):
        return {"choices": [str(choice) for choice in parameter.type.choices if choice]}
    path = PATHS.get(parameter.metavar or "", "")
    if isinstance(parameter.type, click.Path):
        path = path or "file"
    return {"path": path} if path else {}


def of_option(option: click.Option) -> Parameter:
    names = list(option.opts)
    if option.secondary_opts:
        names = [f"{option.opts[-1]}/{option.secondary_opts[-1]}"]
    entry: Parameter = {"names": names, "help": option.help or ""}
    if heading_of(option) != NO_HEADING:
        entry["heading"] = heading_of(option)
    if option.is_flag:
        entry["flag"] = True
    if option.multiple:
        entry["multiple"] = True
    return entry
