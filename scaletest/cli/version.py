"""scaletest version."""

from __future__ import annotations

import click

from scaletest import __version__


@click.command("version")
def command() -> None:
    """Print the version."""
    click.echo(__version__)
