"""The settings file: this user's defaults of options, in YAML by command and option.

    validate:
      limit: 16
    bench:
      run:
        repetitions: 3

What stands on the command line or in the environment counts more.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from scaletest.model.checks import cut_text
from scaletest.model.errors import InvalidValue, nearest_name

VARIABLE = "SCALETEST_CONFIG"


def find_file() -> Path | None:
    """Return the path of the settings file; None when there is none or it is switched off.

    An empty SCALETEST_CONFIG switches it off.
    """
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return Path(chosen) if chosen else None
    path = Path(click.get_app_dir("scaletest"), "config.yaml")
    # in a pod the home may be closed to its own process
    return path if os.access(path, os.R_OK) else None


def read_default_map(context: click.Context) -> dict[str, Any]:
    """Read the file for click, as far as it is about the command that is called.

    context: that of the program. UsageError when SCALETEST_CONFIG names a file that cannot be read,
    InvalidValue for an unknown command or option.
    """
    path = find_file()
    if path is None:
        return {}
    # takes a while to import, and most users have no such file
    from scaletest.documents import reader

    values = reader.read_file(path, f"the settings file {path}", f"do without it: {VARIABLE}=")
    group, called = context.command, context.invoked_subcommand
    assert isinstance(group, click.Group) and called is not None
    section = _settings_below(values, path, ())
    for name in section:
        if name not in group.commands:
            raise _unknown_setting(path, (name,), group.commands)
    command = group.get_command(context, called)
    assert command is not None
    return {called: defaults_by_parameter(command, section.get(called), path, (called,))}


def defaults_by_parameter(
    command: click.Command, values: object, path: Path | str, route: tuple[str, ...]
) -> dict[str, Any]:
    """Return the settings of a command by its parameters' names, as click's default_map has them.

    Those of a group's commands are below their names. path: of the file, or what it is called.
    route: the keys that lead to the values.
    """
    defaults: dict[str, Any] = {}
    options = {
        key_of(option): option for option in command.params if isinstance(option, click.Option)
    }
    commands = command.commands if isinstance(command, click.Group) else {}
    for name, value in _settings_below(values, path, route).items():
        if isinstance(command, click.Group) and name in commands:
            child = command.get_command(click.Context(command), name)
            assert child is not None
            defaults[name] = defaults_by_parameter(child, value, path, (*route, name))
        elif name in options:
            is_single = options[name].multiple and not isinstance(value, list)
            defaults[str(options[name].name)] = [value] if is_single else value
        else:
            raise _unknown_setting(path, (*route, name), [*options, *commands])
    return defaults


def key_of(option: click.Parameter) -> str:
    """Return the key of an option in files: its longest name, with underscores."""
    return max(option.opts, key=len).removeprefix("--").replace("-", "_")


def _settings_below(values: object, path: Path | str, route: tuple[str, ...]) -> dict[str, Any]:
    """Return the settings below a key; InvalidValue where they are no settings."""
    if values is None:
        return {}
    if not isinstance(values, dict):
        where = f"{'.'.join(route)} in {path}" if route else str(path)
        raise InvalidValue(f"{where}: expected settings", hint="write one KEY: VALUE per line")
    return {str(name): value for name, value in values.items()}


def _unknown_setting(path: Path | str, key: tuple[str, ...], known: Iterable[str]) -> InvalidValue:
    near = nearest_name(key[-1].replace("-", "_"), known)
    if near:
        hint = f"did you mean {near}?"
    else:
        # with a broken file the help cannot be asked for, so the command does without it
        hint = f"see: {' '.join((f'{VARIABLE}=', 'scaletest', *key[:-1], '--help'))}"
    return InvalidValue(f"unknown setting {cut_text('.'.join(key), limit=60)} in {path}", hint=hint)
