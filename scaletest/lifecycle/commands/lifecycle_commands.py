"""The commands submit, sample, run, delete and plot, with their options.

Each imports what it does in its body: that takes a while, and --help needs none of it.
"""

from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.headings import ManyOptionsCommand, under_heading
from scaletest.cli.output import Output
from scaletest.lifecycle.commands import lifecycle_options as options
from scaletest.lifecycle.options import Conditions, LifecycleWorkloadOptions, WorkloadSelection
from scaletest.model.labels import Labels


@cloup.command(
    cls=ManyOptionsCommand,
    common="--output-dir --workload-type --num-workloads --num-processes"
    " --num-gpus --image --namespace --dry-run",
)
@under_heading("Run")
@options.new_output_dir
@options.workload
@under_heading("Kubernetes")
@options.project("--project")
@under_heading("Run")
@options.dry_run
@shared.call_with_groups
def submit(output_dir: Path | None, workload: LifecycleWorkloadOptions, dry_run: bool) -> int:
    """Submit exactly N workloads. Called again on the folder of an interrupted submit it goes on.

    \b
    scaletest lifecycle submit -t training -n 100 -p 5 -g 0 --delay 1s -o out
    scaletest lifecycle submit -t training -n 1 -g 0 --dry-run

    Without --output-dir the run is kept with all others. Exit code 0 when all were accepted, 3 when
    some were rejected, 7 when the cluster cannot be reached.
    """
    from scaletest.lifecycle.commands import lifecycle_run

    if dry_run:
        return lifecycle_run.print_first(output_dir, workload)
    return lifecycle_run.submit(output_dir, workload)


@cloup.command()
@under_heading("Target")
@options.output_dir
@click.option(
    "-t",
    "--workload-type",
    type=click.Choice(options.TYPES),
    default=None,
    metavar="TYPE",
    expose_value=False,
    help="Accept the type that was given to `submit`; the folder's own type is used.",
)
@under_heading("Kubernetes")
@options.project("-p", "--project")
@under_heading("Accuracy")
@click.option(
    "--follow",
    is_flag=True,
    help="Watch until every workload is done, which gives times below a second.",
)
@click.option(
    "--backend-times",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help=(
        "Also use creation times from a control plane's database: a CSV or JSON file"
        " with jobName and time_created, in milliseconds."
    ),
)
@shared.call_with_groups
def sample(
    output_dir: Path,
    project: str,
    follow: bool,
    backend_times: Path | None,
) -> None:
    """Record the progress of the workloads; may be called at any time, also while submit runs.

    \b
    scaletest lifecycle sample -o out
    scaletest lifecycle sample -o out --follow

    Without --follow it lists all objects once; --follow watches them, and records when each event
    arrived.
    """
    from scaletest.lifecycle.commands import lifecycle_run

    lifecycle_run.sample(output_dir, project, backend_times, follow=follow)


@cloup.command(
    cls=ManyOptionsCommand,
    common="--workload-type --num-workloads --num-processes --num-gpus --image"
    " --namespace --threshold --output",
)
@under_heading("Run")
@options.new_output_dir
@options.workload
@under_heading("Kubernetes")
@options.project("--project")
@under_heading("Run")
@click.option(
    "--timeout",
    type=shared.DURATION,
    default="1h",
    show_default=True,
    metavar="TIME",
    help="End the run after this long at most.",
)
@click.option(
    "--keep/--delete",
    default=True,
    show_default=True,
    help="Keep the submitted objects afterwards, or delete them.",
)
@under_heading("Run")
@shared.labels
@shared.watch
@options.judged_options
@shared.report_output(letter=False)
@under_heading("Run")
@options.dry_run
@shared.call_with_groups
def run(
    *,
    output_dir: Path | None,
    workload: LifecycleWorkloadOptions,
    dry_run: bool,
    timeout: float,
    keep: bool,
    judged: Conditions,
    labels: Labels,
    watch: shared.WatchOptions,
    output: Output,
) -> int:
    """Submit, watch, sum up, draw, and judge: everything in one command, with live progress.

    \b
    scaletest lifecycle run -n 10 -g 0
    scaletest lifecycle run -n 2000 -p 50 -g 0 --run-seconds 30s --delete
    scaletest lifecycle run -t deployment -n 50 -g 0 --threshold 'ready.p99<30s' \\
      --output report.html

    Exit code 0 PASS, 3 FAIL, 4 INVALID. Interrupted, it goes on when called with the same
    --output-dir.
    """
    from scaletest.lifecycle.commands import lifecycle_run

    if dry_run:
        return lifecycle_run.print_first(output_dir, workload)
    return lifecycle_run.run(
        output_dir,
        workload,
        judged,
        timeout_s=timeout,
        labels=labels,
        watch=watch,
        output=output,
        keep=keep,
    )


@cloup.command()
@options.output_dir
@shared.yes
def delete(output_dir: Path, yes: bool) -> None:
    """Delete the objects that a run submitted, and what they own. The folder stays.

    \b
    scaletest lifecycle delete -o out
    scaletest lifecycle delete -o LAST --yes
    """
    from scaletest.lifecycle.commands import lifecycle_run

    lifecycle_run.delete(output_dir, yes=yes)


@cloup.command(
    help="""Write times.csv and general.png or detailed.png beside the data. Needs the extra:
    pip install 'scaletest[plot]'.

    \b
    scaletest lifecycle plot -o out
    scaletest lifecycle plot -o out --plot detailed --head 100

    Reads the submitted.json and sampled.json of the Run:ai scale test tool as well.
    """
)
@under_heading("Target")
@options.output_dir
@under_heading("Output")
@click.option(
    "--plot",
    "figure",
    type=click.Choice(["general", "detailed"]),
    default="general",
    show_default=True,
    help="Draw the times from the submission (general), or those of every phase (detailed).",
)
@options.view_options
@shared.call_with_groups
def plot(output_dir: Path, figure: str, view: WorkloadSelection) -> None:
    """Write the times as a table and a picture."""
    from scaletest.lifecycle.commands import lifecycle_run

    lifecycle_run.plot(output_dir, view, figure)
