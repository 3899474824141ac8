"""scaletest completion: the script that completes commands, options and names in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from scaletest.cli.headings import HeadedCommand
from scaletest.cli.main import COMPLETE
from scaletest.cli.output import echo


@click.command("completion", cls=HeadedCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script by which SHELL completes commands, options and names: of runs, queues,
    benchmark kinds, measures and settings.

    \b
    echo 'eval "$(scaletest completion bash)"' >> ~/.bashrc
    echo 'eval "$(scaletest completion zsh)"' >> ~/.zshrc
    scaletest completion fish > ~/.config/fish/completions/scaletest.fish

    Then open a new shell.
    """
    shell_class = get_completion_class(shell)
    assert shell_class is not None
    echo(shell_class(context.find_root().command, {}, "scaletest", COMPLETE).source(), nl=False)
