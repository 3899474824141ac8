"""scaletest help and version: what the program says of itself."""

from __future__ import annotations

import click

from scaletest import __version__
from scaletest.cli.headings import HeadedCommand
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError


@click.command("help", cls=HeadedCommand)
@click.argument("names", nargs=-1, metavar="[COMMAND]...")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of a command, as its --help does.

    \b
    scaletest help
    scaletest help validate
    scaletest help runs list
    """
    shown = context.find_root()
    for name in names:
        if not isinstance(shown.command, click.Group):
            raise UsageError(
                f"{shown.command_path} has no commands, so no {name}",
                hint=f"see: {shown.command_path} --help",
            )
        # as if it were asked there: a broken settings file is no matter
        _, subcommand, _ = shown.command.resolve_command(shown, [name, "--help"])
        assert subcommand is not None
        shown = click.Context(subcommand, info_name=subcommand.name, parent=shown)
    echo(shown.get_help())


@click.command("version", cls=HeadedCommand)
def version() -> None:
    """Print the version.

    \b
    scaletest version
    """
    echo(__version__)
