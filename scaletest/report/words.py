"""What is said about a run in sentences: the same on a terminal, in a page and in a comment."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scaletest.analysis.doubling import Ratio
from scaletest.analysis.estimate import Distribution, Estimate, Percentile, samples_needed
from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.growth import Growth
from scaletest.analysis.scaling import Knee, Peak
from scaletest.analysis.steps import Step
from scaletest.analysis.stopping import way
from scaletest.analysis.throughput import Throughput
from scaletest.model import Plan, Verdict, VerdictKind
from scaletest.render.numbers import (
    NOTHING,
    between,
    measured,
    percent,
    percent_between,
    plural,
    significant,
)

SIGNS = {
    VerdictKind.PASS: "✓",
    VerdictKind.FAIL: "✗",
    VerdictKind.INVALID: "?",
    VerdictKind.RUNNING: "…",
}
# Less of a request is shown as 0 %.
LEAST_KNOWN = 0.005
QUANTILES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99))


def heading(result: Evaluation) -> str:
    """What was run."""
    return f"validate {result.plan.workload}"


def machine(environment: Mapping[str, Any]) -> str:
    """Where it was run, in a few words; "" when that is not on record."""
    parts = [str(environment[key]) for key in ("host", "processor") if environment.get(key)]
    if environment.get("cores"):
        parts.append(f"{environment['cores']} cores")
    devices = environment.get("devices")
    if isinstance(devices, list) and devices:
        parts.append(plural(len(devices), "device"))
    return ", ".join(parts)


def command_line(environment: Mapping[str, Any]) -> str:
    """What was typed to make a run, quoted for a shell; "" when it is not on record."""
    typed = environment.get("command_line")
    if not isinstance(typed, list) or not typed:
        return ""
    program, *arguments = map(str, typed)
    return shlex.join([Path(program).name, *arguments])


def warnings(verdict: Verdict, interrupted: str, lines: Sequence[str]) -> list[str]:
    """The warnings of a run; first that it was interrupted, where the verdict does not say so."""
    if not interrupted or interrupted in verdict.reason or verdict.kind is VerdictKind.RUNNING:
        return list(lines)
    return [f"interrupted: {interrupted}; the verdict rests on what was measured before", *lines]


def wanted(result: Evaluation) -> str:
    """What was asked of the run."""
    plan = result.plan
    if plan.compares:
        numbers = ", ".join(map(str, plan.per_device))
        return f"{numbers} workers on each of {plural(plan.devices, 'device')}"
    return f"at least {plan.scale:g}x wanted per doubling up to {plural(plan.limit, 'worker')}"


def measuring(plan: Plan, repeat: int) -> str:
    """Which measuring of a step it is: a way or a repeat; "" where each step is measured once."""
    if plan.mirrored:
        return way(repeat)
    return f"repeat {repeat + 1}" if plan.repeats > 1 else ""


def interval(steps: Sequence[Step]) -> str:
    """Which interval the table shows."""
    if any(step.mirrored and len(step.samples) > 1 for step in steps):
        return "95 % interval of both ways"
    if steps and all(step.between for step in steps):
        return f"95 % interval between {len(steps[0].samples)} repeats"
    return "95 % interval within the run"


def law(result: Evaluation) -> str:
    """What limits growth: the law with its intervals, where the peak is, and what could not be told
    apart and why.

    "" when one step alone leaves nothing to tell.
    """
    growth = result.growth
    if growth.choice is None:
        remedy = (
            growth.lacking["amdahl"].remedy if "amdahl" in growth.lacking else "measure more steps"
        )
        return f"too few steps to tell: {remedy}" if len(result.steps) > 1 else ""
    few = ""
    if growth.lacking:
        names = ", ".join(growth.lacking)
        few = f" (too few steps to tell from {names}: {next(iter(growth.lacking.values())).remedy})"
    return _law(growth) + _peak(growth.peak, "workers" + at_device(result)) + few


def at_device(result: Evaluation) -> str:
    """What follows the word workers where a run compares numbers of them on each device."""
    return " on each device" if result.plan.compares else ""


def _law(growth: Growth) -> str:
    assert growth.choice is not None
    fitted, interval = growth.choice.law, growth.interval
    if fitted.name in ("amdahl", "usl"):
        contention = _coefficient(fitted.contention, interval.contention if interval else None)
        if fitted.name == "amdahl":
            return (
                f"amdahl: contention {contention}, some work of each request waits for the others"
            )
        coherency = _coefficient(fitted.coherency, interval.coherency if interval else None)
        return f"usl: contention {contention}, coherency {coherency}"
    if fitted.name == "capped" and math.isfinite(fitted.ceiling):
        ceiling = interval.ceiling if interval else None
        most = (
            between(fitted.ceiling, ceiling.low, ceiling.high)
            if ceiling
            else significant(fitted.ceiling)
        )
        return f"a ceiling at {most} requests/s"
    return "linear: nothing shared limits it here"


def _coefficient(value: float, interval: Estimate | None) -> str:
    """A part of each request with its interval. Where that reaches beyond the whole request, only
    its low end is known.

    A low end that is shown as 0 leaves nothing that is known.
    """
    if interval is None:
        return percent(value)
    if interval.high <= 1.0:
        return percent_between(value, interval.low, interval.high, 3)
    return f"{percent(interval.low, 0)} or more" if interval.low >= LEAST_KNOWN else "unknown"


def _peak(peak: Peak, workers: str) -> str:
    if peak.workers is None:
        return ""
    around = ""
    if peak.low is not None and peak.high is not None:
        around = (
            f" [{peak.low:.0f}, {peak.high:.0f}]"
            if math.isfinite(peak.high)
            else f" [{peak.low:.0f}, no limit]"
        )
    return f"; throughput is highest with {peak.workers:.0f}{around} {workers}, {peak.reason}"


KNEES = {
    "kneedle": "the point farthest above the chord of the curve (Kneedle)",
    "efficiency": "the last number of workers at 80 % efficiency or more",
    "marginal": "the last before a step that brings less than half of the ideal gain",
}


def knee(point: Knee) -> str:
    """Where a knee lies, with the ends that the intervals allow."""
    if point.workers is None:
        return "none"
    about = f"{point.workers}"
    if point.low is not None and point.high is not None and point.low < point.high:
        about = f"{point.workers} [{point.low}, {point.high}]"
    return about if point.reached else f"{about} or more"


def rate(step: Step) -> str:
    """Throughput with its interval."""
    return _rate(step.throughput)


def work(step: Step, name: str) -> str:
    """Work per second, as frames/s, with its interval."""
    return _rate(step.work[name]) if name in step.work else NOTHING


def fair(step: Step, group: str) -> str:
    """How much more the busiest of a group did than the idlest; "" where there is only one."""
    fairness = step.fairness.get(group)
    return significant(fairness.ratio) if fairness else ""


def shares(result: Evaluation) -> str:
    """Which numbers of workers per device are worse than the best, and by how much, or ""."""
    sharing = result.sharing
    if not sharing or sharing.best is None:
        return ""
    lines = []
    for candidate in sharing.candidates:
        if candidate.excluded:
            lines.append(f"{candidate.per_device}: {candidate.excluded}")
        elif candidate.relative and candidate.per_device != sharing.leader:
            part = candidate.relative
            share = percent_between(part.value, part.low, part.high)
            lines.append(f"{candidate.per_device}: {share}")
    others = f"; of the throughput with {sharing.leader}: {'; '.join(lines)}" if lines else ""
    return f"best is {sharing.best}{others}"


def _rate(throughput: Throughput) -> str:
    return measured(throughput.per_s, throughput.half_width) if throughput.per_s > 0 else NOTHING


def ratio(estimate: Ratio | None) -> str:
    """A ratio with its 90 % interval as ±: the wider side of it."""
    return (
        measured(estimate.value, max(estimate.high - estimate.value, estimate.value - estimate.low))
        if estimate
        else ""
    )


def quantile(distribution: Distribution, name: str) -> Percentile | None:
    """p50, p90, p95 or p99 of a distribution; None when it holds too few."""
    percentile = getattr(distribution, name)
    assert percentile is None or isinstance(percentile, Percentile)
    return percentile


def common_quantile(steps: Sequence[Step], highest: str = "p95") -> str:
    """The highest percentile up to `highest` that every step can report, so that rows compare."""
    names = [name for name, _ in QUANTILES]
    for name in reversed(names[: names.index(highest) + 1]):
        if all(quantile(step.run, name) for step in steps if step.run.count):
            return name
    return names[0]


def needs(name: str) -> int:
    """How many requests a percentile needs."""
    return samples_needed(dict(QUANTILES)[name])


def stops(step: Step) -> str:
    """Why each measuring of the step ended."""
    return ", ".join(
        dict.fromkeys(sample.measurement.stop for sample in step.samples if sample.measurement.stop)
    )


def measured_s(step: Step) -> float:
    """Seconds under load, of all measurings together."""
    return sum(sample.measurement.measured_s for sample in step.samples)
