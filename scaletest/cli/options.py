"""Options that several commands share, with one meaning and one environment variable each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import wraps
from inspect import signature
from typing import TypeVar, get_type_hints

import click
import yaml
from click.core import ParameterSource

from scaletest.cli.output import confirm, echo
from scaletest.model import checks
from scaletest.model.checks import printable
from scaletest.model.errors import UsageError

F = TypeVar("F", bound=Callable[..., object])
Options = TypeVar("Options")
Returned = TypeVar("Returned")

DEFAULT_REDIS_URL = "redis://127.0.0.1:6379/0"


def typed(
    options_type: type[Options],
) -> Callable[[Callable[[Options], Returned]], Callable[..., Returned]]:
    """Call a command with its options as one object; write it below the command's options.

    options_type: a frozen dataclass. A field holds the parameter of its name; a field whose type is
    such a dataclass holds a group of parameters. Two commands can share a group then.
    """

    def decorate(command: Callable[[Options], Returned]) -> Callable[..., Returned]:
        @wraps(command)
        def call(**parameters: object) -> Returned:
            return command(filled(options_type, parameters))

        OPTIONS_OF[call] = options_type
        return call

    return decorate


# What `typed` commands take, by their functions.
OPTIONS_OF: dict[Callable[..., object], type] = {}


def filled(options_type: type[Options], parameters: Mapping[str, object]) -> Options:
    """The parameters of a command, of which a group takes its own. KeyError when one is lacking."""
    make: Callable[..., Options] = options_type
    values: dict[str, object] = {}
    field_types = get_type_hints(options_type)
    for name in signature(options_type).parameters:
        field_type = field_types[name]
        is_group = isinstance(field_type, type) and is_dataclass(field_type)
        values[name] = filled(field_type, parameters) if is_group else parameters[name]
    return make(**values)


def redis_url(default: str | None = DEFAULT_REDIS_URL) -> Callable[[F], F]:
    """--redis-url, also SCALETEST_REDIS_URL; a password belongs in the variable."""
    return click.option(
        "--redis-url",
        default=default,
        envvar="SCALETEST_REDIS_URL",
        show_default=bool(default),
        show_envvar=True,
        metavar="URL",
        help="The Redis to use: redis://, rediss:// or unix://.",
    )


def device_metrics_url(text: str) -> Callable[[F], F]:
    """--device-metrics-url, with this help."""

    def checked(_context: click.Context, _option: click.Parameter, value: str) -> str:
        return value and checks.http_url(value, "--device-metrics-url", credentials=False)

    return click.option(
        "--device-metrics-url", default="", metavar="URL", callback=checked, help=text
    )


def output(function: F) -> F:
    """-o, --output."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice(["table", "json", "yaml"]),
        default="table",
        envvar="SCALETEST_OUTPUT",
        show_default=True,
        help="Form of the result on standard output.",
    )(function)


def show(data: Mapping[str, object] | Sequence[object], form: str) -> None:
    """Print data as JSON or YAML."""
    if form == "json":
        echo(json.dumps(data, indent=2, allow_nan=False))
    else:
        text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
        if printable(text, keep="\n") != text:
            text = yaml.safe_dump(
                data, sort_keys=False
            )  # with escapes of YAML, since ours would be other data
        echo(text, nl=False)


def is_typed(name: str) -> bool:
    """Whether the parameter of that name stands on the command line of the running command."""
    context = click.get_current_context()
    # an argument of no words counts as given for some versions of click
    return (
        context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        and context.params[name] != ()
    )


def refuse_beside(option: str, allowed: set[str]) -> None:
    """UsageError when an option outside `allowed` was typed beside `option`."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if is_typed(name) and name not in allowed:
            is_option = isinstance(parameter, click.Option)
            label = max(parameter.opts, key=len) if is_option else "a command"
            raise UsageError(
                f"{label} cannot be given with {option}",
                hint="leave it out: the stored plan counts",
            )


def confirmed(question: str) -> bool:
    """Whether the terminal or standard input answers yes; UsageError without an answer."""
    try:
        return confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        echo(err=True)
        raise UsageError("the question got no answer", hint="add --yes") from None
