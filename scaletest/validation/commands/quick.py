"""The command `scaletest quick`: a first answer in half a minute."""

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli import workloads
from scaletest.model.errors import UsageError


@cloup.command("quick")
@click.option(
    "--limit",
    type=int,
    default=None,
    metavar="N",
    help="Measure up to N workers. [default: 8, or twice the cores of this machine]",
)
@click.option(
    "--device-glob",
    default="",
    metavar="GLOB",
    help="Let the workers share the devices with these files, e.g. '/dev/dri/renderD*'.",
)
@shared.preset("Let the workers share the devices of this vendor.")
@workloads.command_of_workers("-- COMMAND [ARG...]")
def command(limit: int | None, device_glob: str, preset: str, command: tuple[str, ...]) -> int:
    """Look for half a minute how a program scales on this machine, and what stops it.

    \b
    scaletest quick -- sleep 0.2
    scaletest quick -- ffmpeg -v error -i input.mp4 -f null -
    scaletest quick --workload thumbs.py:Thumbs -- --width 640

    It runs the program once, and then with 1, 2, 4, ... workers at a time. The answer is no
    verdict; it ends with the command that gives you a verdict. Exit code 5 when requests failed,
    4 when it was interrupted.
    """
    if not command:
        raise UsageError("no program was given", hint="write it after --, e.g. -- sleep 0.2")
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.validation.commands import quick_run

    return quick_run.run(command, limit, device_glob, preset)
