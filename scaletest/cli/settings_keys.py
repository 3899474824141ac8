"""Keys and values of the settings file as people type them: `scaletest config set KEY VALUE`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click
from click.shell_completion import CompletionItem

from scaletest.cli import index
from scaletest.cli.settings import (
    EXEMPT,
    FORMS,
    SHARED,
    Route,
    commands,
    converted,
    options_of,
)
from scaletest.documents import reader
from scaletest.model import checks
from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, nearest

FLAGS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The keys below the command that the word names, and its commands, each with a point."""
    *route, _ = incomplete.split(".")
    below = commands()
    names = [*SHARED, *(f"{name}." for name in below)]
    for word in route:
        entry = below.get(word, {})
        below = entry.get("commands", {})
        names = [f"{name}." for name in below] or index.keys_of(entry)
    keys = [".".join((*route, name)) for name in names]
    return [CompletionItem(key) for key in keys if key.startswith(incomplete)]


def command_of(root: click.Group, route: Route) -> click.Command:
    """The command on that route; InvalidValue suggests the nearest for an unknown one."""
    command: click.Command = root
    for depth, name in enumerate(route):
        known: list[str] = []
        context = click.Context(command)
        if isinstance(command, click.Group):
            known = [each for each in command.list_commands(context) if each not in EXEMPT]
        if name not in known:
            raise _no_setting(".".join(route), route[:depth], name, known)
        assert isinstance(command, click.Group)
        child = command.get_command(context, name)
        assert child is not None
        command = child
    return command


def key_of(root: click.Group, text: str) -> Route:
    """A key as `config set` takes it; InvalidValue suggests the nearest for an unknown one."""
    *commands, last = text.split(".")
    route, key = tuple(commands), last.replace("-", "_")
    command = command_of(root, route)
    known = SHARED if command is root else options_of(command)
    if key not in known:
        raise _no_setting(text, route, key, known)
    return (*route, key)


def _no_setting(text: str, group: Route, name: str, known: Iterable[str]) -> InvalidValue:
    """The error of a name that nothing in that group has."""
    hint = "see: scaletest config init"
    near = nearest(name, known)
    keys = [".".join((*group, near))] if near else []
    if not near and not group:
        owners = (owner for owner, entry in commands().items() if name in index.keys_of(entry))
        keys = [f"{owner}.{name}" for owner in owners]
    if keys:
        hint = f"did you mean {' or '.join(keys[:3])}?"
    return InvalidValue(f"there is no setting {cut(repr(text), 60)}", hint=hint)


def from_text(root: click.Group, key: Route, text: str) -> Any:
    """The value of a setting that a person typed, as the file holds it; InvalidValue when it is
    wrong.
    """
    if key == ("format",):
        return checks.one_of(text, FORMS, "form")
    if len(key) == 1:
        return text
    command = command_of(root, key[:-1])
    option = options_of(command)[key[-1]]
    value = _typed(option, text)
    converted(option, command, value)
    return value


def _typed(option: click.Option, text: str) -> Any:
    """A text as the value of an option: a list in brackets, yes or no, a number, or the text."""
    if option.is_flag and text.lower() in FLAGS:
        return FLAGS[text.lower()]
    is_number = isinstance(option.type, click.types.IntParamType | click.types.FloatParamType)
    if text.startswith("[") or is_number:
        return reader.read(text, "the value", "write it as YAML")
    return text
