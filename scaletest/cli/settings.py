"""The settings file: defaults of options that count for every call of this user.

Its keys are commands, which hold the names of their options with underscores, and a few options
that many commands share. What stands on the command line or in the environment counts more. All
keys are checked by every command, the values of a command when it runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from scaletest.cli import index
from scaletest.model.errors import InvalidValue, UsageError, nearest

VARIABLE = "SCALETEST_CONFIG"
# Options that many commands share, and what they are.
SHARED = {
    "redis_url": "The Redis to use.",
    "namespace": "Namespace of a Kubernetes cluster.",
    "context": "Context of the kubeconfig.",
    "format": "Form of results: text, json or yaml. A command without that form keeps its own.",
}
# What the shared key `format` may be; others stand with their command, as in report.format.
FORMS = ("text", "json", "yaml")
# Where a shared name means something else: this one says that a cluster measures, and not this
# machine.
NOT_SHARED = {("bench", "run", "namespace")}
# Commands that must work whatever the file holds, and have no settings of their own.
EXEMPT = ("completion", "config", "help", "version")
# Where a context keeps the file.
META = "scaletest.settings"

# The words that call a command, or those and the key of an option.
Route = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What the file holds, and the line of each key. An absent file holds nothing."""

    path: Path = Path()
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Route, int] = field(default_factory=dict)

    def origin(self, key: Route) -> str:
        """The file and the line of a key."""
        return f"settings {self.path}:{self.lines.get(key, 0)}"

    def wrong(self, key: Route, message: str, hint: str) -> InvalidValue:
        """The error of a key."""
        line = self.lines.get(key, 0)
        return InvalidValue(f"{self.path}, line {line}: {'.'.join(key)} {message}", hint=hint)

    def section(self, route: Route) -> Mapping[str, Any]:
        """The keys below a command; InvalidValue when it holds something else."""
        section: Mapping[str, Any] = self.values
        for depth, word in enumerate(route):
            section = section.get(word) or {}
            if not isinstance(section, Mapping):
                hint = "write one KEY: VALUE a line below it, with two spaces before each"
                raise self.wrong(route[: depth + 1], "holds no settings", hint)
        return section


def place(environment: Mapping[str, str]) -> Path | None:
    """Where the file lies: SCALETEST_CONFIG, else $XDG_CONFIG_HOME/scaletest/config.yaml; None when
    the variable is empty, or without a home.
    """
    below = Path("scaletest", "config.yaml")
    if VARIABLE in environment:
        chosen = environment[VARIABLE]
        return Path(chosen) if chosen else None
    if base := environment.get("XDG_CONFIG_HOME", ""):
        return base / below
    try:
        return Path.home() / ".config" / below
    except RuntimeError:
        return None


def load(environment: Mapping[str, str] = os.environ) -> SettingsFile:
    """The file, all its keys checked. UsageError when a file that SCALETEST_CONFIG names is not
    there, or cannot be read; InvalidValue for what it must not hold.
    """
    path = place(environment)
    if path is None or not (VARIABLE in environment or _is_there(path)):
        return SettingsFile()
    # takes a while, and most users have no such file
    from scaletest.documents import edit, reader

    hint = f"correct it, or make a new one: scaletest config init; to do without it: {VARIABLE}="
    name = f"the settings file {path}"
    text = reader.text_of(path, name, hint)
    values = reader.read(text, name, hint)
    if not isinstance(values, dict | None):
        raise InvalidValue(f"{name} holds no map of keys", hint=hint)
    file = SettingsFile(path, values or {}, edit.lines_of(text))
    known = commands()
    for key in file.values:
        if key not in (*SHARED, *known):
            raise _unknown(file, (str(key),), (*SHARED, *known))
        if key in known:
            _check_names(file, known[key], (key,))
    if file.values.get("format", FORMS[0]) not in FORMS:
        raise file.wrong(("format",), "is wrong", f"write one of {', '.join(FORMS)}")
    return file


def _is_there(path: Path) -> bool:
    """Whether there is such a file; not in a home that is closed to this process, as in pods."""
    try:
        return path.exists()
    except OSError:
        return False


def commands() -> dict[str, index.Entry]:
    """The commands that may have settings."""
    return {name: entry for name, entry in index.entries().items() if name not in EXEMPT}


def _check_names(file: SettingsFile, entry: index.Entry, route: Route) -> None:
    """InvalidValue when a section has a key that names no option, and no command of a group."""
    known = index.keys_of(entry)
    for name in file.section(route):
        if name not in known:
            raise _unknown(file, (*route, str(name)), known)
        if "commands" in entry:
            _check_names(file, entry["commands"][name], (*route, name))


def _unknown(file: SettingsFile, key: Route, known: Sequence[str]) -> InvalidValue:
    hint = f"see: {' '.join(('scaletest', *key[:-1], '--help'))}"
    if near := nearest(key[-1].replace("-", "_"), known):
        hint = f"did you mean {near}?"
    return file.wrong(key, "is no setting", hint)


def options_of(command: click.Command) -> dict[str, click.Option]:
    """The options that a file may give, by their keys."""
    named = [
        (index.key_of(option.opts), option)
        for option in command.params
        if isinstance(option, click.Option) and not option.hidden
    ]
    return dict(named)


@dataclass(frozen=True, slots=True)
class FileSetting:
    """An option's value in the file. key: where it stands there."""

    key: Route
    option: click.Option
    value: Any


def settings_of(file: SettingsFile, command: click.Command, route: Route) -> Iterator[FileSetting]:
    """What the file says for one command; InvalidValue for a wrong value.

    route: the words that call the command, as in ("bench", "run").
    """
    section = file.section(route)
    for name, option in options_of(command).items():
        key = (*route, name)
        if name not in section and _shares(option, key):
            key = (name,)
        value = file.section(key[:-1]).get(name)
        if value is None:
            continue
        try:
            yield FileSetting(key, option, converted(option, command, value))
        except UsageError as error:
            # a command without the usual form keeps its own
            if key != ("format",):
                raise file.wrong(key, f"is wrong: {error.message}", error.hint) from None


def _shares(option: click.Option, route: Route) -> bool:
    """Whether the option is one that many commands share. route: the command's and the key."""
    return route[-1] in SHARED and route not in NOT_SHARED and not option.multiple


def converted(option: click.Option, command: click.Command, value: Any) -> Any:
    """A value for click, checked as if it were typed; InvalidValue when it is wrong."""
    if option.is_flag:
        if not isinstance(value, bool):
            hint = "write true or false"
            raise InvalidValue(f"{value!r:.60} is neither true nor false", hint=hint)
        return value
    is_list, for_click = isinstance(value, list), value
    if option.multiple or option.nargs > 1:
        for_click = list(map(_text, value)) if is_list else [_text(value)]
    elif is_list:
        raise InvalidValue("a list is too much", hint="give one value")
    else:
        for_click = _text(value)
    try:
        option.type_cast_value(click.Context(command), for_click)
    except click.BadParameter as error:
        raise InvalidValue(error.message.removesuffix(".")) from None
    return for_click


def _text(value: Any) -> str:
    """A value as it would be typed."""
    if isinstance(value, bool | dict | list):
        raise InvalidValue(f"{value!r:.60} is no text and no number", hint="put quotes around text")
    return str(value)


def default_map(file: SettingsFile, command: click.Command, route: Route) -> dict[str, Any]:
    """The file's values for click: of the options of a command, or of all commands of a group."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = command.list_commands(context)
        below = {name: command.get_command(context, name) for name in names}
        return {
            name: default_map(file, child, (*route, name)) for name, child in below.items() if child
        }
    settings = settings_of(file, command, route)
    return {str(setting.option.name): setting.value for setting in settings}


def below(file: SettingsFile, command: click.Command, route: Route) -> Iterator[FileSetting]:
    """What the file says for a command, or for all commands of a group, without shared keys."""
    if not isinstance(command, click.Group):
        yield from (each for each in settings_of(file, command, route) if len(each.key) > 1)
        return
    context = click.Context(command)
    for name in file.section(route):
        child = command.get_command(context, name)
        assert child is not None
        yield from below(file, child, (*route, name))


def origin_of(context: click.Context, name: str) -> str:
    """Where in the file the value of a parameter stands; "" when it comes from elsewhere."""
    file = context.meta.get(META)
    if file is None or context.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        return ""
    route = tuple(context.command_path.split()[1:])
    for setting in settings_of(file, context.command, route):
        if setting.option.name == name:
            return str(file.origin(setting.key))
    return ""
