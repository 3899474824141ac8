"""What commands print: the one way to standard output and standard error for text."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from scaletest.model.checks import printable
from scaletest.model.errors import UsageError


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print text. Names, notes and errors in it may be foreign: no terminal obeys them."""
    click.echo(printable(str(text), keep="\n\t"), err=err, nl=nl)


def write(text: str, path: Path) -> None:
    """Write harmless text as it is; "-" is standard output. Raises UsageError."""
    content = text.encode(errors="replace")
    if str(path) == "-":
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        path.write_bytes(content)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", hint="give another -o FILE"
        ) from error
    echo(f"{path} written", err=True)


def confirm(question: str) -> bool:
    """Ask on standard error, as `echo` prints."""
    return click.confirm(printable(question), err=True)
