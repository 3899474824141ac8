"""The sentence about the law of a run: what limits growth, where the peak is, and how sure."""

import math

from scaletest.render.numbers import (
    format_percent,
    format_significant,
    percent_with_interval,
    plural,
    with_interval,
)
from scaletest.stats.estimate import Estimate
from scaletest.stats.law import Law
from scaletest.stats.law_interval import LawInterval
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step

# A law that lies farther beyond the interval of a step misses it.
LEAST_DISTANCE = 0.05
# A share that is smaller is shown as 0 %.
LEAST_SHARE = 0.005


def law_sentence(result: Evaluation) -> str:
    """Return what limits growth: the law with its intervals, the peak, and why it is not sure.

    "" when one step alone leaves nothing to tell.
    """
    growth = result.growth
    if growth.choice is None and len(result.steps) < 2:
        return ""
    vague = [str(step.level) for step in result.steps if not step.throughput.enough]
    if vague:
        return f"unknown: too few requests with {', '.join(vague)} workers"
    if growth.choice is None:
        return f"too few steps to tell: {growth.remedies.get('amdahl', 'measure more steps')}"
    law = growth.choice.law
    sentence = describe_law(law, growth.interval)
    peak = growth.peak
    if peak.workers is not None:
        interval = ""
        if peak.low is not None and peak.high is not None:
            high = f"{peak.high:.0f}" if math.isfinite(peak.high) else "no limit"
            interval = f" [{peak.low:.0f}, {high}]"
        place = " on each device" if result.plan.compares else ""
        sentence += f"; it peaks at {peak.workers:.0f}{interval} workers{place}, {peak.reason}"
    if growth.lacking:
        sentence += f" (too few steps to be sure: {next(iter(growth.remedies.values()))})"
    # the step that the law misses most
    sound = [step for step in result.steps if step.sound and step.throughput.per_s > 0]
    missed = max(sound, key=lambda step: _distance(law, step), default=None)
    if missed and _distance(law, missed) > LEAST_DISTANCE:
        miss = law.at(missed.level) / missed.throughput.per_s - 1.0
        more_or_less = "more" if miss > 0 else "less"
        sentence += (
            f"; the law gives {format_percent(abs(miss), 0)} {more_or_less} than"
            f" {plural(missed.workers, 'worker')} did"
        )
    return sentence


def _distance(law: Law, step: Step) -> float:
    """Return how far a law lies beyond the interval of a step, as a share of its throughput."""
    miss = law.at(step.level) / step.throughput.per_s - 1.0
    return abs(miss) - step.throughput.relative


def describe_law(
    law: Law, interval: LawInterval | None, members: str = "workers", unit: str = "requests/s"
) -> str:
    """Return what the law says of growth. members: what was doubled. unit: of the throughput."""
    contention = _coefficient_text(law.contention, interval.contention if interval else None)
    coherency = _coefficient_text(law.coherency, interval.coherency if interval else None)
    match law.name:
        case "amdahl":
            return f"{contention} of the work is serialised (Amdahl's law)"
        case "usl":
            return (
                f"{contention} of the work is serialised, and each pair of {members} adds"
                f" {coherency} (universal scalability law)"
            )
        case "capped" if math.isfinite(law.ceiling):
            ceiling = format_significant(law.ceiling)
            if interval and interval.ceiling:
                ends = interval.ceiling
                ceiling = with_interval(law.ceiling, ends.low, ends.high)
            return f"levels off at {ceiling} {unit}"
    return "linear, no shared bottleneck found"


def _coefficient_text(value: float, interval: Estimate | None) -> str:
    """Return a part of each request with its interval.

    Where that reaches beyond the whole request, only its low end is known. One that is shown as 0
    leaves nothing that is known.
    """
    if interval is None:
        return format_percent(value)
    if interval.high <= 1.0:
        return percent_with_interval(value, interval.low, interval.high, 3)
    if interval.low >= LEAST_SHARE:
        return f"{format_percent(interval.low, 0)} or more"
    return "an unknown share"
