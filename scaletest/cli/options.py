"""Options that several commands share, with one meaning and one environment variable each."""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import wraps
from inspect import signature
from typing import TypeVar, get_type_hints

import click
from click.core import ParameterSource

from scaletest.cli.headings import Decorator, F, join_options, under_heading
from scaletest.cli.output import Output, confirm, echo
from scaletest.cli.output_options import output, report_output
from scaletest.model.checks import cut_text
from scaletest.model.errors import UsageError
from scaletest.model.presets import PRESETS
from scaletest.model.quantities import PER_SECOND, SECONDS, in_base_units

Returned = TypeVar("Returned")
# The functions that `call_with_groups` calls with what a command takes, by the command's function.
OPTIONS_OF: dict[Callable[..., object], Callable[..., object]] = {}

# Beside the options below, commands find here what stands in modules of its own.
__all__ = [
    "DURATION",
    "RATE",
    "RATE_WITH_UNIT",
    "Decorator",
    "PRICE",
    "Quantity",
    "WatchOptions",
    "is_confirmed",
    "context",
    "duration",
    "join_options",
    "call_with_groups",
    "under_heading",
    "is_typed",
    "labels",
    "max_attempts",
    "namespace_option",
    "read_numbers",
    "output",
    "preset",
    "progress",
    "redis_url",
    "refuse_beside",
    "report_output",
    "watch",
    "yes",
]


class Quantity(click.ParamType[float]):
    """A number with a unit, in base units."""

    def __init__(
        self,
        name: str,
        units: Mapping[str, float],
        example: str,
        bare: str = "",
        plausible: float = math.inf,
    ) -> None:
        """Set what the option takes.

        name: what messages call it. units: in base units, by name. example: for hints.
        bare: the unit of a number without one; "" refuses such a number.
        plausible: the largest such number, in base units, that is not asked about.
        """
        self.name, self._example, self._bare, self._plausible = name, example, bare, plausible
        self._units = {**units, "": units[bare]} if bare else units

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number in base units."""
        if isinstance(value, int | float):
            return float(value)
        text, name = str(value).strip(), param.opts[-1] if param else self.name
        measured = in_base_units(text, self._units)
        if measured is None or math.isinf(measured):
            raise UsageError(
                f"{name}: {cut_text(repr(value), limit=60)} is no {self.name}",
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
# In money of any kind.
PRICE = Quantity("price of an hour", {"/h": 1.0}, "1.2/h", "/h")
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
# What to call a new run: of its Labels, the one that is known before it is measured.
labels = join_options(
    under_heading("Run"),
    click.option(
        "--name",
        default="",
        metavar="NAME",
        help="Name the run, so that other commands find it by this name.",
    ),
)
# What a long command shows of its progress, for `progress_views.show_progress`.
progress = join_options(
    under_heading("Output"),
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
watch = join_options(
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
# For `is_confirmed`.
yes: Decorator = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")


def read_numbers(context: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    """Read the whole numbers between commas."""
    try:
        return tuple(map(int, value.split(","))) if value else ()
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a list of numbers, such as 1,2,4", context, parameter
        ) from None


def redis_url(default: str | None = "redis://127.0.0.1:6379/0") -> Callable[[F], F]:
    """Make --redis-url, also SCALETEST_REDIS_URL; a password belongs in the variable."""
    return click.option(
        "--redis-url",
        default=default,
        envvar="SCALETEST_REDIS_URL",
        show_default=bool(default),
        show_envvar=True,
        metavar="URL",
        help="Use the Redis at this address, which begins with redis://, rediss:// or unix://.",
    )


def duration(*names: str, default: str | None = None, help: str) -> Callable[[F], F]:
    """Make an option that takes a duration."""
    return click.option(
        *names,
        type=DURATION,
        default=default,
        show_default=default not in (None, "0s"),
        metavar="TIME",
        help=help,
    )


def namespace_option(text: str) -> Callable[[F], F]:
    """Make -n/--namespace, with this help."""
    return click.option("-n", "--namespace", default="", metavar="NAME", help=text)


def preset(text: str) -> Callable[[F], F]:
    """Make --preset, with this help; "" for none."""
    names = list(PRESETS)
    return click.option(
        "--preset", type=click.Choice(["", *names]), default="", metavar="|".join(names), help=text
    )


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How a run is watched."""

    progress: str  # auto, plain, json or none
    ui: bool  # whether a page is served


def is_typed(name: str) -> bool:
    """Return whether a parameter of the running command was given on the command line."""
    return click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE


def refuse_beside(
    option: str, allowed: set[str], hint: str = "leave it out: the stored plan counts"
) -> None:
    """Raise UsageError when an option outside `allowed` was typed beside `option`."""
    for parameter in click.get_current_context().command.params:
        name = parameter.name or ""
        if is_typed(name) and name not in allowed:
            is_option = isinstance(parameter, click.Option)
            label = max(parameter.opts, key=len) if is_option else "a command"
            raise UsageError(
                f"{label} cannot be given with {option}",
                hint=hint,
            )


def is_confirmed(question: str, yes: bool, *, terminal: bool = False) -> bool:
    """Return whether --yes, the terminal or standard input answers yes.

    UsageError without an answer.

    terminal: whether nothing but a terminal may answer. The lines of a list that a loop reads are
    no answers.
    """
    if terminal and not yes and not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(f"cannot ask without a terminal: {question}", hint="add --yes")
    try:
        return yes or confirm(question)
    except click.Abort:
        if sys.stdin.isatty():
            raise
    except (OSError, RuntimeError):  # standard input is closed, or cannot be read
        pass
    echo(err=True)
    raise UsageError("the question got no answer", hint="add --yes")


def call_with_groups(command: Callable[..., Returned]) -> Callable[..., Returned]:
    """Let a command take its options in groups. The decorator stands below those of the options.

    An argument whose type is a frozen dataclass is a group: it is made of the options that its
    fields name. Two commands can share a group then. The option of a name in seconds need not have
    its _s.
    """

    @wraps(command)
    def call(**parameters: object) -> Returned:
        return fill_parameters(command, parameters)

    OPTIONS_OF[call] = command
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
