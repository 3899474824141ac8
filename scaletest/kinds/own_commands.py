"""Kinds that run scaletest's own commands, so that a sweep can vary their plans.

Validation: how throughput grows with workers, which are local processes, or pods of a Deployment of
the chart. Lifecycle: how fast a cluster starts workloads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds import parsing
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import (
    ActingSpec,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Part,
    PodOverrides,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
)
from scaletest.model import checks

VERDICTS = {0: "PASS", 3: "FAIL", 4: "INVALID"}
_MEDIAN = ("seconds", "p50", "value")
NAME = r"|[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?"


@dataclass(frozen=True, kw_only=True)
class ValidationSpec(ActingSpec):
    """Spec of Validation: options of scaletest validate that a sweep may vary."""

    limit: int = spec_field(
        4,
        "Largest number of workers; the steps are 1, 2, 4, ... and this.",
        minimum=1,
        maximum=1000,
    )
    scale: float = spec_field(
        1.8, "Required ratio of throughput for each doubling.", minimum=1, maximum=2
    )
    seconds: float = spec_field(
        1.0, "Duration of a sleep, or about that of the command.", minimum=0, maximum=86400
    )
    command: tuple[str, ...] = spec_field(
        (), "Program and arguments of a request; empty: sleep.", trusted=True
    )
    step_time: float = spec_field(
        0.0,
        "Seconds of measuring in each step; 0: as long as necessary for the verdict.",
        minimum=0,
    )
    device_glob: str = spec_field("", "Device files; workers use them in turn.")
    deployment: str = spec_field(
        "",
        "Deployment of the chart with the workers; empty: local processes.",
        pattern=NAME,
        pattern_text="a name",
        trusted=True,
    )
    client: str = spec_field(
        "",
        "Service of the deployment's client; empty: that of the same queue in the chart.",
        pattern=NAME,
        pattern_text="a name",
    )
    worker: PodOverrides = spec_field(PodOverrides(), "Changes to the pod.")

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.refuse(
            (
                self.deployment and (self.command or self.device_glob),
                "deployment, and command or deviceGlob, exclude each other",
                "workers of the chart have their own command and devices",
            )
        )


@dataclass(frozen=True, kw_only=True)
class LifecycleSpec(ActingSpec):
    """The options of scaletest lifecycle run that matter to a sweep."""

    workload_type: str = spec_field(
        "training",
        "Type of the workloads.",
        pattern=r"[a-z][a-z-]{0,30}",
        pattern_text="a type, as in training",
    )
    num_workloads: int = spec_field(10, "Number of workloads.", minimum=1, maximum=1_000_000)
    num_processes: int = spec_field(
        8, "Number of workloads that are submitted at the same time.", minimum=1, maximum=1000
    )
    num_workers: int = spec_field(
        1, "Workers of a distributed workload.", minimum=1, maximum=10_000
    )
    num_gpus: int = spec_field(0, "Devices of each pod.", minimum=0, maximum=64)
    run_seconds: float = spec_field(1.0, "Run time of each, in seconds.", minimum=0, maximum=86400)
    workload_image: str = spec_field(
        "busybox", "Image of the workloads' pods; it needs sleep.", pattern=r"\S{1,500}"
    )
    namespace: str = spec_field(
        "", "Namespace; empty: the current one.", pattern=r"|[a-z0-9-]{1,63}", pattern_text="a name"
    )
    worker: PodOverrides = spec_field(PodOverrides(), "Changes to the pod of the tester.")


def validation_tasks(spec: ValidationSpec, site: ExecutionSite) -> Sequence[Task]:
    """scaletest validate, with its run folder in the part's folder."""
    client = spec.client or f"{spec.deployment.removesuffix('-worker')}-client"
    cluster = ("--deployment", spec.deployment, "--client", f"svc/{client}", "--pause-autoscalers")
    line = [
        *(*site.python, "-m", "scaletest", "validate"),
        *(cluster if spec.deployment else ("--local",)),
        *("--output", "json", "--run-dir", "run"),
        *("--limit", str(spec.limit), "--scale", str(spec.scale), "--seconds", str(spec.seconds)),
    ]
    if spec.step_time:
        line += ["--step-time", str(spec.step_time)]
    if spec.device_glob:
        line += ["--device-glob", spec.device_glob]
    if spec.command:
        line += ["--", *spec.command]
    return (Task("worker", 0, bound(spec, line)),)


def lifecycle_tasks(spec: LifecycleSpec, site: ExecutionSite) -> Sequence[Task]:
    """scaletest lifecycle run, which deletes its objects at the end."""
    line = (
        *(*site.python, "-m", "scaletest", "lifecycle", "run"),
        *("--output", "json", "--output-dir", "run", "--delete"),
        *("-t", spec.workload_type, "-n", str(spec.num_workloads)),
        *("--num-processes", str(spec.num_processes), "--num-workers", str(spec.num_workers)),
        *("--num-gpus", str(spec.num_gpus), "--run-seconds", str(spec.run_seconds)),
        *("--image", spec.workload_image),
        *(("--namespace", spec.namespace) if spec.namespace else ()),
    )
    return (Task("worker", 0, bound(spec, line)),)


def parse_validation(spec: ValidationSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the result: the throughput of the last step."""
    report = _result(output, "validation")
    steps: Any = report.get("steps")
    parsing.fail_if(
        not isinstance(steps, list) or not steps,
        "the validation has no steps",
        list(map(str, report)),
    )
    last = parsing.at(steps[-1], "workers")
    parsing.fail_if(
        last != spec.limit,
        f"the validation ended at {last} workers instead of {spec.limit}",
        [str(report["verdict"].get("reason", ""))],
        failure={"FAIL": Failure.EXIT, "PASS": Failure.INTERRUPTED}[report["verdict"]["kind"]],
    )
    headlines = {"throughput": parsing.number(steps[-1], "throughput_per_s")}
    if parsing.at(steps[-1], "efficiency") is not None:
        headlines["efficiency"] = parsing.number(steps[-1], "efficiency")
    return ToolMeasurement(
        headlines,
        {
            "verdict": report["verdict"],
            "steps": [
                parsing.picked(
                    step, ("workers", "throughput_per_s", "half_width_per_s", "failures")
                )
                for step in steps
            ],
        },
        notes=_notes(report),
    )


def parse_lifecycle(spec: LifecycleSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the result: rate of pods, and median of the last phase that was measured."""
    report = _result(output, "lifecycle")
    planned = parsing.at(report, "books", "planned")
    parsing.fail_if(
        planned != spec.num_workloads,
        f"the lifecycle was of {planned} workloads instead of {spec.num_workloads}",
        failure=Failure.MISMATCH,
    )
    steps = report.get("steps")
    phases = steps if isinstance(steps, list) else []
    medians = [phase for phase in phases if parsing.at(phase, *_MEDIAN) is not None]
    headlines = {}
    if parsing.at(report, "throughput", "per_s") is not None:
        headlines["podsPerSecond"] = parsing.number(report, "throughput", "per_s")
    if medians:
        headlines["medianTime"] = parsing.number(medians[-1], *_MEDIAN)
    parsing.fail_if(not headlines, "the lifecycle result has no numbers", list(map(str, report)))
    details = {
        "verdict": report["verdict"],
        "steps": [parsing.picked(phase, ("step", "since", "seconds")) for phase in phases],
        "books": report.get("books"),
    }
    return ToolMeasurement(headlines, details, notes=_notes(report))


def _result(output: ToolOutput, kind: str) -> dict[str, Any]:
    """The JSON result of one of our own commands.

    Raises BenchmarkFailed without one, and for INVALID: then nothing was measured.
    """
    if output.exit_code not in VERDICTS:
        parsing.ended_well(output, f"scaletest {kind}")
    report = parsing.json_object(output.stdout, f"scaletest {kind}")
    verdict = parsing.at(report, "verdict", "kind")
    parsing.fail_if(
        report.get("kind") != kind or verdict not in VERDICTS.values(),
        f"this is not a result of scaletest {kind}",
        list(map(str, report)),
    )
    parsing.fail_if(
        verdict != VERDICTS[output.exit_code],
        f"the verdict of scaletest {kind} is {verdict}, but its exit code {output.exit_code}",
    )
    reason, remedy = (str(report["verdict"].get(name) or "") for name in ("reason", "remedy"))
    parsing.fail_if(
        verdict == "INVALID",
        f"the {kind} is INVALID: {reason}",
        failure=Failure.INVALID,
        remedy=remedy,
    )
    return report


def _notes(report: dict[str, Any]) -> tuple[str, ...]:
    """The verdict as a note, unless it is PASS: the measurement is valid all the same."""
    verdict = report["verdict"]
    if verdict["kind"] == "PASS":
        return ()
    return (f"{verdict['kind']}: {verdict.get('reason', '')}",)


VALIDATION = Kind(
    name="Validation",
    plural="validations",
    help="How throughput grows with workers: scaletest validate.",
    spec=ValidationSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=validation_tasks,
    parse=parse_validation,
    limit_s=lambda spec: (
        600 + 100 * spec.limit.bit_length() * max(60.0, 30 * spec.seconds, spec.step_time)
    ),
    headlines=(
        Headline(
            "throughput",
            "request throughput",
            "1/s",
            True,
            "Requests per second with the most workers.",
        ),
        Headline(
            "efficiency",
            "efficiency of workers",
            "",
            True,
            "Throughput of each worker there, relative to that of a single one.",
        ),
    ),
    columns=("limit", "scale", "seconds"),
)
LIFECYCLE = Kind(
    name="Lifecycle",
    plural="lifecycles",
    help="How fast a cluster starts workloads: scaletest lifecycle run.",
    spec=LifecycleSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=lifecycle_tasks,
    parse=parse_lifecycle,
    limit_s=lambda spec: 3600 + spec.num_workloads + spec.run_seconds,
    headlines=(
        Headline(
            "podsPerSecond",
            "rate of scheduled pods",
            "1/s",
            True,
            "Pods scheduled per second, from the first to the last.",
        ),
        Headline(
            "medianTime",
            "median time of the last phase",
            "s",
            False,
            "Median duration of the last phase that was measured.",
        ),
    ),
    columns=("workloadType", "numWorkloads", "numWorkers"),
    # it creates pods of any image, with the rights of its service account
    trusted=True,
)
