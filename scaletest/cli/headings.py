"""Options that stand together: below a heading of the help, or as one decorator."""

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import click
import cloup
from cloup.formatting import ensure_is_cloup_formatter

from scaletest.cli.output import echo

F = TypeVar("F", bound=Callable[..., object])
# In the meta of a context: its help shows all options.
ALL_OPTIONS = "scaletest.all_options"


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


class ManyOptionsCommand(cloup.Command):
    """A command whose --help shows its common options, and --help-all all of them."""

    def __init__(self, *arguments: Any, common: str, **settings: Any) -> None:
        """Make the command. common: the options of the short help in its order, apart by blanks."""
        show_all = click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all_options,
            help="Show all options, and exit.",
        )
        settings["params"].append(show_all)
        super().__init__(*arguments, **settings)
        self._common = common.split()

    def format_params(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the common options into the help; all of them for --help-all."""
        if ctx.meta.get(ALL_OPTIONS):
            super().format_params(ctx, formatter)
            return
        by_name = {name: option for option in self.params for name in option.opts}
        records = [by_name[name].get_help_record(ctx) for name in self._common]
        others = self.make_option_group_help_section(self.get_default_option_group(ctx), ctx)
        sections = [cloup.HelpSection("Common options", list(filter(None, records))), others]
        ensure_is_cloup_formatter(formatter).write_many_sections(sections)


def _show_all_options(context: click.Context, option: click.Parameter, is_given: bool) -> None:
    if is_given and not context.resilient_parsing:
        context.meta[ALL_OPTIONS] = True
        echo(f"{context.get_help()}\n", nl=False)
        context.exit()


class Decorator(Protocol):
    """Adds an option to the function of a command, as the decorators of click do."""

    def __call__(self, function: F, /) -> F:
        """Return the function."""


def join_options(*options: Decorator) -> Decorator:
    """Join several options into one decorator, in the order of the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
