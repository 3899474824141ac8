"""Options that set a field of a plan: the field declares the name, default, unit and help."""

from collections.abc import Callable
from typing import Any

import click

from scaletest.cli.headings import F
from scaletest.cli.options import read_numbers
from scaletest.cli.quantity import DURATION
from scaletest.model.wording import as_options
from scaletest.model.writing import document_members


def key_of(option: click.Parameter) -> str:
    """Return the key of an option in plan files: its longest name, with underscores."""
    return max(option.opts, key=len).removeprefix("--").replace("-", "_")


def plan_option(
    plan: type, key: str, metavar: str, option: str = "", envvar: str | None = None
) -> Callable[[F], F]:
    """Make the option of a plan's field.

    key: the field in plan files, and the option's parameter. option, envvar: its names, if they are
    not the key's. A field of several texts makes an option that may be repeated, and one of several
    numbers an option that takes them with commas between.
    """
    member = next(member for member in document_members(plan) if member.key == key)
    rule, default = member.rule, member.default
    help_text = as_options(rule.description)
    attributes: dict[str, Any] = {"default": default, "type": rule.base}
    if rule.is_duration:
        attributes |= {"type": DURATION, "default": f"{default:g}s" if default else default}
    elif rule.base == tuple[str, ...]:
        help_text = f"{help_text.rstrip('.')}; the option may be repeated."
        attributes |= {"type": str, "multiple": True}
    elif isinstance(default, tuple):
        attributes |= {"type": str, "default": "", "callback": read_numbers}
    return click.option(
        option or f"--{key.replace('_', '-')}",
        key,
        metavar=metavar,
        envvar=envvar,
        show_default=bool(default) or rule.base is int,
        help=help_text,
        **attributes,
    )
