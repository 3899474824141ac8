"""Headings among the options of a command: each becomes an option group of its help."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click
import cloup

F = TypeVar("F", bound=Callable[..., object])


def heading(title: str) -> Callable[[F], F]:
    """Put the options that follow, down to the next heading, below this one.

    Options that commands share bring their headings along, so a title may stand among the options
    several times; the help shows it once.
    """

    def decorate(function: F) -> F:
        parameters = getattr(function, "__click_params__", ())
        groups = {
            parameter.group.title: parameter.group
            for parameter in parameters
            if hasattr(parameter, "group")
        }
        group = groups.get(title, cloup.OptionGroup(title))
        for parameter in parameters:
            if isinstance(parameter, click.Option) and not hasattr(parameter, "group"):
                parameter.group = group  # type: ignore[attr-defined]
        return function

    return decorate
