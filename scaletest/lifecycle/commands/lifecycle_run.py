"""scaletest lifecycle submit, sample, run, delete: what speaks to a cluster."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, as_text, echo
from scaletest.cli.progress_views import shown
from scaletest.cli.watching import watched
from scaletest.cluster.connection import Cluster, connect
from scaletest.lifecycle.commands import lifecycle as own
from scaletest.lifecycle.commands.lifecycle_files import show
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure import measuring
from scaletest.lifecycle.measure.measuring import LifecycleWorkloadOptions, delete_all
from scaletest.lifecycle.measure.sampling import read as read_times
from scaletest.lifecycle.measure.submitting import runai_line
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.run_type import Conditions, read
from scaletest.lifecycle.stamps import LifecyclePlan
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.model.wording import as_options
from scaletest.runs.places import new_path


@cloup.command()
@heading("Run")
@own.output_dir(default=None)
@own.workload
@heading("Kubernetes")
@own.project("--project")
@heading("Run")
@own.dry_run
@shared.grouped
def submit(output_dir: Path | None, workload: LifecycleWorkloadOptions, dry_run: bool) -> int:
    """Submit exactly N workloads. Called again on the folder of an interrupted submit it goes on.

    \b
    scaletest lifecycle submit -t training -n 100 -p 5 -g 0 --delay 1s -o out
    scaletest lifecycle submit -t training -n 1 -g 0 --dry-run

    Without --output-dir the run lies with all others. Exit code 0 when all were accepted, 3 when
    some were rejected, 7 when the cluster cannot be reached.
    """
    store = LifecycleFolder(new_path(os.environ, output_dir))
    if dry_run:
        return _print_first(_plan(store, workload, "default"))
    plan, cluster = _submittable(store, workload)
    done, interrupted = measuring.submit(plan, store, cluster)
    echo(f"{done[True]} of {plan.count} submitted, {done[False]} rejected: {store.path}", err=True)
    if interrupted:
        echo(f"interrupted: the same command with -o {store.path} goes on", err=True)
        return 130
    return 3 if done[False] else 0


@cloup.command()
@heading("Target")
@own.output_dir()
@click.option(
    "-t",
    "--workload-type",
    type=click.Choice(own.TYPES),
    default=None,
    metavar="TYPE",
    expose_value=False,
    help="Accept the type that was given to `submit`; the folder's own type is used.",
)
@heading("Kubernetes")
@own.project("-p", "--project")
@heading("Accuracy")
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
@shared.grouped
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
    store = LifecycleFolder(output_dir)
    plan = store.plan()
    if project and project != plan.project:
        raise UsageError(
            f"the run is of project {plan.project or '(none)'}, not {project}",
            hint="leave --project out",
        )
    backend = read_times(backend_times) if backend_times else {}
    with shown() as progress:
        measuring.sample(plan, store, progress, backend, once=not follow)
    echo(f"sampled: {store.path}", err=True)


@cloup.command()
@heading("Run")
@own.output_dir(default=None)
@own.workload
@heading("Kubernetes")
@own.project("--project")
@heading("Run")
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
@heading("Run")
@shared.labels
@shared.watch
@own.judged_options
@shared.report_output(letter=False)
@heading("Run")
@own.dry_run
@shared.grouped
def run(
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
    store = LifecycleFolder(new_path(os.environ, output_dir))
    if dry_run:
        return _print_first(_plan(store, workload, "default"))
    plan, cluster = _submittable(store, workload)
    plan = replace(
        plan,
        thresholds=judged.thresholds or plan.thresholds,
        tolerate_failures=judged.tolerate_failures or plan.tolerate_failures,
    )
    with watched(watch) as progress:
        interrupted = measuring.measure(plan, store, cluster, labels, timeout, progress)
    code = show(store, read(store, interrupted="by a signal" if interrupted else ""), output)
    if interrupted and not keep:
        echo(
            "nothing deleted, so that the run can go on; else: scaletest lifecycle delete -o"
            f" {store.path}",
            err=True,
        )
    elif not keep:
        echo(f"deleting what was submitted: {delete_all(plan)} deleted", err=True)
    return code


@cloup.command()
@own.output_dir()
@shared.yes
def delete(output_dir: Path, yes: bool) -> None:
    """Delete the objects that a run submitted, and what they own. The folder stays.

    \b
    scaletest lifecycle delete -o out
    scaletest lifecycle delete -o LAST --yes
    """
    plan = LifecycleFolder(output_dir).plan()
    objects = f"{plan.object_kind}s of run {plan.run} in namespace {plan.namespace}"
    if shared.confirmed(f"Delete all {objects}?", yes, terminal=True):
        echo(f"{delete_all(plan)} {objects} deleted")
    else:
        echo("nothing deleted", err=True)


def _print_first(plan: LifecyclePlan) -> int:
    """Print what would be submitted first; exit code 0."""
    name = next(plan.names())
    if plan.tool == "runai":
        echo(shlex.join(["runai", *runai_line(plan, name)]))
    else:
        echo(as_text(Workloads(plan).make(name), "yaml"), nl=False)
    return 0


def _submittable(
    store: LifecycleFolder, options: LifecycleWorkloadOptions
) -> tuple[LifecyclePlan, Cluster]:
    """The plan as `_plan` gives it, and its cluster. UsageError when no node offers the devices of
    a new run.
    """
    if store.exists:
        plan = _plan(store, options, "")
        return plan, connect(plan.namespace, plan.context)
    cluster = connect(options.namespace, options.context)
    plan = _plan(store, options, cluster.namespace)
    if not options.force and (warning := measuring.check_devices(plan, cluster)):
        echo(as_options(f"warning: {warning}"), err=True)
    return plan, cluster


def _plan(
    store: LifecycleFolder, options: LifecycleWorkloadOptions, namespace: str
) -> LifecyclePlan:
    """The plan of a new folder, or the stored one with the pace that was typed. namespace: the
    kubeconfig's.
    """
    if store.exists:
        names = [parameter.name for parameter in click.get_current_context().command.params]
        typed = {name for name in names if name and shared.is_typed(name)}
        plan = measuring.continued(store, options, typed)
        echo(f"going on with run {plan.run} of {plan.count} workloads", err=True)
        return plan
    plan = measuring.plan_of(options, namespace)
    if plan.seconds == "infinity" and plan.until == "finished" and not plan.template_file:
        echo("warning: pods that sleep for ever never finish; ask for --until ready", err=True)
    return plan
