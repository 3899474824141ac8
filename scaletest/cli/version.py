"""scaletest version."""

from __future__ import annotations

import click

from scaletest import __version__
from scaletest.cli.output import echo


@click.command("version")
def command() -> None:
    """Print the version."""
    echo(__version__)
