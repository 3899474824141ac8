"""The edge of the command line is typed: each command takes its options as arguments and frozen
objects whose fields are click's parameters, and nothing below looks an option up by its text.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass, is_dataclass
from inspect import signature
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

import click
import pytest

from scaletest.cli import validate_options
from scaletest.cli.main import cli
from scaletest.cli.options import OPTIONS_OF, Quantity, grouped
from scaletest.cli.output import Output
from scaletest.cli.size import Amounts
from scaletest.model.plan import file

CLI = Path(__file__).parents[2] / "scaletest" / "cli"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


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


def holds(annotation: Any, value_type: type) -> bool:
    """Whether a field of that type may hold values of the other."""
    if get_origin(annotation) in (Union, types.UnionType):
        return any(holds(part, value_type) for part in get_args(annotation))
    return annotation is value_type


def value_type(parameter: click.Parameter) -> type | None:
    """What click makes of a parameter's text; None where a callback or a pair makes it."""
    if parameter.callback is not None and not isinstance(parameter.type, click.Path):
        return None
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return bool
    if isinstance(parameter.type, click.Path):
        return Path
    if isinstance(parameter.type, click.types.IntParamType):
        return int
    if isinstance(parameter.type, click.types.FloatParamType | Quantity):
        return float
    return None if isinstance(parameter.type, click.Tuple | Amounts) else str


def typed_parameters() -> Iterator[tuple[str, click.Parameter, Any]]:
    for name, command in COMMANDS.items():
        assert command.callback is not None
        if options_type := OPTIONS_OF.get(command.callback):
            fields = leaves(options_type)
            for parameter in command.params:
                field = next(
                    (f for f in (parameter.name, f"{parameter.name}_s") if f in fields), ""
                )
                if field:
                    yield f"{name} {parameter.name}", parameter, fields[field]


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


def test_fields_have_the_types_of_the_values() -> None:
    checked = 0
    for where, parameter, annotation in typed_parameters():
        many = parameter.nargs == -1 or (isinstance(parameter, click.Option) and parameter.multiple)
        expected = value_type(parameter)
        if expected is None:
            continue
        inner = get_args(annotation)[0] if many else annotation
        assert not many or get_origin(annotation) is tuple, where
        assert holds(inner, expected), f"{where}: {annotation} holds no {expected.__name__}"
        value = parameter.get_default(click.Context(click.Command("any")))
        has_default = isinstance(value, str | int | float | Path)
        optional = not (has_default or parameter.required or many or expected is bool)
        assert holds(inner, type(None)) == optional, f"{where}: {annotation}, default {value!r}"
        checked += 1
    assert checked


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


def sources() -> dict[str, ast.Module]:
    """The syntax tree of each file of the command line, by its name."""
    return {path.name: ast.parse(path.read_bytes()) for path in sorted(CLI.glob("*.py"))}


def test_no_option_is_looked_up_by_text() -> None:
    places = []
    for name, tree in sources().items():
        for function in ast.walk(tree):
            if not isinstance(function, FUNCTIONS):
                continue
            arguments = [*function.args.args, *function.args.kwonlyargs]
            mappings = {function.args.kwarg.arg} if function.args.kwarg else set()
            for argument in arguments:
                annotation = ast.unparse(argument.annotation) if argument.annotation else ""
                if annotation in ("dict[str, Any]", "Mapping[str, Any]"):
                    mappings.add(argument.arg)
            for node in ast.walk(function):
                if (
                    isinstance(node, ast.Subscript)
                    and isinstance(node.slice, ast.Constant)
                    and isinstance(node.slice.value, str)
                    and (
                        (isinstance(node.value, ast.Name) and node.value.id in mappings)
                        or (isinstance(node.value, ast.Attribute) and node.value.attr == "params")
                    )
                ):
                    places.append(f"{name}:{node.lineno} {ast.unparse(node)}")
    assert not places, "\n".join(places)


def test_no_function_takes_a_mapping_of_options() -> None:
    places = []
    for name, tree in sources().items():
        for function in ast.walk(tree):
            if not isinstance(function, FUNCTIONS):
                continue
            rest = function.args.kwarg
            if rest and (name, function.name) != ("options.py", "call"):
                places.append(f"{name}:{function.lineno} {function.name}(**{rest.arg})")
            for argument in [*function.args.args, *function.args.kwonlyargs]:
                annotation = ast.unparse(argument.annotation) if argument.annotation else ""
                is_mapping = annotation.startswith(("dict[str, Any", "Mapping[str, Any"))
                if is_mapping and argument.arg in ("given", "options", "parameters", "values"):
                    places.append(f"{name}:{function.lineno} {function.name}({argument.arg})")
    assert not places, "\n".join(places)
