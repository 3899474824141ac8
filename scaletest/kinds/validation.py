"""Validation: scaletest validate as a kind, so that a sweep can vary its plan.

Workers are local processes, or pods of a Deployment of the chart.
"""

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
from scaletest.model.errors import InvalidValue

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
        "Service of the deployment's client; empty: DEPLOYMENT-client.",
        pattern=NAME,
        pattern_text="a name",
    )
    worker: PodOverrides = spec_field(PodOverrides(), "Changes to the pod.")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.deployment and (self.command or self.device_glob):
            raise InvalidValue(
                "deployment, and command or deviceGlob, exclude each other",
                hint="workers of the chart have their own command and devices",
            )


def tasks(spec: ValidationSpec, site: ExecutionSite) -> Sequence[Task]:
    """scaletest validate, with its run folder in the part's folder."""
    target = ["--local"]
    if spec.deployment:
        client = spec.client or f"{spec.deployment}-client"
        target = ["--deployment", spec.deployment, "--client", f"svc/{client}"]
        target += ["--pause-autoscalers"]
    line = [
        *site.python,
        "-m",
        "scaletest",
        "validate",
        *target,
        "--output",
        "json",
        "--run-dir",
        "run",
    ]
    line += ["--limit", str(spec.limit), "--scale", str(spec.scale), "--seconds", str(spec.seconds)]
    if spec.step_time:
        line += ["--step-time", str(spec.step_time)]
    if spec.device_glob:
        line += ["--device-glob", spec.device_glob]
    if spec.command:
        line += ["--", *spec.command]
    return (Task("worker", 0, bound(spec, line)),)


def parse(spec: ValidationSpec, output: ToolOutput) -> ToolMeasurement:
    """Parse the result: the throughput of the last step."""
    report = scaletest_result.result(output, "validation")
    steps = report.get("steps")
    if not isinstance(steps, list) or not steps:
        raise parsing.bad("the validation has no steps", list(map(str, report)))
    short = [_short(step) for step in steps]
    last = parsing.at(steps[-1], "workers")
    if last != spec.limit:
        failure = Failure.EXIT if report["verdict"]["kind"] == "FAIL" else Failure.INTERRUPTED
        message = f"the validation ended at {last} workers instead of {spec.limit}"
        raise BenchmarkFailed(failure, message, [str(report["verdict"].get("reason", ""))])
    headlines = {"throughput": parsing.number(steps[-1], "throughput_per_s")}
    if parsing.at(steps[-1], "efficiency") is not None:
        headlines["efficiency"] = parsing.number(steps[-1], "efficiency")
    return ToolMeasurement(
        headlines,
        {"verdict": report["verdict"], "steps": short},
        notes=scaletest_result.notes(report),
    )


def _short(step: Any) -> dict[str, Any]:
    names = ("workers", "throughput_per_s", "half_width_per_s", "failures")
    return {name: parsing.at(step, name) for name in names}


KIND = Kind(
    name="Validation",
    plural="validations",
    help="How throughput grows with workers: scaletest validate.",
    spec=ValidationSpec,
    measures="worker",
    layout=lambda spec: (Part("worker", 0, 0),),
    programs=lambda spec: (),
    tasks=tasks,
    parse=parse,
    limit_s=lambda spec: (
        600 + 100 * spec.limit.bit_length() * max(60.0, 30 * spec.seconds, spec.step_time)
    ),
    headlines=(
        Headline("throughput", "1/s", True, "Requests per second with the most workers."),
        Headline(
            "efficiency",
            "",
            True,
            "Throughput of each worker there, relative to that of a single one.",
        ),
    ),
    columns=("limit", "scale", "seconds"),
)
