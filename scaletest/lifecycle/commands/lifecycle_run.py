"""Run the commands of lifecycle, once their options are parsed."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import click

from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.output import Output, as_text, echo
from scaletest.cli.progress_views import show_progress
from scaletest.cli.watching import watch_runs
from scaletest.cluster.api_calls import Cluster, connect_cluster
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.measure import measuring, planning
from scaletest.lifecycle.measure.submitting import runai_line
from scaletest.lifecycle.measure.templating import Workloads
from scaletest.lifecycle.options import Conditions, LifecycleWorkloadOptions, WorkloadSelection
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.report import report
from scaletest.lifecycle.report.charts import phase_charts
from scaletest.lifecycle.run_type import LifecycleRun, read_run
from scaletest.lifecycle.runai import read_backend_times
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.model.wording import as_options
from scaletest.render.numbers import plural
from scaletest.report import formats
from scaletest.report.formats import png
from scaletest.runs.places import new_path


def print_first(output_dir: Path | None, options: LifecycleWorkloadOptions) -> int:
    """Print what would be submitted first; exit code 0."""
    store = _new_store(output_dir)
    if store.exists:
        plan = _continue_plan(store, options)
    else:
        plan = planning.make_plan(options, "default")
    name = next(plan.names())
    if plan.tool == "runai":
        echo(f"{shlex.join(['runai', *runai_line(plan, name)])}\n", nl=False)
    else:
        echo(as_text(Workloads(plan).make(name), "yaml"), nl=False)
    return 0


def submit(output_dir: Path | None, options: LifecycleWorkloadOptions) -> int:
    """Submit all workloads, and return the exit code."""
    store = _new_store(output_dir)
    plan, cluster = _plan_and_cluster(store, options)
    count_by_accepted, interrupted = measuring.submit(plan, store, cluster)
    accepted, rejected = count_by_accepted[True], count_by_accepted[False]
    echo(f"{accepted} of {plan.count} submitted, {rejected} rejected: {store.path}", err=True)
    if interrupted:
        echo(f"interrupted; to resume, run the same command with -o {store.path}", err=True)
        return 130
    return 3 if rejected else 0


def sample(output_dir: Path, project: str, backend_times: Path | None, *, follow: bool) -> None:
    """Record the progress of the workloads. backend_times: a file with further times."""
    store = _find_store(output_dir)
    plan = store.plan()
    if project and project != plan.project:
        raise UsageError(
            f"the run is of project {plan.project or '(none)'}, not {project}",
            hint="leave --project out",
        )
    backend = read_backend_times(backend_times) if backend_times else {}
    with show_progress() as progress:
        measuring.sample(plan, store, progress, backend, once=not follow)
    echo(f"sampled: {store.path}", err=True)


def run(
    output_dir: Path | None,
    options: LifecycleWorkloadOptions,
    conditions: Conditions,
    *,
    timeout_s: float,
    labels: Labels,
    watch: shared.WatchOptions,
    output: Output,
    keep: bool,
) -> int:
    """Submit, watch, judge and report, and return the exit code. keep: the objects stay."""
    store = _new_store(output_dir)
    plan, cluster = _plan_and_cluster(store, options)
    plan = replace(
        plan,
        thresholds=conditions.thresholds or plan.thresholds,
        tolerate_failures=conditions.tolerate_failures or plan.tolerate_failures,
    )
    with watch_runs(watch) as progress:
        interrupted = measuring.measure(
            plan, store, cluster, labels, timeout_s=timeout_s, progress=progress
        )
    code = show(store, read_run(store, interrupted="by a signal" if interrupted else ""), output)
    if interrupted and not keep:
        echo(
            "nothing was deleted, so that the run can be resumed; to delete it: scaletest"
            " lifecycle delete -o"
            f" {store.path}",
            err=True,
        )
    elif not keep:
        echo(f"deleting what was submitted: {measuring.delete_all(plan)} deleted", err=True)
    return code


def delete(output_dir: Path, *, yes: bool) -> None:
    """Delete the objects of a run, when that is confirmed."""
    plan = _find_store(output_dir).plan()
    objects = f"{plan.object_kind}s of run {plan.run} in namespace {plan.namespace}"
    if shared.is_confirmed(f"Delete all {objects}?", yes):
        echo(f"{measuring.delete_all(plan)} {objects} deleted")
    else:
        echo("nothing deleted", err=True)


def _new_store(output_dir: Path | None) -> LifecycleFolder:
    return LifecycleFolder(new_path(os.environ, output_dir))


def _find_store(output_dir: Path) -> LifecycleFolder:
    """Return the folder of that path, else that of the stored run of this name."""
    return LifecycleFolder(output_dir if output_dir.exists() else stored.find(str(output_dir)).path)


def _plan_and_cluster(
    store: LifecycleFolder, options: LifecycleWorkloadOptions
) -> tuple[LifecyclePlan, Cluster]:
    """Return the plan, the stored one where there is one, and its cluster.

    UsageError when no node offers the devices of a new run.
    """
    if store.exists:
        plan = _continue_plan(store, options)
        return plan, connect_cluster(plan.namespace, plan.context)
    cluster = connect_cluster(options.namespace, options.context)
    plan = planning.make_plan(options, cluster.namespace)
    if not options.force:
        warning = planning.check_devices(plan, cluster)
        if warning:
            echo(as_options(f"warning: {warning}"), err=True)
    return plan, cluster


def _continue_plan(store: LifecycleFolder, options: LifecycleWorkloadOptions) -> LifecyclePlan:
    """Return the stored plan with the pace that was typed."""
    typed = {
        parameter.name
        for parameter in click.get_current_context().command.params
        if parameter.name and shared.is_typed(parameter.name)
    }
    plan = planning.continue_plan(store, options, typed)
    echo(f"resuming run {plan.run} of {plan.count} workloads", err=True)
    return plan


def plot(output_dir: Path, view: WorkloadSelection, figure: str) -> None:
    """Write the table of times, and a picture. figure: general or detailed."""
    store = _find_store(output_dir)
    for path in _draw(store, read_run(store, view), figure):
        echo(f"{path} written", err=True)


def _draw(store: LifecycleFolder, run: LifecycleRun, figure: str) -> list[Path]:
    """Write the table and the picture, and return their paths; UsageError without matplotlib."""
    table = store.put("times.csv", formats.render(report.lifecycle_report(run), "csv"))
    charts = phase_charts(run.result, report.GENERAL if figure == "general" else report.DETAILED)
    picture = png.draw_picture(charts, plural(len(run.result.timelines), "workload"))
    return [table, store.put(f"{figure}.png", picture)]


def show(store: LifecycleFolder, run: LifecycleRun, output: Output) -> int:
    """Write the result, page, table and picture of a run, print it, and return the exit code."""
    document = report.lifecycle_report(run)
    store.put("result.json", formats.render(document, "json"))
    store.put("report.html", formats.render(document, "html"))
    try:
        _draw(store, run, "general")
    except UsageError as error:
        echo(f"warning: no picture: {error.message}", err=True)
    return stored.deliver_finished(document, output)
