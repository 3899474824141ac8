"""Options that several commands of `scaletest lifecycle` share, and their conversion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from scaletest.cli.output import echo
from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from scaletest.analysis.lifecycle.result import LifecycleResult, WorkloadSelection
    from scaletest.lifecycle.folder import LifecycleFolder
    from scaletest.lifecycle.plan import LifecyclePlan

F = TypeVar("F", bound=Callable[..., Any])
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
    import os

    from scaletest.model.lifecycle_plan import KIND
    from scaletest.runs.places import default_root, runs

    if value is None or value.exists() or value.name != str(value):
        return value
    there = [one.path for one in runs(default_root(os.environ)) if one.layout.kind == KIND]
    matching = (
        there[-1:]
        if str(value) == "LAST"
        else [one for one in there if one.name.endswith(str(value))]
    )
    return matching[0] if len(matching) == 1 else value


def _all(function: F, *options: Callable[[F], F]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def output_dir(short: bool = True, default: str | None = "logs") -> Callable[[F], F]:
    """-o, --output-dir."""
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


def workload(function: F) -> F:
    """Add the options that say which workloads are submitted."""
    return _all(function, *WORKLOAD_OPTIONS)


def project(*names: str) -> Callable[[F], F]:
    """The Run:ai project."""
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
    """What of a run is shown."""
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
    """What must hold."""
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


def plan_of(given: dict[str, Any], namespace: str) -> LifecyclePlan:
    """The plan of a new run. namespace: the kubeconfig's."""
    from scaletest.lifecycle import kinds, templating
    from scaletest.lifecycle.plan import LifecyclePlan, new_run

    if given["num_workloads"] is None:
        raise UsageError("how many workloads is not said", hint="give --num-workloads N")
    name = kinds.ALIASES.get(given["workload_type"], given["workload_type"])
    kind = kinds.find(name)
    project = given["project"] or (DEFAULT_PROJECT if kind.runai else "")
    plan = LifecyclePlan(
        run=new_run(),
        kind="custom" if given["template"] else name,
        count=given["num_workloads"],
        namespace=given["namespace"] or (f"runai-{project}" if project else namespace),
        project=project,
        processes=given["num_processes"],
        delay_s=given["delay"],
        interval_s=given["interval"],
        workers=given["num_workers"],
        gpus="0" if given["claim_template"] else given["num_gpus"],
        resource=given["resource"],
        image=given["image"],
        seconds=given["run_seconds"],
        pvc=given["pvc"],
        storage_class=given["storage_class"],
        claim_template=given["claim_template"],
        until=given["until"] or kind.until,
        tool=given["tool"],
        tool_path=given["tool_path"],
        event_times=given["event_times"],
        template=templating.text_of(kind.template, given["template"]),
        template_file=str(given["template"] or ""),
    )
    if plan.seconds == "infinity" and plan.until == "finished" and not plan.template_file:
        echo("warning: pods that sleep for ever never finish; ask for --until ready", err=True)
    return _with_object(plan)


# Typed options of a run that goes on: those that must be what they were, and those that may change.
FIXED = {
    "num_workloads": "count",
    "num_workers": "workers",
    "num_gpus": "gpus",
    "resource": "resource",
    "image": "image",
    "claim_template": "claim_template",
    "pvc": "pvc",
    "storage_class": "storage_class",
    "run_seconds": "seconds",
    "namespace": "namespace",
    "project": "project",
    "workload_type": "kind",
    "tool": "tool",
}
PACE = {
    "num_processes": "processes",
    "delay": "delay_s",
    "interval": "interval_s",
    "tool_path": "tool_path",
}


def plan_for(store: LifecycleFolder, given: dict[str, Any], namespace: str) -> LifecyclePlan:
    """The plan of a new folder, or the stored one with the pace that was typed.

    UsageError when another typed option differs from it.
    """
    from dataclasses import replace

    from scaletest.lifecycle import kinds

    if not store.planned:
        return plan_of(given, namespace)
    plan = store.plan()
    context = click.get_current_context()
    typed = {
        name for name in given if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    for name in sorted(typed & set(FIXED)):
        value = (
            kinds.ALIASES.get(given[name], given[name]) if name == "workload_type" else given[name]
        )
        stored = getattr(plan, FIXED[name])
        if value != stored and not (name == "workload_type" and plan.template_file):
            raise UsageError(
                f"{store.path} holds run {plan.run} with {name.replace('_', ' ')} {stored}, not"
                f" {value}",
                hint="give another --output-dir for a new run, or leave the option out to go on",
            )
    echo(f"going on with run {plan.run} of {plan.count} workloads", err=True)
    return replace(plan, **{PACE[name]: given[name] for name in typed & set(PACE)})


def _with_object(plan: LifecyclePlan) -> LifecyclePlan:
    """The plan with the kind of its objects, which the template says."""
    from dataclasses import replace

    made = workloads_of(plan)
    return replace(plan, api_version=made.api_version, object_kind=made.kind)


def workloads_of(plan: LifecyclePlan) -> Any:
    """What makes the plan's objects."""
    from scaletest.lifecycle.templating import Extras, Workloads

    extras = Extras(plan.pvc, plan.storage_class, plan.claim_template)
    return Workloads(plan.template, plan.values(), plan.run, extras)


def view_of(given: dict[str, Any]) -> WorkloadSelection:
    """What is shown."""
    from scaletest.analysis.lifecycle.result import WorkloadSelection

    return WorkloadSelection(given["skip_errors"], given["head"], given["tail"], given["times"])


def result_of(
    store: LifecycleFolder, given: dict[str, Any], interrupted: str = ""
) -> LifecycleResult:
    """Everything in the folder's files; without a plan they are those of the original tool."""
    from scaletest.analysis.lifecycle.judge import parse
    from scaletest.analysis.lifecycle.result import WorkloadSelection, result

    for text in given.get("thresholds", ()):
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
    for row in submissions:
        if row.accepted and row.name in workloads and row.submitted_s is not None:
            from scaletest.model.lifecycle import Stamp

            workloads[row.name].mark("submitted", Stamp(watch_s=row.submitted_s))
    return result(
        workloads.values(),
        submissions,
        plan.until if plan else "decided",
        view_of(given) if "head" in given else WorkloadSelection(),
        planned=plan.count if plan else 0,
        thresholds=given.get("thresholds", ()),
        tolerate_failures=given.get("tolerate_failures", 0),
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
