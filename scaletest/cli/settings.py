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

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What the file holds, and the line of each key. An absent file holds nothing."""

    path: Path = Path()
    values: Mapping[str, Any] = field(default_factory=dict)
    lines: Mapping[Words, int] = field(default_factory=dict)

    def origin(self, key: Words) -> str:
        """The file and the line of a key."""
        return f"settings {self.path}:{self.lines.get(key, 0)}"

    def wrong(self, key: Words, message: str, hint: str) -> InvalidValue:
        """The error of a key."""
        line = self.lines.get(key, 0)
        return InvalidValue(f"{self.path}, line {line}: {'.'.join(key)} {message}", hint=hint)

    def section(self, words: Words) -> Mapping[str, Any]:
        """The keys below a command; InvalidValue when it holds something else."""
        section: Mapping[str, Any] = self.values
        for depth, word in enumerate(words):
            section = section.get(word) or {}
            if not isinstance(section, Mapping):
                hint = "write one KEY: VALUE a line below it, with two spaces before each"
                raise self.wrong(words[: depth + 1], "holds no settings", hint)
        return section


def place(environment: Mapping[str, str]) -> Path | None:
    """Where the file lies: SCALETEST_CONFIG, else $XDG_CONFIG_HOME/scaletest/config.yaml; None when
    the variable is empty, or without a home.
    """
    if VARIABLE in environment:
        chosen = environment[VARIABLE]
        return Path(chosen) if chosen else None
    base = environment.get("XDG_CONFIG_HOME", "")
    try:
        folder = Path(base) if base else Path.home() / ".config"
    except RuntimeError:
        return None
    return folder / "scaletest" / "config.yaml"


def load(environment: Mapping[str, str] = os.environ) -> SettingsFile:
    """The file, all its keys checked. UsageError when a file that SCALETEST_CONFIG names is not
    there, or cannot be read; InvalidValue for what it must not hold.
    """
    path = place(environment)
    if path is None or not (path.exists() or VARIABLE in environment):
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


def commands() -> dict[str, index.Entry]:
    """The commands that may have settings."""
    return {name: entry for name, entry in index.entries().items() if name not in EXEMPT}


def _check_names(file: SettingsFile, entry: index.Entry, words: Words) -> None:
    """InvalidValue when a section has a key that names no option, and no command of a group."""
    known = index.keys_of(entry)
    for name in file.section(words):
        if name not in known:
            raise _unknown(file, (*words, str(name)), known)
        if "commands" in entry:
            _check_names(file, entry["commands"][name], (*words, name))


def _unknown(file: SettingsFile, key: Words, known: Sequence[str]) -> InvalidValue:
    near = nearest(key[-1].replace("-", "_"), known)
    hint = f"did you mean {near}?" if near else f"see: scaletest {' '.join(key[:-1])} --help"
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

    key: Words
    option: click.Option
    value: Any


def settings_of(file: SettingsFile, command: click.Command, words: Words) -> Iterator[FileSetting]:
    """What the file says for one command; InvalidValue for a wrong value.

    words: those that call the command, as in ("bench", "run").
    """
    options = options_of(command)
    section = file.section(words)
    for name, option in options.items():
        key = (*words, name) if name in section else (name,)
        value = section.get(
            name, file.values.get(name) if _shares(option, (*words, name)) else None
        )
        if value is not None:
            try:
                yield FileSetting(key, option, converted(option, command, value))
            except UsageError as error:
                if len(key) > 1 or name != "format":
                    raise file.wrong(key, f"is wrong: {error.message}", error.hint) from None


def _shares(option: click.Option, words: Words) -> bool:
    """Whether the option is one that many commands share. words: the command's and the key."""
    return words[-1] in SHARED and words not in NOT_SHARED and not option.multiple


def converted(option: click.Option, command: click.Command, value: Any) -> Any:
    """A value for click, checked as if it were typed; InvalidValue when it is wrong."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise InvalidValue(
                f"{value!r:.60} is neither true nor false", hint="write true or false"
            )
        return value
    values = value if isinstance(value, list) else [value]
    if any(isinstance(each, bool | dict | list) for each in values):
        raise InvalidValue(f"{value!r:.60} is no text and no number", hint="put quotes around text")
    texts = list(map(str, values))
    several = option.multiple or option.nargs > 1
    if isinstance(value, list) and not several:
        raise InvalidValue("a list is too much", hint="give one value")
    for_click: Any = texts if several else texts[0]
    try:
        option.type_cast_value(click.Context(command), for_click)
    except click.BadParameter as error:
        raise InvalidValue(error.message, hint="") from None
    return for_click


def default_map(file: SettingsFile, command: click.Command, words: Words) -> dict[str, Any]:
    """The file's values for click: of the options of a command, or of all commands of a group."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        names = command.list_commands(context)
        below = {name: command.get_command(context, name) for name in names}
        return {
            name: default_map(file, child, (*words, name)) for name, child in below.items() if child
        }
    settings = settings_of(file, command, words)
    return {str(setting.option.name): setting.value for setting in settings}


def below(file: SettingsFile, command: click.Command, words: Words) -> Iterator[FileSetting]:
    """What the file says for a command, or for all commands of a group, without shared keys."""
    if not isinstance(command, click.Group):
        yield from (each for each in settings_of(file, command, words) if len(each.key) > 1)
        return
    context = click.Context(command)
    for name in file.section(words):
        child = command.get_command(context, name)
        assert child is not None
        yield from below(file, child, (*words, name))


def origin_of(context: click.Context, name: str) -> str:
    """Where in the file the value of a parameter stands; "" when it comes from elsewhere."""
    file = context.meta.get(META)
    if file is None or context.get_parameter_source(name) is not ParameterSource.DEFAULT_MAP:
        return ""
    words = tuple(context.command_path.split()[1:])
    for setting in settings_of(file, context.command, words):
        if setting.option.name == name:
            return str(file.origin(setting.key))
    return ""
