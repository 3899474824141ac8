"""Mistakes of the command line: what click reports becomes one line what, and one what to do."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import chain

import click

from scaletest.model.checks import cut
from scaletest.model.errors import UsageError, nearest, suggestion

# Names that other tools give to an option, and ours; the first that the command has is suggested.
OTHER_NAMES = {
    "--workers": ("--limit", "--num-workers", "--per-device"),
    "--max-workers": ("--limit",),
    "--concurrency": ("--limit", "--in-flight", "--highest"),
    "--users": ("--limit", "--in-flight", "--highest"),
    "--duration": ("--max-step", "--step", "--step-time"),
    "--time": ("--max-step", "--step", "--step-time"),
    "--timeout": ("--time-limit",),
    "--gpus": ("--device-glob", "--num-gpus"),
    "--device": ("--device-glob",),
    "--host": ("--redis-url",),
    "--redis": ("--redis-url",),
    "--last": ("--limit",),
}
# First words that name no command, and the command line that does what they ask for.
OTHER_COMMANDS = {
    "run": "to measure a program: scaletest validate -- COMMAND",
    "start": "to measure a program: scaletest validate -- COMMAND",
    "test": "to measure a program: scaletest validate -- COMMAND",
    "ls": "to list stored runs: scaletest runs list",
    "list": "to list stored runs: scaletest runs list",
    "show": "to show a stored run: scaletest report RUN",
    "completions": "to complete commands in a shell: scaletest completion SHELL",
}


def explained(error: click.ClickException, arguments: Sequence[str]) -> UsageError:
    """The mistake that click found. arguments: all words after `scaletest`."""
    if isinstance(error, click.BadOptionUsage):
        name = error.option_name
        return UsageError(f"{name} needs a value", hint=f"write it as in {name} VALUE")
    context = error.ctx if isinstance(error, click.UsageError) else None
    if context is None:
        return UsageError(_phrase(error.format_message()))
    match error:
        case click.NoSuchOption():
            message = f"{context.command_path} has no option {cut(error.option_name, 40)}"
            return UsageError(message, hint=_instead(error.option_name, context, arguments))
        case click.MissingParameter():
            return UsageError(f"{_name(error)} is missing", hint=_usage(context))
        case click.BadParameter():
            return _bad_value(error, context)
        case _:
            return _other(error, context)


def unknown_command(name: str, known: Sequence[str]) -> UsageError:
    """The mistake of a word that names no command. known: those that there are."""
    hint = suggestion(name, known)
    if other := OTHER_COMMANDS.get(name.lower(), ""):
        near = nearest(name, known)
        hint = f"did you mean {near}? Else, {other}" if near else other
    return UsageError(f"there is no command {cut(repr(name), 42)}", hint=hint)


def with_dashes(arguments: Sequence[str], command: click.Command | None) -> str:
    """The command line with -- before its program, whose first option is one letter, which
    scaletest would read as its own; "" when that is no remedy. command: that these words call.
    """
    if command is None or command.name not in arguments or not _takes_program(command):
        return ""
    begin = arguments.index(command.name) + 1
    at = _program(arguments[begin:], command)
    if at is None:
        return ""
    first, rest = arguments[: begin + at], arguments[begin + at :]
    options = [word for word in rest if word.startswith("-")]
    if not options or not re.match(r"-\w", options[0]):
        return ""
    return shlex.join(["scaletest", *first, "--", *rest])


def _takes_program(command: click.Command) -> bool:
    return any(
        isinstance(parameter, click.Argument) and "-- COMMAND" in str(parameter.metavar)
        for parameter in command.params
    )


def _program(line: Sequence[str], command: click.Command) -> int | None:
    """The index of the first word that is neither an option nor the value of one; None without, and
    where -- stands before it.
    """
    options = [option for option in command.params if isinstance(option, click.Option)]
    valued = [option.opts for option in options if not (option.is_flag or option.count)]
    takes_value = set(chain.from_iterable(valued))
    is_value = False
    for index, word in enumerate(line):
        if word == "--":
            return None
        if not is_value and not word.startswith("-"):
            return index
        is_value = not is_value and word in takes_value
    return None


def _instead(name: str, context: click.Context, arguments: Sequence[str]) -> str:
    """What to write instead of an option that the command does not have."""
    if line := with_dashes(arguments, context.command):
        return f"put -- before your command: {line}"
    if name[2:] in _forms(context.command):
        return f"did you mean --format {name[2:]}, or -o FILE.{name[2:]}?"
    if name == "--last" and context.command_path.endswith("runs list"):
        return "the newest runs stand last: scaletest runs list | tail"
    known: list[str] = []
    for parameter in context.command.get_params(context):
        if isinstance(parameter, click.Argument) and parameter.name == name[2:]:
            return _usage(context)
        known += parameter.opts if not getattr(parameter, "hidden", False) else []
    renamed = [text for text in OTHER_NAMES.get(name, ()) if text in known]
    near = next(iter(renamed), nearest(name, known))
    return f"did you mean {near}?" if near else f"see: {context.command_path} --help"


def _forms(command: click.Command) -> Sequence[str]:
    """The choices of --format; none without that option."""
    for option in command.params:
        if "--format" in option.opts and isinstance(option.type, click.Choice):
            return list(map(str, option.type.choices))
    return ()


def _bad_value(error: click.BadParameter, context: click.Context) -> UsageError:
    """The mistake of a value that its option does not take."""
    name, message = _name(error), _phrase(error.message)
    typed = re.match(r"'(.*?)' is not", message)
    if typed and error.param is not None and isinstance(error.param.type, click.Choice):
        choices = list(map(str, filter(None, error.param.type.choices)))
        hint = f"there are {', '.join(choices)}"
        if near := nearest(typed[1], choices):
            hint = f"did you mean {near}? {hint.capitalize()}"
        return UsageError(f"{name}: there is no {typed[1]!r}", hint=hint)
    return UsageError(f"{name}: {message}", hint=f"see: {context.command_path} --help")


def _name(error: click.BadParameter) -> str:
    """The longest name of an option, or what the usage calls an argument."""
    parameter = error.param
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    if parameter is None or error.ctx is None:
        return str(error.param_hint or "a value")
    return parameter.get_error_hint(error.ctx).strip("'").strip("[]")


def _other(error: click.ClickException, context: click.Context) -> UsageError:
    """Words too many, an option without its value, or a command that a group does not have."""
    text = error.format_message()
    if extra := re.match(r"Got unexpected extra arguments? \((.*)\)", text):
        word = extra[1]
        is_file = re.search(r"\.\w+$", word) and _forms(context.command)
        mistake = f"{cut(repr(word), 60)} is one word too many"
        if is_file:
            return UsageError(mistake, hint=f"to write a file: -o {word}")
        return UsageError(mistake, hint=_usage(context))
    if unknown := re.match(r"No such command '(.*?)'", text):
        assert isinstance(context.command, click.Group)
        return unknown_command(unknown[1], context.command.list_commands(context))
    return UsageError(_phrase(text), hint=f"see: {context.command_path} --help")


def _usage(context: click.Context) -> str:
    return f"write {' '.join(context.command.get_usage(context).split()[1:])}"


def _phrase(text: str) -> str:
    """A sentence of click's as the others are: without capital letter and full stop."""
    return text[:1].lower() + text[1:].removesuffix(".")
