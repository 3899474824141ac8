"""Let a command take its options in groups, each a frozen dataclass."""

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import wraps
from inspect import signature
from typing import TypeVar, get_type_hints

from scaletest.cli.output import Output

Returned = TypeVar("Returned")


def call_with_groups(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Let a command take its options in groups. The decorator stands below those of the options.

        @options.watch  # --progress and --ui
        @call_with_groups
        def command(*, watch: WatchOptions) -> int: ...

    An argument whose type is a frozen dataclass is a group: it is made of the options that its
    fields name, so that two commands can share it. The option of a name in seconds need not have
    its _s.
    """

    @wraps(command)
    def call(**parameters: object) -> Returned:
        return fill_parameters(command, parameters)

    return call


def fill_parameters(make: Callable[..., Returned], parameters: Mapping[str, object]) -> Returned:
    """Call `make` with those parameters of a command that its signature names, groups included.

    KeyError when one is lacking that has no default.
    """
    values: dict[str, object] = {}
    types = get_type_hints(make)
    for name, parameter in signature(make).parameters.items():
        option = name if name in parameters else name.removesuffix("_s")
        if is_dataclass(types[name]) and types[name] is not Output:
            values[name] = fill_parameters(types[name], parameters)
        elif option in parameters or parameter.default is parameter.empty:
            values[name] = parameters[option]
    return make(**values)
