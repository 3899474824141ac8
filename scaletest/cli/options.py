"""Options that several commands share, with one meaning and one environment variable each."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import click
from click.core import ParameterSource

from scaletest.cli.headings import Decorator, F, ManyOptionsCommand, join_options, under_heading
from scaletest.cli.option_groups import call_with_groups
from scaletest.cli.output import confirm
from scaletest.cli.output_options import output, report_output
from scaletest.cli.quantity import DURATION, PRICE, RATE, RATE_WITH_UNIT, Quantity
from scaletest.model.errors import UsageError
from scaletest.model.presets import PRESETS

# Commands find here also what stands in modules of its own.
__all__ = [
    "DURATION",
    "RATE",
    "RATE_WITH_UNIT",
    "Decorator",
    "ManyOptionsCommand",
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
    """Read whole numbers between commas, as the callback of an option; none for ""."""
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
    """Make an option that takes a duration: a number of seconds, or one with a unit."""
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
    """How the user watches a run while it is measured: the options of `watch`."""

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
            raise UsageError(f"{label} cannot be given with {option}", hint=hint)


def is_confirmed(question: str, yes: bool) -> bool:
    """Return whether --yes or the user at the terminal says so; UsageError without a terminal."""
    if yes:
        return True
    if not (sys.stdin and sys.stdin.isatty()):
        raise UsageError(f"cannot ask without a terminal: {question}", hint="add --yes")
    return confirm(question)
