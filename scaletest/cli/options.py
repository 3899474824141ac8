"""Options that several commands share, with one meaning and one environment variable each.

Quantities among them take units: a duration is a number of seconds, or a number with a unit, as in
3m.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Protocol, TypeVar, get_type_hints

import click
from click.core import ParameterSource

from scaletest.cli.headings import heading
from scaletest.cli.output import Output, confirm, echo
from scaletest.model.checks import cut
from scaletest.model.errors import UsageError
from scaletest.model.presets import PRESETS
from scaletest.model.texts import PER_SECOND, SECONDS, in_base_units
from scaletest.report import formats
from scaletest.report.formats import form_of


class Quantity(click.ParamType[float]):
    """A number with a unit, in base units.

    bare: the unit of a number without one, which "" refuses. plausible: the largest such number, in
    base units, that is not asked about.
    """

    def __init__(
        self,
        name: str,
        units: Mapping[str, float],
        example: str,
        bare: str = "",
        plausible: float = math.inf,
    ) -> None:
        self.name, self._example, self._bare, self._plausible = name, example, bare, plausible
        self._units = {**units, "": units[bare]} if bare else units

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number in base units."""
        if isinstance(value, int | float):
            return float(value)
        text, name = str(value).strip(), param.opts[-1] if param else self.name
        measured = in_base_units(text, self._units)
        if measured is None or math.isinf(measured):
            raise UsageError(
                f"{name}: {cut(repr(value), 60)} is no {self.name}",
                hint=f"write it as in {self._example}",
            )
        if text[-1].isdigit() and measured > self._plausible:
            echo(
                f"warning: {name} {text} is read as {text}{self._bare}; write its unit, as in"
                f" {self._example}",
                err=True,
            )
        return measured


# 500 without a unit may be meant in milliseconds.
DURATION = Quantity("duration", SECONDS, "90s, 3m or 500ms", "s", plausible=60.0)
RATE = Quantity("rate", PER_SECOND, "20/s or 600/min", "/s")
# For rates that people count per second or per minute.
RATE_WITH_UNIT = Quantity("rate with its unit", PER_SECOND, "2/s or 120/min")


def duration(*names: str, default: str | None = None, help: str) -> Callable[[F], F]:
    """An option that takes a duration."""
    return click.option(
        *names,
        type=DURATION,
        default=default,
        show_default=default not in (None, "0s"),
        metavar="TIME",
        help=help,
    )


F = TypeVar("F", bound=Callable[..., object])
Returned = TypeVar("Returned")


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


# What `grouped` commands take, by their functions.
OPTIONS_OF: dict[Callable[..., object], Callable[..., object]] = {}


def filled(make: Callable[..., Returned], parameters: Mapping[str, object]) -> Returned:
    """Call with the parameters of a command that it names, of which a group takes its own. KeyError
    when one is lacking that has no default.
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


def numbers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """The whole numbers between commas."""
    try:
        return tuple(map(int, value.split(","))) if value else ()
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is no list of numbers such as 1,2,4", context, parameter
        ) from None


class Decorator(Protocol):
    """Adds an option to a command's function."""

    def __call__(self, function: F, /) -> F:
        """The function."""


def group(*options: Decorator) -> Decorator:
    """Options that stand together, in the order of the help."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def redis_url(default: str | None = "redis://127.0.0.1:6379/0") -> Callable[[F], F]:
    """--redis-url, also SCALETEST_REDIS_URL; a password belongs in the variable."""
    return click.option(
        "--redis-url",
        default=default,
        envvar="SCALETEST_REDIS_URL",
        show_default=bool(default),
        show_envvar=True,
        metavar="URL",
        help="Use the Redis at this address, which begins with redis://, rediss:// or unix://.",
    )


def namespace(text: str) -> Callable[[F], F]:
    """-n/--namespace, with this help."""
    return click.option("-n", "--namespace", default="", metavar="NAME", help=text)


context: Decorator = click.option(
    "--context",
    default="",
    metavar="NAME",
    help=(
        "Use this context of the kubeconfig. [default: the pod's cluster, or the current context]"
    ),
)


max_attempts: Decorator = click.option(
    "--max-attempts",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Start a request that was lost with its worker at most N times before it fails.",
)


def preset(text: str) -> Callable[[F], F]:
    """--preset, with this help; "" for none."""
    names = list(PRESETS)
    return click.option(
        "--preset", type=click.Choice(["", *names]), default="", metavar="|".join(names), help=text
    )


def output(*forms: str, letter: bool = True) -> Callable[[F], F]:
    """-o/--output and --format, as one parameter `output`: an Output. The first form is usual."""
    forms = forms or ("text", "json", "yaml")

    def note_form(context: click.Context, _option: click.Parameter, form: str | None) -> None:
        is_usual = context.get_parameter_source("form") is ParameterSource.DEFAULT_MAP
        # that of the settings file counts less than the suffix of FILE
        context.meta["form"] = None if is_usual else form
        context.meta["usual form"] = form if is_usual else forms[0]

    def choose(context: click.Context, option: click.Parameter, file: str) -> Output:
        form, name = context.meta["form"], option.opts[0]
        if file in forms and not Path(file).exists():
            raise UsageError(
                f"{name} {file} names a form, not a file",
                hint=f"write --format {file}, or -o FILE.{file}",
            )
        form = form or _form_of(file, forms, context.meta["usual form"])
        _check_place(file, name)
        return Output(Path(file), form)

    def decorate(function: F) -> F:
        function = click.option(
            "--format",
            "form",
            type=click.Choice(forms),
            is_eager=True,
            expose_value=False,
            callback=note_form,
            envvar="SCALETEST_FORMAT",
            help=(
                f"Write the result in this form. [default: by the suffix of FILE, else {forms[0]}]"
            ),
        )(function)
        return click.option(
            *(["-o"] if letter else []),
            "--output",
            default="-",
            callback=choose,
            metavar="FILE",
            help="Write the result to this file. [default: standard output]",
        )(function)

    return decorate


def _form_of(file: str, forms: Sequence[str], usual: str) -> str:
    """The form that the suffix of a file names, one of `forms`; `usual` without a suffix."""
    suffix = Path(file).suffix
    if not suffix:
        return usual
    form = form_of(Path(file))
    if form not in forms:
        raise UsageError(
            f"{file}: this command has no form for {suffix.lower()}",
            hint=f"give another FILE, or --format {' or '.join(forms)}",
        )
    return form


def report_output(*, letter: bool = True) -> Decorator:
    """-o/--output and --format of a command that writes a report."""
    first = ("text", "json", "yaml")
    others = [name for name in formats.names() if name not in first]
    options = output(*first, *others, letter=letter)
    return group(heading("Output"), options)


def _check_place(file: str, option: str) -> None:
    """Refuse a file that cannot be written before something is measured for it."""
    path = Path(file)
    reason = ""
    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = f"there is no folder {path.parent}"
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        reason = "you have no right to"
    if reason and file != "-":
        raise UsageError(f"{path} cannot be written: {reason}", hint=f"give another {option} FILE")


# What to call a new run: of its Labels, the one that is known before it is measured.
labels = group(
    heading("Run"),
    click.option(
        "--name",
        default="",
        metavar="NAME",
        help="Call the run by this name, by which other commands find it.",
    ),
)


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a run is watched. progress: auto, plain, json or none. ui: whether a page is served."""

    progress: str
    ui: bool


# What a long command shows of its progress, for `progress_views.shown`.
progress = group(
    heading("Output"),
    click.option(
        "--progress",
        type=click.Choice(["auto", "plain", "json", "none"]),
        default="auto",
        show_default=True,
        help=(
            "Show progress live on a terminal and as plain lines elsewhere (auto), always as plain"
            " lines, as JSON lines for programs, or not at all."
        ),
    ),
)

# The fields of WatchOptions.
watch = group(
    progress,
    click.option(
        "--ui",
        is_flag=True,
        help=(
            "Show the run in a browser while it is measured, at a free port of this machine;"
            " `scaletest ui --listen` shows it at another address."
        ),
    ),
)


def is_typed(name: str) -> bool:
    """Whether the parameter of that name stands on the command line of the running command."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_beside(option: str, allowed: set[str]) -> None:
    """UsageError when an option outside `allowed` was typed beside `option`."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if is_typed(name) and name not in allowed:
            is_option = isinstance(parameter, click.Option)
            label = max(parameter.opts, key=len) if is_option else "a command"
            raise UsageError(
                f"{label} cannot be given with {option}",
                hint="leave it out: the stored plan counts",
            )


# For `confirmed`.
yes: Decorator = click.option("--yes", is_flag=True, help="Do it without asking.")


def confirmed(question: str, yes: bool, *, terminal: bool = False) -> bool:
    """Whether --yes, the terminal or standard input answers yes; UsageError without an answer.

    terminal: whether nothing but a terminal may answer. The lines of a list that a loop reads are
    no answers.
    """
    if terminal and not yes and not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(f"there is no terminal to ask: {question}", hint="add --yes")
    try:
        return yes or confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
    except (OSError, RuntimeError):  # standard input is closed, or cannot be read
        pass
    echo(err=True)
    raise UsageError("the question got no answer", hint="add --yes")
