"""Words of a command line or request as the typed arguments of a Python function or class.

--NAME VALUE, --NAME=VALUE, and --NAME or --no-NAME for a bool, name a parameter; the last of
several counts. Other words fill the parameters that none names, in their order; behind -- all do.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from scaletest.model.checks import cut
from scaletest.model.errors import InvalidValue, NoDevice, suggestion
from scaletest.model.workload import Device

_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
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
        self._devices = [each for each in parameters if Device in _members(each.annotation)]
        own = [each for each in parameters if each not in self._devices]
        self._convert = {each.name: self._converter(each) for each in own}
        self._flags = {each.name for each in own if bool in _members(each.annotation)}
        self._positional = [each.name for each in own if each.kind in _POSITIONAL]
        self._many = "".join(each.name for each in own if each.kind in _MANY)
        self._needed = {
            each.name for each in own if each.default is each.empty and each.kind not in _MANY
        }
        by_position = (inspect.Parameter.POSITIONAL_ONLY, *_MANY)
        self._named = {each.name for each in own if each.kind not in by_position}

    def read(self, texts: Sequence[str], device: Device | None) -> inspect.BoundArguments:
        """The arguments, ready to call with. InvalidValue for words that do not fit, NoDevice where
        a device is needed and there is none.
        """
        named, rest = self._by_name(texts)
        values: dict[str, Any] = {name: self._value(name, text) for name, text in named.items()}
        if self._many:
            values[self._many] = tuple(self._value(self._many, text) for text in rest)
        elif rest:
            raise InvalidValue(
                f"{self._name} takes no further argument {cut(repr(rest[0]), 60)}", hint=self._usage
            )
        for parameter in self._devices:
            if device is None and NoneType not in _members(parameter.annotation):
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
        positive = name.removeprefix("no_")
        if name not in self._named and positive in self._named & self._flags and text is None:
            return positive, "false"
        if name not in self._named:
            raise InvalidValue(
                f"{self._name} has no argument --{cut(name, 60)}",
                hint=suggestion(name, sorted(self._named)),
            )
        if text is None:
            text = "true" if name in self._flags else next(queue, None)
        if text is None:
            raise InvalidValue(f"--{name} of {self._name} lacks its value", hint=self._usage)
        return name, text

    def _value(self, name: str, text: str) -> Any:
        try:
            return self._convert[name](text)
        except ValueError as error:
            raise InvalidValue(
                f"{name} of {self._name} is {cut(repr(text), 60)}, {error}", hint=self._usage
            ) from error

    def _converter(self, parameter: inspect.Parameter) -> Callable[[str], Any]:
        """Reads the text of a parameter; its ValueError says what the text is not."""
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise InvalidValue(
                f"{self._name} takes any names ({parameter}), which cannot be read from text",
                hint="give each parameter its name and type",
            )
        members = [each for each in _members(parameter.annotation) if each is not NoneType]
        convert = _converter(members[0]) if len(members) == 1 else None
        if convert is None:
            annotation = inspect.formatannotation(parameter.annotation)
            raise InvalidValue(
                f"{parameter.name} of {self._name} is of type {annotation}, which cannot be read"
                " from text",
                hint="use int, float, str, bool, Path, an Enum, a Literal, or Device",
            )
        return convert

    @property
    def _usage(self) -> str:
        parameters = self._signature.parameters
        shown = ", ".join(str(parameters[name]) for name in self._convert)
        return f"its arguments are {shown}" if shown else "it has no arguments"


def _members(annotation: object) -> tuple[Any, ...]:
    """The types that a union is made of; the type itself where it is no union."""
    if get_origin(annotation) in (Union, UnionType):
        return get_args(annotation)
    return (annotation,)


def _converter(kind: Any) -> Callable[[str], Any] | None:
    if kind in (str, Any, object, inspect.Parameter.empty):
        return str
    if kind is bool:
        return _as_bool
    if kind in (int, float):
        return _number(kind)
    if kind is Path:
        return Path
    if get_origin(kind) is Literal:
        return _choice({str(option): option for option in get_args(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return _choice({str(member.value): member for member in kind})
    return None


def _as_bool(text: str) -> bool:
    if text.lower() in (*_TRUE, *_FALSE):
        return text.lower() in _TRUE
    raise ValueError("neither true nor false")


def _number(kind: type[int] | type[float]) -> Callable[[str], float]:
    def read(text: str) -> float:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"not {'a whole' if kind is int else 'a'} number") from None

    return read


def _choice(options: dict[str, Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if text not in options:
            raise ValueError(f"not one of {', '.join(options)}")
        return options[text]

    return read
