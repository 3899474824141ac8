"""Words of a command line or request as the typed arguments of a Python function or class.

--NAME VALUE, --NAME=VALUE, and --NAME or --no-NAME for a bool, name a parameter; the last of
several counts. Other words fill the parameters that none names, in their order; behind -- all do.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, get_origin

import msgspec

from scaletest.model.checks import cut
from scaletest.model.conversion_errors import explained
from scaletest.model.declared import Declared, declared, is_enum
from scaletest.model.errors import InvalidValue, NoDevice, suggestion
from scaletest.model.workload import Device

_READABLE = (int, float, str, bool, Path, Any)
_NAMED = re.compile(r"--([A-Za-z_][\w-]*)(?:=(.*))?", re.DOTALL)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (inspect.Parameter.VAR_POSITIONAL,)


class TypedArguments:
    """The parameters of one function or class."""

    def __init__(self, subject: Callable[..., object], name: str) -> None:
        """name: as errors call it. InvalidValue when a type cannot be read from text."""
        self._name = name
        try:
            # Python 3.13 knows the parameters of some, without their types
            if inspect.isbuiltin(subject):
                raise TypeError("it is not written in Python")
            self._signature = inspect.signature(subject, eval_str=True)
        except Exception as error:  # a type in quotes may raise anything
            raise InvalidValue(
                f"the parameters of {name} cannot be read: {error}",
                hint="import their types where it is defined; if it is not written in Python, write"
                " a function around it",
            ) from error
        parameters = self._signature.parameters.values()
        self._devices = [each for each in parameters if declared(each.annotation).base is Device]
        own = [each for each in parameters if each not in self._devices]
        self._rules = {each.name: self._rule(each) for each in own}
        self._flags = {name for name, rule in self._rules.items() if rule.base is bool}
        self._positional = [each.name for each in own if each.kind in _POSITIONAL]
        self._many = "".join(each.name for each in own if each.kind in _MANY)
        self._needed = {
            each.name for each in own if each.default is each.empty and each.kind not in _MANY
        }
        by_position = (inspect.Parameter.POSITIONAL_ONLY, *_MANY)
        self._named = {
            self._rules[each.name].extra.get("key", each.name): each.name
            for each in own
            if each.kind not in by_position
        }

    def values(self, texts: Sequence[str]) -> dict[str, Any]:
        """The values of the parameters that words are given for. InvalidValue for words that do not
        fit.
        """
        named, rest = self._by_name(texts)
        values: dict[str, Any] = {name: self._value(name, text) for name, text in named.items()}
        if self._many:
            values[self._many] = tuple(self._value(self._many, text) for text in rest)
        elif rest:
            raise InvalidValue(
                f"{self._name} takes no further argument {cut(repr(rest[0]), 60)}", hint=self._usage
            )
        return values

    def read(self, texts: Sequence[str], device: Device | None) -> inspect.BoundArguments:
        """The arguments, ready to call with. InvalidValue for words that do not fit, NoDevice where
        a device is needed and there is none.
        """
        values = self.values(texts)
        for parameter in self._devices:
            if device is None and not declared(parameter.annotation).optional:
                raise NoDevice(
                    f"{self._name} needs a device",
                    hint="start the worker with <device_glob> or <preset>",
                )
            values[parameter.name] = device
        for name in self._needed - values.keys():
            raise InvalidValue(f"{self._name} lacks its argument {name}", hint=self._usage)
        # in the order of the parameters, which gives each its place
        ordered = {name: values[name] for name in self._signature.parameters if name in values}
        bound = inspect.BoundArguments(self._signature, ordered)
        bound.apply_defaults()
        return bound

    def _by_name(self, texts: Sequence[str]) -> tuple[dict[str, str], list[str]]:
        """The text of each parameter, and the further positional ones."""
        named: dict[str, str] = {}
        positional: list[str] = []
        queue = iter(texts)
        for text in queue:
            if text == "--":
                positional += queue
            elif match := _NAMED.fullmatch(text):
                name, value = self._option(match[1].replace("-", "_"), match[2], queue)
                named[name] = value
            else:
                positional.append(text)
        unnamed = [name for name in self._positional if name not in named]
        by_position = dict(zip(unnamed, positional, strict=False))
        return by_position | named, positional[len(by_position) :]

    def _option(self, name: str, text: str | None, queue: Iterator[str]) -> tuple[str, str]:
        """Parameter and text of a named argument, with the next word where it needs that."""
        positive = self._named.get(name.removeprefix("no_"))
        if name not in self._named and positive in self._flags and text is None:
            return positive, "false"
        if name not in self._named:
            raise InvalidValue(
                f"{self._name} has no argument --{cut(name, 60)}",
                hint=suggestion(name, sorted(self._named)),
            )
        parameter = self._named[name]
        if text is None:
            text = "true" if parameter in self._flags else next(queue, None)
        if text is None:
            raise InvalidValue(f"--{name} of {self._name} lacks its value", hint=self._usage)
        return parameter, text

    def _value(self, name: str, text: str) -> Any:
        rule = self._rules[name]
        if "parse" in rule.extra:
            return rule.extra["parse"](text)
        try:
            return msgspec.convert(text, rule.base, strict=False, dec_hook=_path)
        except msgspec.ValidationError as error:
            wrong = explained(error, rule.base, text, name, self._name)
            raise InvalidValue(wrong.message, hint=self._usage) from error
        except UnicodeEncodeError as error:
            raise InvalidValue(
                f"{name} in {self._name} is not valid Unicode", hint=self._usage
            ) from error

    def _rule(self, parameter: inspect.Parameter) -> Declared:
        """The type of a parameter; InvalidValue when it cannot be read from text."""
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise InvalidValue(
                f"{self._name} takes any names ({parameter}), which cannot be read from text",
                hint="give each parameter its name and type",
            )
        is_untyped = parameter.annotation in (object, parameter.empty)
        rule = declared(Any if is_untyped else parameter.annotation)
        known = rule.base in _READABLE or get_origin(rule.base) is Literal or is_enum(rule.base)
        if not known and "parse" not in rule.extra:
            annotation = inspect.formatannotation(parameter.annotation)
            raise InvalidValue(
                f"{parameter.name} of {self._name} is of type {annotation}, which cannot be read"
                " from text",
                hint="use int, float, str, bool, Path, an Enum, a Literal, or Device",
            )
        return rule

    @property
    def _usage(self) -> str:
        parameters = self._signature.parameters
        shown = ", ".join(str(parameters[name]) for name in self._rules)
        return f"its arguments are {shown}" if shown else "it has no arguments"


def _path(kind: type, text: Any) -> Any:
    """Read a path, the one readable type that msgspec does not know."""
    return kind(text)
