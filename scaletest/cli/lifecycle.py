"""scaletest lifecycle: how fast a cluster brings workloads up; options, parts and results."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import lifecycle_options as own
from scaletest.cli import lifecycle_work as work
from scaletest.cli import options
from scaletest.cli.lifecycle_files import compare, plot, report
from scaletest.cli.output import confirm, echo
from scaletest.model.errors import UsageError, WaitTimeout

if TYPE_CHECKING:
    pass

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


@command.command()
@own.output_dir()
@own.workload
@own.project("--project")
@click.option("--dry-run", is_flag=True, help="Print the first object, and submit nothing.")
def submit(**given: Any) -> int:
    """Submit exactly N workloads. Called again on the folder of an interrupted submit it goes on.

    Exit code 0 when all were accepted, 3 when some were rejected, 7 when the cluster cannot be
    reached.
    """
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.folder import LifecycleFolder

    store = LifecycleFolder(given["output_dir"])
    if given["dry_run"]:
        plan = own.plan_for(store, given, "default")
        options.show(own.workloads_of(plan).make(next(plan.names())), "yaml")
        return 0
    cluster = connect(given["namespace"], given["context"])
    plan = own.plan_for(store, given, cluster.namespace)
    with work.stopping() as stop:
        tool, fresh = (
            work.prepare(plan, work.raw(cluster), given["context"], stop),
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
def sample(**given: Any) -> None:
    """Record the progress of the workloads; may be called at any time, also while submit runs.

    Without --follow it lists all objects once; --follow watches them, and records when each event
    arrived.
    """
    from scaletest.lifecycle.backend import read
    from scaletest.lifecycle.folder import LifecycleFolder

    store = LifecycleFolder(given["output_dir"])
    plan = store.plan()
    project = given["project"] or plan.project
    if project != plan.project:
        raise UsageError(
            f"the run is of project {plan.project or '(none)'}, not {project}",
            hint="leave --project out",
        )
    backend = read(given["backend_times"]) if given["backend_times"] else {}
    with store.locked("sampler"), work.stopping() as stop, work.telling() as told:
        done = work.follow(
            plan,
            store,
            given["context"],
            stop,
            given["timeout"],
            told,
            backend,
            once=not given["follow"],
        )
    work.say(f"sampled: {store.path}")
    if not done and not stop.is_set():
        raise WaitTimeout(
            f"not all workloads were done within {given['timeout']:g} s", hint="sample again"
        )


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
def run(**given: Any) -> int:
    """Submit, watch, sum up, draw, and judge: everything in one command, with live progress.

    Exit code 0 PASS, 3 FAIL, 4 INVALID. Interrupted, it goes on when called with the same
    --output-dir.
    """
    from scaletest.analysis.lifecycle.judge import parse
    from scaletest.cli.lifecycle_files import show
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.folder import LifecycleFolder
    from scaletest.model.lifecycle_plan import KIND
    from scaletest.runs.places import new_path
    from scaletest.runs.registry import TYPES

    for text in given["thresholds"]:
        parse(text)
    cluster = connect(given["namespace"], given["context"])
    store = LifecycleFolder(new_path(os.environ, given["output_dir"], TYPES[KIND].place))
    plan = own.plan_for(store, given, cluster.namespace)
    with work.stopping() as stop:
        tool, fresh = (
            work.prepare(plan, work.raw(cluster), given["context"], stop),
            not store.planned,
        )
        store.make()
        with store.locked("submitter"), store.locked("sampler"), work.telling() as told:
            if fresh:
                store.begin(plan, sys.argv)
            interrupted = work.run_all(
                plan, store, tool, work.raw(cluster), given["timeout"], stop, told, fresh=fresh
            )
    code = show(store, given, "by a signal" if interrupted else "")
    if interrupted and not given["keep"]:
        work.say(
            "nothing deleted, so that the run can go on; else: scaletest lifecycle delete -o"
            f" {store.path}"
        )
    elif not given["keep"]:
        work.say(f"deleting what was submitted: {work.delete_all(plan, given['context'])} deleted")
    return code


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
def observe(**given: Any) -> int:
    """Measure somebody else's workloads: watch pods by their labels, submit nothing."""
    from scaletest.cli.lifecycle_files import show
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.folder import LifecycleFolder
    from scaletest.lifecycle.plan import LifecyclePlan, new_run

    cluster = connect(given["namespace"], given["context"])
    version, _, kind = given["kind"].rpartition("/")
    if given["kind"] and not version:
        raise UsageError(
            f"--object is {given['kind']!r}", hint="give VERSION/KIND, as in batch/v1/Job"
        )
    store = LifecycleFolder(given["output_dir"])
    store.make()
    if store.planned and not store.plan().selector:
        raise UsageError(f"{store.path} holds a run that submits", hint="give another --output-dir")
    plan = LifecyclePlan(
        new_run(),
        "observed",
        cluster.namespace,
        0,
        until=given["until"],
        selector=given["selector"],
        api_version=version,
        object_kind=kind,
        event_times=given["event_times"],
    )
    with store.locked("sampler"), work.stopping() as stop, work.telling() as told:
        store.begin(plan, sys.argv)
        work.follow(plan, store, given["context"], stop, given["timeout"], told)
    return show(store, given, "")


@command.command()
@own.output_dir()
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(output_dir: Path, context: str, yes: bool) -> None:
    """Delete the objects that a run submitted, and what they own. The folder stays."""
    from scaletest.lifecycle.folder import LifecycleFolder

    plan = LifecycleFolder(output_dir).plan()
    if plan.selector:
        raise UsageError(
            "the run was only observed: its objects are not ours to delete",
            hint="delete them yourself",
        )
    what = f"{plan.object_kind}s of run {plan.run} in namespace {plan.namespace}"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"there is no terminal to ask whether to delete {what}", hint="add --yes"
            )
        if not confirm(f"delete all {what}?"):
            work.say("nothing deleted")
            return
    echo(f"{work.delete_all(plan, context)} {what} deleted")


for _one in (plot, report, compare):
    command.add_command(_one)
