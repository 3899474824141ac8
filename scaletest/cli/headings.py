"""Help in groups: the options of a command stand below headings, and so do the commands of a group.

A heading stands among the options, above those that it holds, down to the next one. A command with
many options shows those first that `first` names; --help-all shows all of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, Literal, TypeVar, get_args

import click

from scaletest.cli.output import echo

F = TypeVar("F", bound=Callable[..., object])
# All headings, in the order of the help.
Heading = Literal[
    "Target",
    "Load",
    "Requests",
    "Accuracy",
    "Verdict",
    "Devices",
    "Program",
    "Pods",
    "Nodes",
    "Kubernetes",
    "Autoscaling",
    "Agents",
    "Tuning",
    "Failures",
    "Server",
    "RQ",
    "Run",
    "Output",
]
# A command with more options than the first number has headings; with more than the second, its
# --help shows so many.
FEW, MOST_FIRST = 4, 8
NO_HEADING = "Options"
# How click writes the limits of a whole number, and how people say that.
LIMITS = {r"(\d+)<=x<=(\d+)": r"\1 to \2", r"x>=(\d+)": r"at least \1"}
# In the meta of a context whose help shall have all options.
ALL = "scaletest.help.all"

_HEADINGS: dict[click.Parameter, str] = {}
_FIRST: set[click.Parameter] = set()


def heading(title: Heading) -> Callable[[F], F]:
    """A heading above the options that follow."""

    def decorate(function: F) -> F:
        for parameter in _parameters(function):
            _HEADINGS.setdefault(parameter, title)
        return function

    return decorate


def first(*names: str) -> Callable[[F], F]:
    """The options that --help shows of many, by their long names; it stands above all of them."""

    def decorate(function: F) -> F:
        chosen = [each for each in _parameters(function) if not set(names).isdisjoint(each.opts)]
        assert len(chosen) == len(names) <= MOST_FIRST, names
        _FIRST.update(chosen)
        return function

    return decorate


def _parameters(function: Callable[..., object]) -> list[click.Parameter]:
    """The parameters that click has noted on a function so far."""
    return list(getattr(function, "__click_params__", ()))


def _show_all(context: click.Context, _option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted and not context.resilient_parsing:
        context.meta[ALL] = True
        echo(context.get_help())
        context.exit()


HELP_ALL = click.Option(
    ["--help-all"],
    is_flag=True,
    is_eager=True,
    expose_value=False,
    allow_from_autoenv=False,
    callback=_show_all,
    help="Show all options and exit.",
)


class HeadedCommand(click.Command):
    """A command whose help has headings; --help shows the first of many options."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """The parameters with --help, and --help-all where the help does not show all options."""
        parameters = super().get_params(ctx)
        return [*parameters, HELP_ALL] if len(visible(self)) > MOST_FIRST else parameters

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below their headings, and the help options last."""
        sections = options_by_heading(self, is_short=_is_short(self, ctx))
        own = set(self.params)
        help_options = [each for each in self.get_params(ctx) if each not in own]
        last = NO_HEADING if list(sections) in ([], [NO_HEADING]) else "Help"
        sections[last] = [*sections.get(last, []), *help_options]
        rows = {title: list(records(listed, ctx)) for title, listed in sections.items()}
        # as wide as click makes the widest column
        width = min(30, max(len(name) for name, _ in chain.from_iterable(rows.values())))
        for title, listed in rows.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in listed])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the epilog, and how to see the options that are not shown."""
        super().format_epilog(ctx, formatter)
        if _is_short(self, ctx):
            formatter.write_paragraph()
            formatter.write_text(
                f"All {len(visible(self))} options are shown by: {ctx.command_path} --help-all"
            )


class HeadedGroup(click.Group):
    """A group whose help has its commands below headings, before its options.

    headings: the names of the commands below each, where there are many.
    """

    command_class = HeadedCommand
    headings: ClassVar[Mapping[str, Sequence[str]]] = {}

    def summary(self, ctx: click.Context, name: str) -> str:
        """The first sentence of a command's help; "" for one that is hidden."""
        command = self.get_command(ctx, name)
        assert command is not None
        return "" if command.hidden else command.get_short_help_str(1000)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, and then the options."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands below their headings."""
        summaries = {name: self.summary(ctx, name) for name in self.list_commands(ctx)}
        shown = [name for name, text in summaries.items() if text]
        width = max(map(len, shown))
        for title, names in (self.headings or {"Commands": shown}).items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), summaries[name]) for name in names])


def visible(command: click.Command) -> list[click.Option]:
    """The options of a command that its full help shows, without those for help."""
    options = [each for each in command.params if isinstance(each, click.Option)]
    return [option for option in options if not option.hidden]


def heading_of(option: click.Parameter) -> str:
    """The heading above an option, NO_HEADING without any."""
    return _HEADINGS.get(option, NO_HEADING)


def options_by_heading(
    command: click.Command, *, is_short: bool = False
) -> dict[str, list[click.Parameter]]:
    """The options of a command below each of its headings. is_short: only the first of many."""
    options = visible(command)
    if len(options) <= FEW:
        return {NO_HEADING: list(options)} if options else {}
    sections: dict[str, list[click.Parameter]] = {}
    for title in (*get_args(Heading), NO_HEADING):
        below = [option for option in options if heading_of(option) == title]
        chosen = [option for option in below if not is_short or option in _FIRST]
        if chosen:
            sections[title] = list(chosen)
    return sections


def records(
    options: Sequence[click.Parameter], context: click.Context
) -> Iterator[tuple[str, str]]:
    """Names and help of options, as the help shows them."""
    for option in options:
        record = option.get_help_record(context)
        assert record is not None
        name, text = record
        for pattern, phrase in LIMITS.items():
            text = re.sub(pattern, phrase, text)
        yield name, text.replace("  [", " [")


def _is_short(command: click.Command, context: click.Context) -> bool:
    """Whether the help leaves options out."""
    return len(visible(command)) > MOST_FIRST and ALL not in context.meta
