"""Options that stand together: below a heading of the help, or as one decorator."""

from collections.abc import Callable
from typing import Protocol, TypeVar

import click
import cloup

F = TypeVar("F", bound=Callable[..., object])


def under_heading(title: str) -> Callable[[F], F]:
    """Put the options that follow, down to the next heading, below this one.

    Options that commands share bring their headings along, so a title may stand among the options
    several times; the help shows it once.
    """

    def decorate(function: F) -> F:
        parameters = getattr(function, "__click_params__", ())
        groups = {
            option.group.title: option.group for option in parameters if hasattr(option, "group")
        }
        group = groups.get(title, cloup.OptionGroup(title))
        # decorators run from the lowest up, so whatever has no group yet stands below this heading
        for parameter in parameters:
            if isinstance(parameter, click.Option) and not hasattr(parameter, "group"):
                parameter.group = group  # type: ignore[attr-defined]
        return function

    return decorate


class Decorator(Protocol):
    """Adds an option to a command's function."""

    def __call__(self, function: F, /) -> F:
        """Return the function."""


def join_options(*options: Decorator) -> Decorator:
    """Join several options into one decorator, in the order of the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
