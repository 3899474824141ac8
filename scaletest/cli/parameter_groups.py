"""Groups of parameters that several commands take, each as one object."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from inspect import signature
from typing import TypeVar, get_type_hints

from scaletest.cli.output import Output

Returned = TypeVar("Returned")
# The functions that `grouped` calls with what a command takes, by the command's function.
OPTIONS_OF: dict[Callable[..., object], Callable[..., object]] = {}


def grouped(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Call a command with its options; write it below them.

    An argument whose type is a frozen dataclass holds the group of parameters that its fields name.
    Two commands can share a group then. The option of a name in seconds need not have its _s.
    """

    @wraps(command)
    def call(**parameters: object) -> Returned:
        return filled(command, parameters)

    OPTIONS_OF[call] = command
    return call


def filled(make: Callable[..., Returned], parameters: Mapping[str, object]) -> Returned:
    """Call with the parameters of a command that it names, of which a group takes its own.

    KeyError when one is lacking that has no default.
    """
    values: dict[str, object] = {}
    types = get_type_hints(make)
    for name, parameter in signature(make).parameters.items():
        option = name if name in parameters else name.removesuffix("_s")
        if is_dataclass(types[name]) and types[name] is not Output:
            values[name] = filled(types[name], parameters)
        elif option in parameters or parameter.default is parameter.empty:
            values[name] = parameters[option]
    return make(**values)
