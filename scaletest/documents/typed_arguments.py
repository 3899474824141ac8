"""Words of a command line or request as the typed arguments of a Python function or class.

A parameter is named by --NAME VALUE, --NAME=VALUE, and a bool by --NAME or --no-NAME; the last of
several counts. Other words, and all behind --, fill the parameters that no word names, in order.
"""

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin

import msgspec

from scaletest.model.checks import cut_text
from scaletest.model.declared import Declared, declaration_of, is_enum
from scaletest.model.document import explain_error
from scaletest.model.errors import InvalidValue, NoDevice, suggestion
from scaletest.model.workload import Device

# The types that can be read from text, beside enumerations and literals.
_READABLE = (int, float, str, bool, Path, Any)
_NAMED = re.compile(r"--([A-Za-z_][\w-]*)(?:=(.*))?", re.DOTALL)


class TypedArguments:
    """The parameters of one function or class, which read words as their values."""

    def __init__(self, subject: Callable[..., object], name: str) -> None:
        """Read the signature. name: of the subject, for errors.

        InvalidValue when a type cannot be read from text.
        """
        self._name = name
        try:
            self._signature = inspect.signature(subject, eval_str=True)
        except Exception as error:  # a type in quotes may raise anything
            raise InvalidValue(
                f"the parameters of {name} cannot be read: {error}",
                hint="import their types where it is defined; if it is not written in Python, write"
                " a function around it",
            ) from error
        # the parameters, by what may be said of them
        self._devices: list[inspect.Parameter] = []  # they get the worker's device, not a word
        self._rules: dict[str, Declared] = {}  # of all others
        self._positional: list[str] = []
        self._further = ""  # the parameter of all further words, *NAME
        self._named: dict[str, str] = {}  # by the name that words use
        for parameter in self._signature.parameters.values():
            if declaration_of(parameter.annotation).base is Device:
                self._devices.append(parameter)
                continue
            rule = self._rules[parameter.name] = self._rule(parameter)
            if parameter.kind is parameter.VAR_POSITIONAL:
                self._further = parameter.name
                continue
            if parameter.kind is not parameter.KEYWORD_ONLY:
                self._positional.append(parameter.name)
            if parameter.kind is not parameter.POSITIONAL_ONLY:
                self._named[rule.extra.get("key", parameter.name)] = parameter.name

    def values(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return the values of the parameters for which there are words.

        InvalidValue for words that do not fit.
        """
        named: dict[str, str] = {}
        positional: list[str] = []
        words = iter(texts)
        for word in words:
            if word == "--":
                positional += words
            elif match := _NAMED.fullmatch(word):
                name, text = self._read_named(match[1].replace("-", "_"), match[2], words)
                named[name] = text
            else:
                positional.append(word)
        # positional words fill the parameters that no word names
        unnamed = [name for name in self._positional if name not in named]
        by_position = dict(zip(unnamed, positional, strict=False))
        further = positional[len(by_position) :]
        values = {name: self._convert(name, text) for name, text in (by_position | named).items()}
        if self._further:
            values[self._further] = tuple(self._convert(self._further, text) for text in further)
        elif further:
            raise InvalidValue(
                f"{self._name} takes no further argument {cut_text(repr(further[0]), 60)}",
                hint=self._usage,
            )
        return values

    def read(self, texts: Sequence[str], device: Device | None) -> inspect.BoundArguments:
        """Return the arguments, ready to call with.

        InvalidValue for words that do not fit, NoDevice where a device is needed and there is none.
        """
        values = self.values(texts)
        for parameter in self._devices:
            if device is None and not declaration_of(parameter.annotation).optional:
                raise NoDevice(
                    f"{self._name} needs a device",
                    hint="start the worker with <device_glob> or <preset>",
                )
            values[parameter.name] = device
        for name, parameter in self._signature.parameters.items():
            if name not in values and parameter.default is parameter.empty:
                raise InvalidValue(f"{self._name} needs the argument {name}", hint=self._usage)
        # Python passes positional arguments in the order in which they stand here
        ordered = {name: values[name] for name in self._signature.parameters if name in values}
        bound = inspect.BoundArguments(self._signature, ordered)
        bound.apply_defaults()
        return bound

    def _read_named(self, name: str, text: str | None, words: Iterator[str]) -> tuple[str, str]:
        """Return the parameter and text of a named argument, with the next word if it needs it."""
        if name not in self._named:
            positive = self._named.get(name.removeprefix("no_"), "")
            if text is None and self._is_flag(positive):
                return positive, "false"
            raise InvalidValue(
                f"{self._name} has no argument --{cut_text(name, 60)}",
                hint=suggestion(name, sorted(self._named)),
            )
        parameter = self._named[name]
        # a flag needs no value; that of any other is the next word
        if text is None:
            text = "true" if self._is_flag(parameter) else next(words, None)
        if text is None:
            raise InvalidValue(f"--{name} of {self._name} needs a value", hint=self._usage)
        return parameter, text

    def _is_flag(self, parameter: str) -> bool:
        return parameter in self._rules and self._rules[parameter].base is bool

    def _convert(self, name: str, text: str) -> Any:
        """Return the value of a parameter that a text stands for."""
        rule = self._rules[name]
        if "parse" in rule.extra:
            return rule.extra["parse"](text)
        try:
            return msgspec.convert(text, rule.base, strict=False, dec_hook=_make_path)
        except msgspec.ValidationError as error:
            raise InvalidValue(
                explain_error(error, rule.base, text, name, self._name).message, hint=self._usage
            ) from error

    def _rule(self, parameter: inspect.Parameter) -> Declared:
        """Return the type of a parameter; InvalidValue when it cannot be read from text."""
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise InvalidValue(
                f"{self._name} takes any names ({parameter}), which cannot be read from text",
                hint="give each parameter its name and type",
            )
        rule = declaration_of(
            Any if parameter.annotation in (object, parameter.empty) else parameter.annotation
        )
        is_readable = (
            rule.base in _READABLE or get_origin(rule.base) is Literal or is_enum(rule.base)
        )
        if not is_readable and "parse" not in rule.extra:
            annotation = inspect.formatannotation(parameter.annotation)
            raise InvalidValue(
                f"{parameter.name} of {self._name} is of type {annotation}, which cannot be read"
                " from text",
                hint="use int, float, str, bool, Path, an Enum, a Literal, or Device",
            )
        return rule

    @property
    def _usage(self) -> str:
        parameters = ", ".join(str(self._signature.parameters[name]) for name in self._rules)
        return f"its arguments are {parameters}" if parameters else "it has no arguments"


def _make_path(class_: type, text: Any) -> Any:
    """Make a path, the one readable type that msgspec does not know."""
    return class_(text)
