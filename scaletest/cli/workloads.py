"""--workload, which names what workers run: one built in, of an installed package, or of Python."""

import click
from click.core import ParameterSource

from scaletest.cli import options as shared
from scaletest_workers.workloads import registry

_KEY = "scaletest.workload"


def command_of_workers(metavar: str) -> shared.Decorator:
    """Make --workload NAME and the words of a command, as the parameter `command`, name first."""
    return shared.join_options(
        click.option(
            "--workload",
            default="",
            metavar="NAME",
            # it is read before the command
            is_eager=True,
            expose_value=False,
            callback=_remember_name,
            help=(
                "Run a class or function of Python, as PACKAGE.MODULE:NAME or FILE.py:NAME, or a"
                " workload that has a name; everything after -- is passed to it."
            ),
        ),
        click.argument(
            "command", nargs=-1, type=click.UNPROCESSED, metavar=metavar, callback=_add_workload
        ),
    )


def _remember_name(context: click.Context, _option: click.Parameter, name: str) -> None:
    context.meta[_KEY] = registry.resolve_name(name) if name else ""


def _add_workload(
    context: click.Context, argument: click.Parameter, arguments: tuple[str, ...]
) -> tuple[str, ...]:
    name = context.meta[_KEY]
    if not name:
        return arguments
    # it counts as typed, also without further arguments
    context.set_parameter_source(str(argument.name), ParameterSource.COMMANDLINE)
    return (name, *arguments)
