"""scaletest lifecycle: how fast the cluster brings workloads up. Thin: options in, rooms put together, results out."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import lifecycle_options as own
from scaletest.cli import options
from scaletest.cli.lifecycle_files import compare, plot, report
from scaletest.model.errors import ScaletestError, UsageError, WaitTimeout

if TYPE_CHECKING:
    from scaletest.analysis.lifecycle.books import Progress
    from scaletest.cluster.raw import Raw
    from scaletest.lifecycle.plan import LifecyclePlan
    from scaletest.lifecycle.store import Store
    from scaletest.lifecycle.submitting import Tool

FOREVER_S = 30 * 86400.0
CONNECTIONS = 300


@click.group("lifecycle")
def command() -> None:
    """Measure how fast the cluster brings workloads up: submit N of them, watch their phases, sum up.

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

    Exit code 0 when all were accepted, 3 when some were rejected, 7 when the cluster cannot be reached.
    """
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.store import Store

    cluster = connect(given["namespace"], given["context"])
    store = Store(given["output_dir"])
    plan = own.plan_for(store, given, cluster.namespace)
    if given["dry_run"]:
        options.show(own.workloads_of(plan).make(next(plan.names())), "yaml")
        return 0
    store.make()
    with store.locked("submitter"), _stopping() as stop:
        rejected = _submit(plan, store, _raw(cluster), given["context"], stop, _say)
    if stop.is_set():
        _say("interrupted: the same command goes on")
        return 130
    return 3 if rejected else 0


def _submit(
    plan: LifecyclePlan, store: Store, raw: Raw, context: str, stop: threading.Event, say: Callable[[str], None]
) -> int:
    """Carry the plan out; how many were rejected."""
    from scaletest.cluster.objects import Objects
    from scaletest.lifecycle.sampling import steady
    from scaletest.lifecycle.submitting import Submitter

    objects = Objects(raw, manager=f"scaletest-{plan.run}")
    objects.namespace(plan.namespace)
    tool = _tool(plan, objects, context)
    if not store.planned:
        store.begin(plan, sys.argv)
    submitter = Submitter(plan, store, tool, steady(), stop=stop)
    submitter.run()
    rejected = submitter.done[False]
    say(f"{submitter.done[True]} of {plan.count} submitted, {rejected} rejected: {store.path}")
    return rejected


def _tool(plan: LifecyclePlan, objects: Any, context: str) -> Tool:
    from scaletest.lifecycle import tools

    if plan.tool == "runai":
        return tools.runai(plan)
    workloads = own.workloads_of(plan)
    objects.resource(workloads.api_version, workloads.kind)
    if plan.tool == "kubectl":
        return tools.kubectl(plan, workloads, context)
    return tools.Api(plan, objects, workloads)


@command.command()
@own.output_dir()
@click.option("-t", "--workload-type", type=click.Choice(own.TYPES), default=None,
              help="As given to submit; taken from the folder.")  # fmt: skip
@own.project("-p", "--project")
@click.option("--follow", is_flag=True, help="Watch until every workload is done: gives times below a second.")
@click.option("--timeout", type=float, default=FOREVER_S, metavar="S", help="Follow no longer than this.")
@click.option("--context", default="", metavar="NAME", help="Of the kubeconfig.")
@click.option("--backend-times", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
              help="Times of a control plane's database: CSV or JSON with jobName, time_created (ms).")  # fmt: skip
def sample(**given: Any) -> None:
    """Write down how far the workloads are. May be called as often as one likes, also while submit runs.

    One pass lists what is there; --follow watches, and knows when each thing was seen to happen.
    """
    from scaletest.lifecycle.backend import read
    from scaletest.lifecycle.store import Store

    store = Store(given["output_dir"])
    plan = store.plan()
    project = given["project"] or plan.project
    if project != plan.project:
        raise UsageError(f"the run is of project {plan.project or '(none)'}, not {project}", hint="leave --project out")
    backend = read(given["backend_times"]) if given["backend_times"] else {}
    with store.locked("sampler"), _stopping() as stop, _telling() as told:
        done = _follow(plan, store, given["context"], stop, given["timeout"], told, backend, once=not given["follow"])
    _say(f"sampled: {store.path}")
    if not done and not stop.is_set():
        raise WaitTimeout(f"not all workloads were done within {given['timeout']:g} s", hint="sample again")


def _follow(
    plan: LifecyclePlan, store: Store, context: str, stop: threading.Event, timeout_s: float,
    told: Callable[[Progress], None], backend: dict[str, float] | None = None, *, once: bool = False,
) -> bool:  # fmt: skip
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.sampling import Sampler, steady

    sampler = Sampler(plan, store, _raw(connect(plan.namespace, context)), steady(), stop, backend)
    return sampler.follow(timeout_s, told, once=once)


@command.command()
@own.output_dir(default=None)
@own.workload
@own.project("--project")
@click.option("--timeout", type=float, default=3600.0, show_default=True, metavar="S", help="End after this long.")
@click.option("--plot", "figure", type=click.Choice(["general", "detailed"]), default="general", show_default=True,
              help="Which figure to draw.")  # fmt: skip
@click.option("--keep/--delete", default=True, show_default=True, help="Whether the objects stay afterwards.")
@own.view_options
@own.judged_options
@click.option("--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True,
              help="Form of the result on standard output.")  # fmt: skip
def run(**given: Any) -> int:
    """Submit, watch, sum up, draw, and judge: everything in one command, with live progress.

    Exit code 0 PASS, 3 FAIL, 4 INVALID. Interrupted, it goes on when called with the same --output-dir.
    """
    from scaletest.analysis.lifecycle.judge import parse
    from scaletest.cli.lifecycle_files import show
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.store import Store

    for text in given["thresholds"]:
        parse(text)
    cluster = connect(given["namespace"], given["context"])
    store = Store(given["output_dir"] or _new_folder())
    plan = own.plan_for(store, given, cluster.namespace)
    store.make()
    with store.locked("submitter"), store.locked("sampler"), _stopping() as stop, _telling() as told:
        if not store.planned:
            store.begin(plan, sys.argv)
        _run(plan, store, cluster, given, stop, told)
    code = show(store, given, "interrupted" if stop.is_set() else "")
    if not given["keep"]:
        _say(f"deleting what was submitted: {_delete(plan, given['context'])} deleted")
    return code


def _run(
    plan: LifecyclePlan, store: Store, cluster: Any, given: dict[str, Any], stop: threading.Event,
    told: Callable[[Progress], None],
) -> None:  # fmt: skip
    """The submitter in a thread of its own, which waits for the watches; the sampler in this one."""
    from scaletest.lifecycle.sampling import Sampler, steady

    failure: list[BaseException] = []
    sampler = Sampler(plan, store, _raw(cluster), steady(), stop)

    def work() -> None:
        try:
            sampler.watching.wait()
            if not stop.is_set():
                _submit(plan, store, _raw(cluster), given["context"], stop, lambda line: None)
        except BaseException as error:
            failure.append(error)

    submitter = threading.Thread(target=work, name="submitter")
    submitter.start()
    try:
        sampler.follow(given["timeout"], told, submitting=submitter.is_alive)
    except BaseException:
        stop.set()
        raise
    finally:
        submitter.join()
    if failure and not (isinstance(failure[0], ScaletestError) and failure[0].exit_code == 3):
        raise failure[0]


@command.command()
@own.output_dir()
@click.option("-l", "--selector", required=True, metavar="LABELS", help="Labels of the pods, as kubectl takes them.")
@click.option("--namespace", default="", metavar="NAME", help="[default: the current one]")
@click.option("--context", default="", metavar="NAME", help="Of the kubeconfig.")
@click.option("--object", "kind", default="", metavar="VERSION/KIND",
              help="Also watch these objects with the same labels, as in batch/v1/Job.")  # fmt: skip
@click.option("--until", type=click.Choice(own.MILESTONES), default="ready", show_default=True)
@click.option("--timeout", type=float, default=FOREVER_S, metavar="S", help="Watch this long. [default: until Ctrl-C]")
@click.option("--event-times", is_flag=True, help="Also read Events.")
@own.judged_options
@click.option("--output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True,
              help="Form of the result on standard output.")  # fmt: skip
def observe(**given: Any) -> int:
    """Measure somebody else's workloads: watch pods by their labels, submit nothing."""
    from scaletest.cli.lifecycle_files import show
    from scaletest.cluster.connection import connect
    from scaletest.lifecycle.plan import LifecyclePlan, new_run
    from scaletest.lifecycle.store import Store

    cluster = connect(given["namespace"], given["context"])
    version, _, kind = given["kind"].rpartition("/")
    if given["kind"] and not version:
        raise UsageError(f"--object is {given['kind']!r}", hint="give VERSION/KIND, as in batch/v1/Job")
    store = Store(given["output_dir"])
    store.make()
    if store.planned and not store.plan().selector:
        raise UsageError(f"{store.path} holds a run that submits", hint="give another --output-dir")
    plan = LifecyclePlan(
        new_run(), "observed", cluster.namespace, 0, until=given["until"], selector=given["selector"],
        api_version=version, object_kind=kind, event_times=given["event_times"],
    )  # fmt: skip
    with store.locked("sampler"), _stopping() as stop, _telling() as told:
        store.begin(plan, sys.argv)
        _follow(plan, store, given["context"], stop, given["timeout"], told)
    return show(store, given, "")


@command.command()
@own.output_dir()
@click.option("--context", default="", metavar="NAME", help="Of the kubeconfig.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(output_dir: Path, context: str, yes: bool) -> None:
    """Delete the objects that a run submitted, and what they own. The folder stays."""
    from scaletest.lifecycle.store import Store

    plan = Store(output_dir).plan()
    if plan.selector:
        raise UsageError("the run was only observed: its objects are not ours to delete", hint="delete them yourself")
    what = f"{plan.object_kind}s of run {plan.run} in namespace {plan.namespace}"
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"nobody can be asked whether to delete {what}", hint="add --yes")
        if not click.confirm(f"delete all {what}?", err=True):
            _say("nothing deleted")
            return
    click.echo(f"{_delete(plan, context)} {what} deleted")


def _delete(plan: LifecyclePlan, context: str) -> int:
    from scaletest.cluster.connection import connect
    from scaletest.cluster.objects import Objects
    from scaletest.lifecycle.cleanup import delete_all

    return delete_all(plan, Objects(_raw(connect(plan.namespace, context))))


for _one in (plot, report, compare):
    command.add_command(_one)


def _raw(cluster: Any) -> Raw:
    from scaletest.cluster.raw import Raw

    return Raw(cluster, CONNECTIONS)


def _new_folder() -> Path:
    import os
    import secrets
    from datetime import UTC, datetime

    from scaletest.archive import default_root

    name = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{secrets.token_hex(2)}"
    return own.root(default_root(os.environ)) / name


@contextmanager
def _stopping() -> Iterator[threading.Event]:
    """Ctrl-C and SIGTERM once: end in order, and keep what there is. Twice: end now."""
    stop = threading.Event()

    def handle(number: int, frame: Any) -> None:
        if stop.is_set():
            raise SystemExit(128 + number)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, one in before.items():
            signal.signal(number, one)


@contextmanager
def _telling() -> Iterator[Callable[[Progress], None]]:
    """Live progress: one line that changes on a terminal, else one every ten seconds."""
    from scaletest.report.lifecycle.progress import Teller

    teller = Teller()
    try:
        yield teller.tell
    finally:
        teller.close()


def _say(line: str) -> None:
    click.echo(line, err=True)
