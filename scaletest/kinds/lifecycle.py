"""Lifecycle: how fast a cluster brings workloads up, as a kind: scaletest lifecycle run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
        "training", "What is submitted.", pattern=r"[a-z][a-z-]{0,30}", words="a type, as in training"
    )
    num_workloads: int = spec_field(10, "How many.", minimum=1, maximum=1_000_000)
    num_processes: int = spec_field(8, "How many are submitted at once.", minimum=1, maximum=1000)
    num_workers: int = spec_field(1, "Workers of a distributed workload.", minimum=1, maximum=10_000)
    num_gpus: int = spec_field(0, "Devices of each pod.", minimum=0, maximum=64)
    run_seconds: float = spec_field(1.0, "How long each runs.", minimum=0, maximum=86400)
    workload_image: str = spec_field("busybox", "Image of the workloads' pods; it needs sleep.", pattern=r"\S{1,500}")
    namespace: str = spec_field("", "Where; empty for the current one.", pattern=r"|[a-z0-9-]{1,63}", words="a name")
    worker: PodOverrides = spec_field(PodOverrides(), "How the pod of the tester differs.")


def tasks(spec: LifecycleSpec, site: ExecutionSite) -> Sequence[Task]:
    """scaletest lifecycle run, which deletes what it made."""
    line = [*site.python, "-m", "scaletest", "lifecycle", "run", "--output", "json", "--output-dir", "run", "--delete"]
    line += ["-t", spec.workload_type, "-n", str(spec.num_workloads), "--num-processes", str(spec.num_processes)]
    line += ["--num-workers", str(spec.num_workers), "--num-gpus", str(spec.num_gpus)]
    line += ["--run-seconds", str(spec.run_seconds), "--image", spec.workload_image]
    line += ["--namespace", spec.namespace] if spec.namespace else []
    return (Task("worker", 0, bound(spec, line)),)


def parse(spec: LifecycleSpec, output: ToolOutput) -> ToolMeasurement:
    """Rate, and the median of the step that the run waited for. Raises Failed."""
    data = scaletest_result.result(output, "lifecycle")
    planned = parsing.at(data, "books", "planned")
    if planned != spec.num_workloads:
        raise BenchmarkFailed(
            Failure.MISMATCH, f"the lifecycle was of {planned} workloads instead of {spec.num_workloads}"
        )
    headlines = {}
    if parsing.at(data, "throughput", "per_s") is not None:
        headlines["podsPerSecond"] = parsing.number(data, "throughput", "per_s")
    steps = data.get("steps")
    rows = steps if isinstance(steps, list) else []
    last = next((one for one in reversed(rows) if parsing.at(one, "seconds", "p50", "value") is not None), None)
    if last is not None:
        headlines["medianTime"] = parsing.number(last, "seconds", "p50", "value")
    if not headlines:
        raise parsing.bad("the lifecycle result holds no numbers", list(map(str, data)))
    kept = [
        {"step": parsing.at(one, "step"), "since": parsing.at(one, "since"), "seconds": parsing.at(one, "seconds")}
        for one in rows
    ]
    result = {"verdict": data["verdict"], "steps": kept, "books": data.get("books")}
    return ToolMeasurement(headlines, result, notes=scaletest_result.notes(data))


KIND = Kind(
    name="Lifecycle",
    plural="lifecycles",
    help="How fast a cluster brings workloads up: scaletest lifecycle run.",
    spec=LifecycleSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: 3600 + spec.num_workloads + spec.run_seconds,
    headlines=(
        Headline("podsPerSecond", "1/s", True, "Pods scheduled a second, from the first to the last."),
        Headline("medianTime", "s", False, "Median of the last step that was measured."),
    ),
    columns=("workloadType", "numWorkloads", "numWorkers"),
    trusted=True,  # it makes pods of any image, with the rights of whoever runs it
)
