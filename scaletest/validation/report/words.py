"""Sentences about a validation: the same on a terminal, in a page and in a comment."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scaletest.causes.causes import ALONE, NO_CAUSE, Cause, Causes
from scaletest.render.numbers import (
    NOTHING,
    between,
    measured,
    percent,
    percent_between,
    plural,
    significant,
)
from scaletest.stats.estimate import Estimate, samples_needed
from scaletest.stats.scaling import Peak
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.growth import Growth
from scaletest.validation.judging.ratio import Ratio
from scaletest.validation.judging.steps import Step

# Less of a request is shown as 0 %.
LEAST_KNOWN = 0.005
# A law misses a step where it lies farther than this part from the step's interval.
MISSED = 0.05
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
CONFIRMED = {True: "confirmed", False: "contradicted", None: ""}


def wanted(result: Evaluation) -> str:
    """What was asked of the run."""
    plan = result.plan
    if plan.compares:
        numbers = ", ".join(map(str, plan.per_device))
        return f"{numbers} workers on each of {plural(plan.devices, 'device')}"
    return f"at least {plan.scale:g}x wanted per doubling up to {plural(plan.limit, 'worker')}"


def workers_label(per_device: int) -> str:
    """What an axis across says of its numbers of workers."""
    return "workers on each device" if per_device else "workers"


def intervals(steps: Sequence[Step]) -> str:
    """Which intervals the table shows, of throughput and of ratios where there are any."""
    if any(step.ratio for step in steps):
        return f"± {interval(steps)}, 90 % for the ratio"
    return f"± {interval(steps)}"


def interval(steps: Sequence[Step]) -> str:
    """Which interval the table shows."""
    if steps and all(step.between for step in steps):
        return f"95 % interval between {len(steps[0].samples) // 2} repeats"
    return "95 % interval within the run"


def law(result: Evaluation) -> str:
    """What limits growth: the law with its intervals, where the peak is, and why it is not sure.

    "" when one step alone leaves nothing to tell.
    """
    growth = result.growth
    if growth.choice is None and len(result.steps) < 2:
        return ""
    vague = [str(step.level) for step in result.steps if not step.throughput.enough]
    if vague:
        return f"unknown, since the throughput is with {', '.join(vague)} workers"
    if growth.choice is None:
        remedy = growth.remedies.get("amdahl", "measure more steps")
        return f"too few steps to tell: {remedy}"
    few = ""
    if growth.lacking:
        few = f" (too few steps to be sure: {next(iter(growth.remedies.values()))})"
    place = " on each device" if result.plan.compares else ""
    missed = "".join(f"; {line}" for line in _missed(result))
    return f"{_law(growth)}{_peak(growth.peak, f'workers{place}')}{few}{missed}"


def _missed(result: Evaluation) -> list[str]:
    """The step that the law misses most, if it misses any by more than chance."""
    sound = [step for step in result.steps if step.sound and step.throughput.per_s > 0]
    if result.growth.choice is None or not sound:
        return []
    at = result.growth.choice.law.at

    def missed(step: Step) -> float:
        """By which part of a step's throughput the law lies outside its interval."""
        return abs(_off(at(step.level), step)) - step.throughput.relative

    worst = max(sound, key=missed)
    if missed(worst) <= MISSED:
        return []
    off = _off(at(worst.level), worst)
    amount = f"{percent(abs(off), 0)} {'more' if off > 0 else 'less'}"
    return [f"the law gives {amount} than {plural(worst.workers, 'worker')} did"]


def _off(fitted: float, step: Step) -> float:
    """How far a fitted throughput lies from what a step did, as a part of that."""
    return fitted / step.throughput.per_s - 1.0


def _law(growth: Growth) -> str:
    assert growth.choice is not None
    fitted, known = growth.choice.law, growth.interval
    contention = _coefficient(fitted.contention, known.contention if known else None)
    coherency = _coefficient(fitted.coherency, known.coherency if known else None)
    match fitted.name:
        case "amdahl":
            return (
                f"contention: {contention} of the work is done by one worker at a time (Amdahl's"
                " law)"
            )
        case "usl":
            return (
                f"contention and coherency: {contention} of the work is done by one worker at a"
                f" time, and each pair of workers adds {coherency} (universal scalability law)"
            )
        case "capped" if math.isfinite(fitted.ceiling):
            most = significant(fitted.ceiling)
            if known and known.ceiling:
                most = between(fitted.ceiling, known.ceiling.low, known.ceiling.high)
            return f"a ceiling at {most} requests/s"
    return "linear: no shared bottleneck in the tested range"


def _coefficient(value: float, interval: Estimate | None) -> str:
    """A part of each request with its interval. Where that reaches beyond the whole request, only
    its low end is known.

    A low end that is shown as 0 leaves nothing that is known.
    """
    if interval is None:
        return percent(value)
    if interval.high <= 1.0:
        return percent_between(value, interval.low, interval.high, 3)
    return (
        f"{percent(interval.low, 0)} or more" if interval.low >= LEAST_KNOWN else "an unknown part"
    )


def _peak(peak: Peak, workers: str) -> str:
    if peak.workers is None:
        return ""
    around = ""
    if peak.low is not None and peak.high is not None:
        high = f"{peak.high:.0f}" if math.isfinite(peak.high) else "no limit"
        around = f" [{peak.low:.0f}, {high}]"
    return f"; throughput is highest with {peak.workers:.0f}{around} {workers}, {peak.reason}"


def rate(step: Step, figure: str = "") -> str:
    """Throughput with its interval; of a figure of work, as frames/s, where one is named."""
    per_s = step.work.get(figure) if figure else step.throughput
    return measured(per_s.per_s, per_s.half_width) if per_s and per_s.per_s > 0 else NOTHING


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
        part = candidate.relative
        if candidate.excluded:
            lines.append(f"{candidate.per_device}: {candidate.excluded}")
        elif part and candidate.per_device != sharing.leader:
            lines.append(f"{candidate.per_device}: {share(part)}")
    others = f"; of the throughput with {sharing.leader}: {'; '.join(lines)}" if lines else ""
    return f"best is {sharing.best}{others}"


def ratio(estimate: Ratio | None) -> str:
    """A ratio with its 90 % interval as ±: the wider side of it."""
    if estimate is None:
        return ""
    wider = max(estimate.high - estimate.value, estimate.value - estimate.low)
    return measured(estimate.value, wider)


def common_quantile(steps: Sequence[Step]) -> str:
    """The highest percentile up to p95 that every step can report, so that rows compare."""
    distributions = [step.run for step in steps if step.run.count]
    for name in ("p95", "p90"):
        if all(getattr(times, name) for times in distributions):
            return name
    return "p50"


def needs(name: str) -> int:
    """How many requests a percentile needs."""
    return samples_needed(QUANTILES[name])


def stops(step: Step) -> str:
    """Why each measuring of the step ended."""
    reasons = (sample.measurement.stop for sample in step.samples)
    return ", ".join(dict.fromkeys(filter(None, reasons)))


def measured_s(step: Step) -> float:
    """Seconds under load, of all measurings together."""
    return sum(sample.measurement.measured_s for sample in step.samples)


def doubling(causes: Causes) -> str:
    """Between which steps it is that something grew."""
    return f"{causes.before} to {causes.after} workers"


def grew(causes: Causes | None) -> bool:
    """Whether there is anything to say of what limits the run."""
    return causes is not None and causes.headline not in NO_CAUSE


def note(causes: Causes) -> str:
    """What a reader must know of the causes: why there are none, and what they do not hold."""
    lines = []
    if causes.headline == ALONE:
        lines.append("One step does not tell what grows with the workers.")
    elif not grew(causes):
        lines.append(f"From {doubling(causes)} {causes.headline}.")
    elif causes.headline:
        lines.append(f"The cause is {causes.headline}.")
    if causes.slow:
        slow = causes.slow.sentence
        lines.append(f"{slow[0].upper()}{slow[1:]}; {causes.slow.remedy}.")
    if causes.covered < 1.0:
        lines.append(
            f"{causes.covered:.0%} of the requests say where their time went; the others are left"
            " out."
        )
    return " ".join(lines)


def share(part: Estimate, most: int = 1) -> str:
    """A part of 1 with its interval in percent, with `most` decimals at most."""
    return percent_between(part.value, part.low, part.high, most)


def evidence(cause: Cause, most: int | None = None) -> str:
    """What the nodes' resources did, and whether that confirms the cause, as in confirmed: 2.0 of 2
    cores are busy; "" without any.
    """
    measured_parts = "; ".join(cause.evidence[:most])
    confirmed = CONFIRMED[cause.confirmed]
    return f"{confirmed}: {measured_parts}" if confirmed and measured_parts else measured_parts
