"""Lifecycle: how fast a cluster starts workloads, by scaletest lifecycle run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.kinds import parsing, scaletest_result
from scaletest.kinds.common import ActingSpec, PodOverrides
from scaletest.kinds.fields import spec_field
from scaletest.kinds.kind import (
    BenchmarkFailed,
    ExecutionSite,
    Failure,
    Headline,
    Kind,
    Part,
    Task,
    ToolMeasurement,
    ToolOutput,
    bound,
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


def tasks(spec: LifecycleSpec, site: ExecutionSite) -> Sequence[Task]:
    """scaletest lifecycle run, which deletes its objects at the end."""
    line = [
        *site.python,
        "-m",
        "scaletest",
        "lifecycle",
        "run",
        "--output",
        "json",
        "--output-dir",
        "run",
        "--delete",
    ]
    line += [
        "-t",
        spec.workload_type,
        "-n",
        str(spec.num_workloads),
        "--num-processes",
        str(spec.num_processes),
    ]
    line += ["--num-workers", str(spec.num_workers), "--num-gpus", str(spec.num_gpus)]
    line += ["--run-seconds", str(spec.run_seconds), "--image", spec.workload_image]
    if spec.namespace:
        line += ["--namespace", spec.namespace]
    return (Task("worker", 0, bound(spec, line)),)


def parse(spec: LifecycleSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the result: rate of pods, and median of the last phase that was measured."""
    report = scaletest_result.result(output, "lifecycle")
    planned = parsing.at(report, "books", "planned")
    if planned != spec.num_workloads:
        raise BenchmarkFailed(
            Failure.MISMATCH,
            f"the lifecycle was of {planned} workloads instead of {spec.num_workloads}",
        )
    headlines = {}
    if parsing.at(report, "throughput", "per_s") is not None:
        headlines["podsPerSecond"] = parsing.number(report, "throughput", "per_s")
    steps = report.get("steps")
    phases = steps if isinstance(steps, list) else []
    measured = [
        phase for phase in phases if parsing.at(phase, "seconds", "p50", "value") is not None
    ]
    if measured:
        headlines["medianTime"] = parsing.number(measured[-1], "seconds", "p50", "value")
    if not headlines:
        raise parsing.bad("the lifecycle result has no numbers", list(map(str, report)))
    short = [_short(phase) for phase in phases]
    details = {"verdict": report["verdict"], "steps": short, "books": report.get("books")}
    return ToolMeasurement(headlines, details, notes=scaletest_result.notes(report))


def _short(phase: Any) -> dict[str, Any]:
    return {name: parsing.at(phase, name) for name in ("step", "since", "seconds")}


KIND = Kind(
    name="Lifecycle",
    plural="lifecycles",
    help="How fast a cluster starts workloads: scaletest lifecycle run.",
    spec=LifecycleSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 3600 + spec.num_workloads + spec.run_seconds,
    headlines=(
        Headline(
            "podsPerSecond", "1/s", True, "Pods scheduled per second, from the first to the last."
        ),
        Headline("medianTime", "s", False, "Median duration of the last phase that was measured."),
    ),
    columns=("workloadType", "numWorkloads", "numWorkers"),
    # it creates pods of any image, with the rights of its service account
    trusted=True,
)
