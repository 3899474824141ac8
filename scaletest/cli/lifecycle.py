"""scaletest lifecycle: how fast a cluster brings workloads up; options, parts and results."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from scaletest.analysis.lifecycle.judge import parse
from scaletest.analysis.lifecycle.result import WorkloadSelection
from scaletest.cli import lifecycle_options as own
from scaletest.cli import lifecycle_work as work
from scaletest.cli import options as shared
from scaletest.cli.lifecycle_files import compare, plot, report, show
from scaletest.cli.output import confirm, echo
from scaletest.cluster.connection import connect
from scaletest.lifecycle.backend import read
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan, new_run
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.model.lifecycle_plan import KIND
from scaletest.runs.places import new_path
from scaletest.runs.registry import TYPES

FOREVER_S = 30 * 86400.0
CONNECTIONS = 300


@click.group("lifecycle")
def command() -> None:
    """Measure how fast the cluster brings workloads up: submit N of them, watch their phases, sum
    up.

    \b
    scaletest lifecycle run -t training -n 2000 -p 5 --delay 1 --run-seconds 30
    scaletest lifecycle submit -t distributed -n 1000 --num-workers 7 -p 1 --delay 5 -o out2
    scaletest lifecycle sample -o out2      # as often as you like, while submit runs
    scaletest lifecycle plot --plot detailed -o out2
    """


@dataclass(frozen=True, slots=True)
class LifecycleSubmitOptions:
    """The workloads to submit."""

    output_dir: Path
    workload: own.LifecycleWorkloadOptions
    dry_run: bool


@command.command()
@own.output_dir()
@own.workload
@own.project("--project")
@click.option("--dry-run", is_flag=True, help="Print the first object, and submit nothing.")
@shared.typed(LifecycleSubmitOptions)
def submit(options: LifecycleSubmitOptions) -> int:
    """Submit exactly N workloads. Called again on the folder of an interrupted submit it goes on.

    Exit code 0 when all were accepted, 3 when some were rejected, 7 when the cluster cannot be
    reached.
    """
    store = LifecycleFolder(options.output_dir)
    if options.dry_run:
        plan = own.plan_for(store, options.workload, "default")
        shared.show(own.workloads_of(plan).make(next(plan.names())), "yaml")
        return 0
    cluster = connect(options.workload.namespace, options.workload.context)
    plan = own.plan_for(store, options.workload, cluster.namespace)
    with work.stopping() as stop:
        tool, fresh = (
            work.prepare(plan, work.raw(cluster), options.workload.context, stop),
            not store.planned,
        )
        store.make()
        with store.locked("submitter"):
            if fresh:
                store.begin(plan, sys.argv)
            done = work.submit_all(plan, store, tool, stop, fresh=fresh)
    work.say(f"{done[True]} of {plan.count} submitted, {done[False]} rejected: {store.path}")
    if stop.is_set():
        work.say("interrupted: the same command goes on")
        return 130
    return 3 if done[False] else 0


@dataclass(frozen=True, slots=True)
class SampleOptions:
    """Which run is sampled, and how long, in seconds."""

    output_dir: Path
    workload_type: str | None
    project: str
    follow: bool
    timeout: float
    context: str
    backend_times: Path | None


@command.command()
@own.output_dir()
@click.option(
    "-t",
    "--workload-type",
    type=click.Choice(own.TYPES),
    default=None,
    help="Type that was given to submit; read from the folder.",
)
@own.project("-p", "--project")
@click.option(
    "--follow", is_flag=True, help="Watch until every workload is done: gives times below a second."
)
@click.option(
    "--timeout", type=float, default=FOREVER_S, metavar="S", help="Most seconds to follow."
)
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--backend-times",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Times of a control plane's database: CSV or JSON with jobName, time_created (ms).",
)
@shared.typed(SampleOptions)
def sample(options: SampleOptions) -> None:
    """Record the progress of the workloads; may be called at any time, also while submit runs.

    Without --follow it lists all objects once; --follow watches them, and records when each event
    arrived.
    """
    store = LifecycleFolder(options.output_dir)
    plan = store.plan()
    project = options.project or plan.project
    if project != plan.project:
        raise UsageError(
            f"the run is of project {plan.project or '(none)'}, not {project}",
            hint="leave --project out",
        )
    backend = read(options.backend_times) if options.backend_times else {}
    with store.locked("sampler"), work.stopping() as stop, work.telling() as tell:
        done = work.follow(
            plan,
            store,
            options.context,
            stop,
            options.timeout,
            tell,
            backend,
            once=not options.follow,
        )
    work.say(f"sampled: {store.path}")
    if not done and not stop.is_set():
        raise WaitTimeout(
            f"not all workloads were done within {options.timeout:g} s", hint="sample again"
        )


@dataclass(frozen=True, slots=True)
class LifecycleRunOptions:
    """A whole lifecycle, and what is made of it."""

    output_dir: Path | None
    workload: own.LifecycleWorkloadOptions
    timeout: float
    figure: str
    keep: bool
    view: WorkloadSelection
    judged: own.JudgedOptions
    output: str


@command.command()
@own.output_dir(default=None)
@own.workload
@own.project("--project")
@click.option(
    "--timeout",
    type=float,
    default=3600.0,
    show_default=True,
    metavar="S",
    help="End after this long.",
)
@click.option(
    "--plot",
    "figure",
    type=click.Choice(["general", "detailed"]),
    default="general",
    show_default=True,
    help="Which figure to draw.",
)
@click.option(
    "--keep/--delete", default=True, show_default=True, help="Whether the objects stay afterwards."
)
@own.view_options
@own.judged_options
@click.option(
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Form of the result on standard output.",
)
@shared.typed(LifecycleRunOptions)
def run(options: LifecycleRunOptions) -> int:
    """Submit, watch, sum up, draw, and judge: everything in one command, with live progress.

    Exit code 0 PASS, 3 FAIL, 4 INVALID. Interrupted, it goes on when called with the same
    --output-dir.
    """
    for text in options.judged.thresholds:
        parse(text)
    cluster = connect(options.workload.namespace, options.workload.context)
    store = LifecycleFolder(new_path(os.environ, options.output_dir, TYPES[KIND].place))
    plan = own.plan_for(store, options.workload, cluster.namespace)
    with work.stopping() as stop:
        tool, fresh = (
            work.prepare(plan, work.raw(cluster), options.workload.context, stop),
            not store.planned,
        )
        store.make()
        with store.locked("submitter"), store.locked("sampler"), work.telling() as tell:
            if fresh:
                store.begin(plan, sys.argv)
            interrupted = work.run_all(
                plan, store, tool, work.raw(cluster), options.timeout, stop, tell, fresh=fresh
            )
    interruption = "by a signal" if interrupted else ""
    result = own.result_of(store, options.view, options.judged, interruption)
    code = show(store, result, options.output, options.figure, options.view.times)
    if interrupted and not options.keep:
        work.say(
            "nothing deleted, so that the run can go on; else: scaletest lifecycle delete -o"
            f" {store.path}"
        )
    elif not options.keep:
        deleted = work.delete_all(plan, options.workload.context)
        work.say(f"deleting what was submitted: {deleted} deleted")
    return code


@dataclass(frozen=True, slots=True)
class ObserveOptions:
    """Whose workloads are watched. kind: VERSION/KIND of objects that are watched as well."""

    output_dir: Path
    selector: str
    namespace: str
    context: str
    kind: str
    until: str
    timeout: float
    event_times: bool
    judged: own.JudgedOptions
    output: str


@command.command()
@own.output_dir()
@click.option(
    "-l",
    "--selector",
    required=True,
    metavar="LABELS",
    help="Labels of the pods, as kubectl takes them.",
)
@click.option("--namespace", default="", metavar="NAME", help="[default: the current one]")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--object",
    "kind",
    default="",
    metavar="VERSION/KIND",
    help="Also watch these objects with the same labels, as in batch/v1/Job.",
)
@click.option("--until", type=click.Choice(own.MILESTONES), default="ready", show_default=True)
@click.option(
    "--timeout",
    type=float,
    default=FOREVER_S,
    metavar="S",
    help="Watch this long. [default: until Ctrl-C]",
)
@click.option("--event-times", is_flag=True, help="Also read Events.")
@own.judged_options
@click.option(
    "--output",
    type=click.Choice(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="Form of the result on standard output.",
)
@shared.typed(ObserveOptions)
def observe(options: ObserveOptions) -> int:
    """Measure somebody else's workloads: watch pods by their labels, submit nothing."""
    cluster = connect(options.namespace, options.context)
    version, _, kind = options.kind.rpartition("/")
    if options.kind and not version:
        raise UsageError(
            f"--object is {options.kind!r}", hint="give VERSION/KIND, as in batch/v1/Job"
        )
    store = LifecycleFolder(options.output_dir)
    store.make()
    if store.planned and not store.plan().selector:
        raise UsageError(f"{store.path} holds a run that submits", hint="give another --output-dir")
    plan = LifecyclePlan(
        new_run(),
        "observed",
        cluster.namespace,
        0,
        until=options.until,
        selector=options.selector,
        api_version=version,
        object_kind=kind,
        event_times=options.event_times,
    )
    with store.locked("sampler"), work.stopping() as stop, work.telling() as tell:
        store.begin(plan, sys.argv)
        work.follow(plan, store, options.context, stop, options.timeout, tell)
    result = own.result_of(store, judged=options.judged)
    return show(store, result, options.output)


@command.command()
@own.output_dir()
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(output_dir: Path, context: str, yes: bool) -> None:
    """Delete the objects that a run submitted, and what they own. The folder stays."""
    plan = LifecycleFolder(output_dir).plan()
    if plan.selector:
        raise UsageError(
            "the run was only observed: its objects are not ours to delete",
            hint="delete them yourself",
        )
    objects = f"{plan.object_kind}s of run {plan.run} in namespace {plan.namespace}"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"there is no terminal to ask whether to delete {objects}", hint="add --yes"
            )
        if not confirm(f"delete all {objects}?"):
            work.say("nothing deleted")
            return
    echo(f"{work.delete_all(plan, context)} {objects} deleted")


for _subcommand in (plot, report, compare):
    command.add_command(_subcommand)
