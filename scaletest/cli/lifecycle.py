"""scaletest lifecycle: how fast a cluster brings workloads up; its commands and their options.

The commands are imported when they are called: `lifecycle --help` needs none of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import click

from scaletest.cli import stored
from scaletest.cli.main import LazyGroup
from scaletest.cli.options import DURATION, Decorator, context, group
from scaletest.lifecycle.kinds import ALIASES, DEFAULT_PROJECT, KINDS
from scaletest.model.lifecycle import KIND, TOOLS, UNTIL

TYPES = (*ALIASES, *KINDS)


class LifecycleGroup(LazyGroup):
    """The commands of scaletest lifecycle."""

    table: ClassVar = {
        "submit": ("lifecycle_run", "Submit exactly N workloads."),
        "sample": ("lifecycle_run", "Record the progress of the workloads, at any time."),
        "run": ("lifecycle_run", "Submit, watch, sum up, draw, and judge, with live progress."),
        "observe": ("lifecycle_run", "Measure somebody else's workloads: watch, submit nothing."),
        "delete": ("lifecycle_run", "Delete the objects that a run submitted, and what they own."),
        "plot": ("lifecycle_files", "Write times.csv and general.png or detailed.png."),
        "report": ("lifecycle_files", "Sum a run up: books, steps with percentiles, verdict."),
        "compare": (
            "lifecycle_files",
            "Tell which steps of CANDIDATE are slower than those of BASE.",
        ),
    }


@click.group("lifecycle", cls=LifecycleGroup)
def command() -> None:
    """Measure how fast the cluster brings workloads up: submit N of them, watch their phases, sum
    up.

    \b
    scaletest lifecycle run -t training -n 2000 -p 5 --delay 1 --run-seconds 30
    scaletest lifecycle submit -t distributed -n 1000 --num-workers 7 -p 1 --delay 5 -o out2
    scaletest lifecycle sample -o out2      # as often as you like, while submit runs
    scaletest lifecycle plot --plot detailed -o out2
    """


def folder(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """A folder; else LAST or the end of a name, of runs that `run` keeps and imports."""
    if value is None or value.exists() or value.name != str(value):
        return value
    paths = [run.path for run in stored.known() if run.layout.kind == KIND]
    matching = [path for path in paths if path.name.endswith(str(value))]
    if str(value) == "LAST":
        matching = paths[-1:]
    return matching[0] if len(matching) == 1 else value


def _sleep_time(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Seconds as text, as `sleep` takes them, or infinity; None without the option."""
    if value in (None, "infinity"):
        return value
    return f"{DURATION.convert(value, option, context):g}"


def output_dir(short: bool = True, default: str | None = "logs") -> Decorator:
    """Add -o, --output-dir."""
    names = ["-o", "--output-dir"] if short else ["--output-dir"]
    return click.option(
        *names,
        "output_dir",
        type=click.Path(file_okay=False, path_type=Path),
        default=default,
        show_default=bool(default),
        metavar="DIR",
        callback=folder,
        help="Folder of the run; LAST or the end of a name for one that `run` named.",
    )


# Which workloads are submitted: LifecycleWorkloadOptions.
workload = group(
    click.option(
        "-t",
        "--workload-type",
        type=click.Choice(TYPES),
        default="training",
        show_default=True,
        help="training is a Job, distributed an Indexed Job, interactive a Deployment.",
    ),
    click.option(
        "-n",
        "--num-workloads",
        type=click.IntRange(min=1),
        default=None,
        metavar="N",
        help="Number of workloads to submit. Needed for a new run.",
    ),
    click.option(
        "-p",
        "--num-processes",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        metavar="N",
        help="Workloads in a burst, submitted in parallel.",
    ),
    click.option(
        "--delay",
        type=DURATION,
        default="0s",
        show_default=True,
        metavar="TIME",
        help="Closed load: wait this long after each burst.",
    ),
    click.option(
        "--interval",
        type=DURATION,
        default=0.0,
        metavar="TIME",
        help="Open load: begin a burst this often, whether or not the one before has ended.",
    ),
    click.option(
        "--num-workers",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Pods of a distributed workload, or replicas.",
    ),
    click.option(
        "-g",
        "--num-gpus",
        default=None,
        metavar="N",
        help="Devices of each pod, or a part of one. [default: 0; 1 for runai types]",
    ),
    click.option(
        "--resource",
        default="nvidia.com/gpu",
        show_default=True,
        metavar="NAME",
        help="Extended resource of the devices, as in gpu.intel.com/xe.",
    ),
    click.option(
        "--claim-template",
        default="",
        metavar="NAME",
        help="Devices by DRA instead: a ResourceClaimTemplate of the namespace.",
    ),
    click.option("--pvc", is_flag=True, help="Add an ephemeral volume claim to every pod."),
    click.option(
        "--storage-class",
        default="",
        metavar="NAME",
        help="Storage class of the claim. [default: the cluster's]",
    ),
    click.option("--image", default="busybox", show_default=True, help="Image of the pods."),
    click.option(
        "--run-seconds",
        default=None,
        metavar="TIME",
        callback=_sleep_time,
        help="How long the pods sleep, or infinity. [default: 60s; infinity for runai types]",
    ),
    click.option(
        "--template",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="YAML of one object instead of the built-in template; any field passes through.",
    ),
    click.option(
        "--until",
        type=click.Choice(UNTIL),
        default=None,
        help="A workload counts as measured when it reaches this. [default: by type]",
    ),
    click.option(
        "--namespace",
        default="",
        metavar="NAME",
        help="[default: runai-PROJECT, else the current one]",
    ),
    context,
    click.option(
        "--tool",
        type=click.Choice(TOOLS),
        default="api",
        show_default=True,
        help="Submit by server-side apply, by kubectl, or by the Run:ai command line.",
    ),
    click.option(
        "--tool-path",
        default="",
        metavar="PATH",
        help="Path of that program. [default: found by name]",
    ),
    click.option(
        "--event-times",
        is_flag=True,
        help="Also read Events: scheduling in microseconds, evictions, volume claims.",
    ),
    click.option(
        "--force",
        is_flag=True,
        help="Submit also where no node offers the devices now: an autoscaler may add some.",
    ),
)
dry_run = click.option(
    "--dry-run", is_flag=True, help="Print the first object or command line, and submit nothing."
)


def project(*names: str) -> Decorator:
    """Add the Run:ai project."""
    return click.option(
        *names,
        "project",
        default="",
        metavar="NAME",
        help=(
            f"Run:ai project; the namespace is runai-NAME. [default: {DEFAULT_PROJECT} for runai"
            " types]"
        ),
    )


# What of a run is shown: a WorkloadSelection.
view_options = group(
    click.option(
        "--head", type=click.IntRange(min=1), metavar="N", help="Only the first N workloads."
    ),
    click.option(
        "--tail", type=click.IntRange(min=1), metavar="N", help="Only the last N workloads."
    ),
    click.option(
        "--skip-errors/--no-skip-errors",
        default=True,
        show_default=True,
        help="Leave out workloads whose times cannot be right.",
    ),
    click.option(
        "--times",
        type=click.Choice(["watch", "api"]),
        default="watch",
        show_default=True,
        help="Times at which events arrived, or the API's whole seconds, where both are known.",
    ),
)
# What must hold: Conditions.
judged_options = group(
    click.option(
        "--threshold",
        "thresholds",
        multiple=True,
        metavar="EXPR",
        help="A condition, as in 'ready.p99<30s', 'throughput>=50/s', 'failed<=0'.",
    ),
    click.option(
        "--tolerate-failures",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Failed and rejected workloads that do not fail the run.",
    ),
)
