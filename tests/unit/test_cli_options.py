"""The edge of the command line is typed: each command takes its options as arguments and frozen
objects whose fields are click's parameters, and nothing below looks an option up by its text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from inspect import signature
from typing import Any, get_type_hints

import click
import pytest

from scaletest.cli import validate_options
from scaletest.cli.main import cli
from scaletest.cli.options import OPTIONS_OF, grouped
from scaletest.cli.output import Output
from scaletest.model.plan import file


def commands(group: click.Group, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """All commands below a group, by their names with spaces."""
    context = click.Context(group)
    for child_name in group.list_commands(context):
        child = group.get_command(context, child_name)
        assert child is not None
        if isinstance(child, click.Group):
            yield from commands(child, f"{name}{child_name} ")
        else:
            yield f"{name}{child_name}", child


COMMANDS = dict(commands(cli))


def leaves(options_type: type) -> dict[str, Any]:
    """Types by name, of the fields of an options class and of its groups."""
    fields: dict[str, Any] = {}
    field_types = get_type_hints(options_type)
    for name in signature(options_type).parameters:
        field_type = field_types[name]
        is_group = is_dataclass(field_type) and field_type is not Output
        inner = leaves(field_type) if is_group else {name: field_type}
        assert not fields.keys() & inner.keys(), f"{options_type}: {name} stands twice"
        fields |= inner
    return fields


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_field_is_a_parameter_and_a_parameter_a_field(name: str) -> None:
    command = COMMANDS[name]
    assert command.callback is not None
    options_type = OPTIONS_OF.get(command.callback)
    if options_type is None:
        return
    exposed = {parameter.name for parameter in command.params if parameter.expose_value}
    # the field of a duration names its unit
    fields = {name if name in exposed else name.removesuffix("_s") for name in leaves(options_type)}
    # the note of a run is written later
    assert not fields - exposed - {"note"}, "no such parameter"
    # what comes from a plan file too is read by `plans`
    elsewhere = {*file()["properties"], *leaves(validate_options.PlanFileOptions)}
    assert exposed - fields <= (elsewhere if name == "validate" else set()), "never read"


def test_a_group_takes_its_own_parameters() -> None:
    @dataclass(frozen=True, slots=True)
    class Options:
        group: validate_options.PlanFileOptions
        limit: int

    got: list[Options] = []

    def command(options: Options) -> None:
        got.append(options)

    # classes of a function cannot be found by their names
    Options.__annotations__ = {"group": validate_options.PlanFileOptions, "limit": int}
    command.__annotations__ = {"options": Options}
    grouped(command)(file="a", limit=3, other=4)
    assert got == [Options(validate_options.PlanFileOptions("a"), 3)]
