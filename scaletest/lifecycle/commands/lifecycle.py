"""The command group `scaletest lifecycle`, whose commands are imported when they are called."""

import cloup

from scaletest.cli.lazy import LazyCommand, LazyGroup

COMMANDS = (
    LazyCommand(
        "run",
        "Submit, watch, sum up, draw, and judge, with live progress.",
        "lifecycle.commands.lifecycle_commands:run",
    ),
    LazyCommand(
        "submit", "Submit exactly N workloads.", "lifecycle.commands.lifecycle_commands:submit"
    ),
    LazyCommand(
        "sample",
        "Record the progress of the workloads, at any time.",
        "lifecycle.commands.lifecycle_commands:sample",
    ),
    LazyCommand(
        "delete",
        "Delete the objects that a run submitted, and what they own.",
        "lifecycle.commands.lifecycle_commands:delete",
    ),
    LazyCommand(
        "plot",
        "Write times.csv and general.png or detailed.png.",
        "lifecycle.commands.lifecycle_commands:plot",
    ),
)


@cloup.group(
    "lifecycle",
    cls=LazyGroup,
    commands=COMMANDS,
    help="""Measure how fast the cluster brings workloads up: submit N of them, watch their phases,
    sum up.

    \b
    scaletest lifecycle run -n 2000 -p 5 -g 0 --delay 1s --run-seconds 30s
    scaletest lifecycle submit -t distributed -n 1000 --num-workers 7 -g 0 -o out
    scaletest lifecycle sample -o out    # as often as you like, during submit
    scaletest lifecycle plot --plot detailed -o out
    scaletest report out
    """,
)
def command() -> None:
    """Measure how fast the cluster brings workloads up."""
