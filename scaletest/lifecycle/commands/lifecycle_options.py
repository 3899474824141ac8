"""Options that commands of lifecycle share."""

from pathlib import Path

import click

from scaletest.cli.headings import Decorator, join_options, under_heading
from scaletest.cli.options import context
from scaletest.cli.quantity import DURATION
from scaletest.lifecycle.kinds import ALIASES, DEFAULT_PROJECT, KINDS
from scaletest.lifecycle.plan import TOOLS, UNTIL
from scaletest.model.labels import LATEST

TYPES = (*ALIASES, *KINDS)


def _parse_sleep(context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """Return seconds as text, as `sleep` takes them, or infinity; None without the option."""
    if value in (None, "infinity"):
        return value
    return f"{DURATION.convert(value, option, context):g}"


DIRECTORY = click.Path(file_okay=False, path_type=Path)
new_output_dir = click.option(
    "-o",
    "--output-dir",
    type=DIRECTORY,
    metavar="DIR",
    help="Keep the run in this folder, or continue the run in it. [default: a new one]",
)
output_dir = click.option(
    "-o",
    "--output-dir",
    type=DIRECTORY,
    default=LATEST,
    show_default=True,
    metavar="DIR",
    help="Use the run in this folder, or the stored run of this name.",
)

# Which workloads are submitted: LifecycleWorkloadOptions.
workload = join_options(
    under_heading("Load"),
    click.option(
        "-t",
        "--workload-type",
        type=click.Choice(TYPES),
        default="training",
        show_default=True,
        metavar="TYPE",
        help=(
            "Submit workloads of this type: training is a Job, distributed an Indexed Job,"
            " interactive a Deployment. The others are job, indexed-job, deployment, pod,"
            " runai-training, runai-distributed and runai-interactive. For another kind give"
            " --template."
        ),
    ),
    click.option(
        "-n",
        "--num-workloads",
        type=click.IntRange(min=1),
        default=None,
        metavar="N",
        help="Submit exactly N workloads; a new run needs this option.",
    ),
    click.option(
        "-p",
        "--num-processes",
        type=click.IntRange(min=1),
        default=8,
        show_default=True,
        metavar="N",
        help="Submit workloads in bursts of N, in parallel.",
    ),
    click.option(
        "--delay",
        type=DURATION,
        default="0s",
        show_default=True,
        metavar="TIME",
        help="Wait this long after each burst has been submitted.",
    ),
    under_heading("Pods"),
    click.option(
        "--num-workers",
        type=int,
        default=1,
        show_default=True,
        metavar="N",
        help="Give a distributed workload N pods, or a Deployment N replicas.",
    ),
    under_heading("Devices"),
    click.option(
        "-g",
        "--num-gpus",
        default=None,
        metavar="[RESOURCE=]N",
        help=(
            "Give each pod N devices, or a part of one, of nvidia.com/gpu or of this resource,"
            " e.g. gpu.intel.com/xe=1. [default: 0; 1 for the runai types]"
        ),
    ),
    under_heading("Pods"),
    click.option("--pvc", is_flag=True, help="Add an ephemeral volume claim to every pod."),
    click.option(
        "--image",
        metavar="IMAGE",
        default="busybox",
        show_default=True,
        help="Run the pods with this container image.",
    ),
    click.option(
        "--run-seconds",
        default=None,
        metavar="TIME",
        callback=_parse_sleep,
        help=(
            "Let the pods sleep this long; `infinity` is allowed. [default: 60s; infinity for the"
            " runai types]"
        ),
    ),
    click.option(
        "--template",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help=(
            "Submit copies of the object in this YAML file, with all its fields, instead of"
            " the built-in template."
        ),
    ),
    under_heading("Accuracy"),
    click.option(
        "--until",
        type=click.Choice(UNTIL),
        default=None,
        help=(
            "Count a workload as measured when it has reached this phase. [default: by its type]"
        ),
    ),
    under_heading("Kubernetes"),
    click.option(
        "--namespace",
        default="",
        metavar="NAME",
        help="Submit to this namespace. [default: runai-PROJECT, else the current one]",
    ),
    context,
    click.option(
        "--tool",
        type=click.Choice(TOOLS),
        default="api",
        show_default=True,
        help="Submit by server-side apply (api), by kubectl, or by the command line of Run:ai.",
    ),
    under_heading("Accuracy"),
    click.option(
        "--event-times",
        is_flag=True,
        help=(
            "Also read the Events of Kubernetes, which give scheduling in microseconds,"
            " evictions and volume claims."
        ),
    ),
    click.option(
        "--force",
        is_flag=True,
        help=(
            "Submit even if no node offers the devices now, as an autoscaler may add such nodes."
        ),
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
            "Submit for this project of Run:ai, whose namespace is runai-NAME."
            f" [default: {DEFAULT_PROJECT} for runai types]"
        ),
    )


# What of a run is shown: a WorkloadSelection.
view_options = join_options(
    under_heading("Output"),
    click.option(
        "--head", type=click.IntRange(min=1), metavar="N", help="Take only the first N workloads."
    ),
    click.option(
        "--tail", type=click.IntRange(min=1), metavar="N", help="Take only the last N workloads."
    ),
    click.option(
        "--skip-errors/--no-skip-errors",
        default=True,
        show_default=True,
        help="Leave out workloads whose times cannot be right.",
    ),
)
# What must hold: Conditions.
judged_options = join_options(
    under_heading("Verdict"),
    click.option(
        "--threshold",
        "thresholds",
        multiple=True,
        metavar="EXPR",
        help=(
            "Require this condition for a PASS, e.g. 'ready.p99<30s', 'throughput>=50/s'"
            " or 'failed<=0'; the option may be repeated."
        ),
    ),
    click.option(
        "--tolerate-failures",
        type=int,
        default=0,
        show_default=True,
        metavar="N",
        help="Let the run pass with at most N failed or rejected workloads.",
    ),
)
