"""Groups that import a command when it is called, so that their help and completion are quick."""

import importlib
from typing import cast

import click
import cloup
from click.shell_completion import CompletionItem


class LazyCommand(click.Command):
    """The name and the line of help of a command that is not imported yet.

    place: MODULE[:NAME] below `scaletest`, where the command is; else `command` of the module
    in `scaletest.cli` that has its name.
    """

    def __init__(self, name: str, short_help: str, place: str = "", hidden: bool = False) -> None:
        super().__init__(name, short_help=short_help, hidden=hidden)
        self._place = place or f"cli.{name}"

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self._place.partition(":")
        imported = importlib.import_module(f"scaletest.{module}")
        return cast(click.Command, getattr(imported, name or "command"))


class LazyGroup(cloup.Group):
    """A group whose commands are imported when they are called, and not for its help."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name itself; None for an unknown one."""
        command = super().get_command(ctx, cmd_name)
        return command.load() if isinstance(command, LazyCommand) else command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete the names of commands, which click would import for their help."""
        items = [
            CompletionItem(name, help=command.get_short_help_str())
            for name, command in self.commands.items()
            if name.startswith(incomplete) and not command.hidden
        ]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]
