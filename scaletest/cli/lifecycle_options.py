"""Options that several commands of `scaletest lifecycle` share, and their conversion."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import click
from click.core import ParameterSource

from scaletest.analysis.lifecycle.judge import parse
from scaletest.analysis.lifecycle.result import LifecycleResult, WorkloadSelection, result
from scaletest.cli.output import echo
from scaletest.lifecycle import kinds, templating
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan, new_run
from scaletest.lifecycle.templating import Extras, Workloads
from scaletest.model.errors import UsageError
from scaletest.model.lifecycle import Stamp
from scaletest.model.lifecycle_plan import KIND
from scaletest.runs.places import default_root, runs

F = TypeVar("F", bound=Callable[..., object])
TYPES = (
    "training",
    "distributed",
    "interactive",
    "job",
    "indexed-job",
    "jobset",
    "deployment",
    "statefulset",
    "pod",
    "scaledjob",
    "pytorchjob",
    "runai-training",
    "runai-distributed",
    "runai-interactive",
)
MILESTONES = ("created", "scheduled", "ready_to_start", "started", "ready", "finished")
DEFAULT_PROJECT = "project-0"


def folder(context: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """A folder; else LAST or the end of a name, of runs that `run` keeps and imports."""
    if value is None or value.exists() or value.name != str(value):
        return value
    stored = [run for run in runs(default_root(os.environ)) if run.layout.kind == KIND]
    paths = [run.path for run in stored]
    matching = [path for path in paths if path.name.endswith(str(value))]
    if str(value) == "LAST":
        matching = paths[-1:]
    return matching[0] if len(matching) == 1 else value


def _all(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def output_dir(short: bool = True, default: str | None = "logs") -> Callable[[F], F]:
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


WORKLOAD_OPTIONS = (
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
        type=float,
        default=0.0,
        show_default=True,
        metavar="S",
        help="Closed load: wait this long after each burst.",
    ),
    click.option(
        "--interval",
        type=float,
        default=0.0,
        metavar="S",
        help=("Open load: begin a burst every S seconds, whether or not the one before has ended."),
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
        default="1",
        show_default=True,
        metavar="N",
        help="Devices of each pod; text, so that fractions pass through; 0: none.",
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
        default="60",
        show_default=True,
        metavar="S",
        help="How long the pods sleep; infinity is allowed.",
    ),
    click.option(
        "--template",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="YAML of one object instead of the built-in template; any field passes through.",
    ),
    click.option(
        "--until",
        type=click.Choice(MILESTONES),
        default=None,
        help="A workload counts as measured when it reaches this. [default: by type]",
    ),
    click.option(
        "--namespace",
        default="",
        metavar="NAME",
        help="[default: runai-PROJECT, else the current one]",
    ),
    click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig."),
    click.option(
        "--tool",
        type=click.Choice(["api", "kubectl", "runai"]),
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
)


@dataclass(frozen=True, slots=True)
class LifecycleWorkloadOptions:
    """The workloads that are submitted, and how fast. Times are in seconds."""

    workload_type: str
    num_workloads: int | None
    num_processes: int
    delay: float
    interval: float
    num_workers: int
    num_gpus: str
    resource: str
    claim_template: str
    pvc: bool
    storage_class: str
    image: str
    run_seconds: str
    template: Path | None
    until: str | None
    namespace: str
    context: str
    tool: str
    tool_path: str
    event_times: bool
    project: str


@dataclass(frozen=True, slots=True)
class JudgedOptions:
    """What must hold."""

    thresholds: tuple[str, ...] = ()
    tolerate_failures: int = 0


def workload(function: F) -> F:
    """Add the options that say which workloads are submitted."""
    return _all(function, *WORKLOAD_OPTIONS)


def project(*names: str) -> Callable[[F], F]:
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


def view_options(function: F) -> F:
    """Add the options that say what of a run is shown: a WorkloadSelection."""
    return _all(
        function,
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


def judged_options(function: F) -> F:
    """Add the options that say what must hold."""
    return _all(
        function,
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


def plan_of(options: LifecycleWorkloadOptions, namespace: str) -> LifecyclePlan:
    """The plan of a new run. namespace: the kubeconfig's."""
    if options.num_workloads is None:
        raise UsageError("how many workloads is not said", hint="give --num-workloads N")
    name = kinds.ALIASES.get(options.workload_type, options.workload_type)
    kind = kinds.find(name)
    default_project = DEFAULT_PROJECT if kind.runai else ""
    project = options.project or default_project
    own_namespace = f"runai-{project}" if project else namespace
    plan = LifecyclePlan(
        run=new_run(),
        kind="custom" if options.template else name,
        count=options.num_workloads,
        namespace=options.namespace or own_namespace,
        project=project,
        processes=options.num_processes,
        delay_s=options.delay,
        interval_s=options.interval,
        workers=options.num_workers,
        gpus="0" if options.claim_template else options.num_gpus,
        resource=options.resource,
        image=options.image,
        seconds=options.run_seconds,
        pvc=options.pvc,
        storage_class=options.storage_class,
        claim_template=options.claim_template,
        until=options.until or kind.until,
        tool=options.tool,
        tool_path=options.tool_path,
        event_times=options.event_times,
        template=templating.text_of(kind.template, options.template),
        template_file=str(options.template or ""),
    )
    if plan.seconds == "infinity" and plan.until == "finished" and not plan.template_file:
        echo("warning: pods that sleep for ever never finish; ask for --until ready", err=True)
    return _with_object(plan)


def plan_for(
    store: LifecycleFolder, options: LifecycleWorkloadOptions, namespace: str
) -> LifecyclePlan:
    """The plan of a new folder, or the stored one with the pace that was typed.

    UsageError when another typed option differs from it.
    """
    if not store.planned:
        return plan_of(options, namespace)
    plan = store.plan()
    context = click.get_current_context()
    typed = {
        parameter.name
        for parameter in context.command.params
        if parameter.name
        and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    }
    kind = kinds.ALIASES.get(options.workload_type, options.workload_type)
    for name, value, stored in (
        ("claim_template", options.claim_template, plan.claim_template),
        ("image", options.image, plan.image),
        ("namespace", options.namespace, plan.namespace),
        ("num_gpus", options.num_gpus, plan.gpus),
        ("num_workers", options.num_workers, plan.workers),
        ("num_workloads", options.num_workloads, plan.count),
        ("project", options.project, plan.project),
        ("pvc", options.pvc, plan.pvc),
        ("resource", options.resource, plan.resource),
        ("run_seconds", options.run_seconds, plan.seconds),
        ("storage_class", options.storage_class, plan.storage_class),
        ("tool", options.tool, plan.tool),
        # a template's kind is not the type of workload
        ("workload_type", kind, kind if plan.template_file else plan.kind),
    ):
        if name in typed and value != stored:
            raise UsageError(
                f"{store.path} holds run {plan.run} with {name.replace('_', ' ')} {stored}, not"
                f" {value}",
                hint="give another --output-dir for a new run, or leave the option out to go on",
            )
    echo(f"going on with run {plan.run} of {plan.count} workloads", err=True)
    if "num_processes" in typed:
        plan = replace(plan, processes=options.num_processes)
    if "delay" in typed:
        plan = replace(plan, delay_s=options.delay)
    if "interval" in typed:
        plan = replace(plan, interval_s=options.interval)
    return replace(plan, tool_path=options.tool_path) if "tool_path" in typed else plan


def _with_object(plan: LifecyclePlan) -> LifecyclePlan:
    """The plan with the kind of its objects, which the template says."""
    workloads = workloads_of(plan)
    return replace(plan, api_version=workloads.api_version, object_kind=workloads.kind)


def workloads_of(plan: LifecyclePlan) -> Workloads:
    """Makes the plan's objects."""
    extras = Extras(plan.pvc, plan.storage_class, plan.claim_template)
    return Workloads(plan.template, plan.values(), plan.run, extras)


WHOLE = WorkloadSelection()
NO_CONDITION = JudgedOptions()


def result_of(
    store: LifecycleFolder,
    view: WorkloadSelection = WHOLE,
    judged: JudgedOptions = NO_CONDITION,
    interrupted: str = "",
) -> LifecycleResult:
    """Everything in the folder's files; without a plan they are those of the original tool."""
    for text in judged.thresholds:
        parse(text)
    if not store.planned and (store.path / "plan.json").is_file():
        raise UsageError(
            f"{store.path} is a run of another kind",
            hint="see: scaletest report, scaletest bench show",
        )
    workloads, submissions = store.workloads(), store.submissions()
    plan = store.plan() if store.planned else None
    if plan is None and not workloads:
        raise UsageError(
            f"{store.path} holds no lifecycle run",
            hint="give the --output-dir of submit and sample",
        )
    for submission in submissions:
        submitted_s = submission.submitted_s
        if submission.accepted and submission.name in workloads and submitted_s is not None:
            workloads[submission.name].mark("submitted", Stamp(watch_s=submitted_s))
    return result(
        workloads.values(),
        submissions,
        plan.until if plan else "decided",
        view,
        planned=plan.count if plan else 0,
        thresholds=judged.thresholds,
        tolerate_failures=judged.tolerate_failures,
        interrupted=interrupted,
    )


def heading(store: LifecycleFolder) -> str:
    """What was run, in one line."""
    if not store.planned:
        return f"lifecycle of {store.path}, from files of the Run:ai scale test tool"
    plan = store.plan()
    if plan.selector:
        return f"lifecycle of {plan.selector} in namespace {plan.namespace}, observed"
    how = f"every {plan.interval_s:g} s" if plan.interval_s else f"{plan.delay_s:g} s apart"
    return (
        f"lifecycle of {plan.count} {plan.object_kind}s in namespace {plan.namespace} · "
        f"bursts of {plan.processes} {how} · run {plan.run}"
    )
