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
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.growth import Growth
from scaletest.validation.judging.steps import Step

# Less of a request is shown as 0 %.
LEAST_KNOWN = 0.005
# A law misses a step where it lies farther than this part from the step's interval.
MISSED = 0.05


def law_sentence(result: Evaluation) -> str:
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
        return f"too few steps to tell: {growth.remedies.get('amdahl', 'measure more steps')}"
    few = ""
    if growth.lacking:
        few = f" (too few steps to be sure: {next(iter(growth.remedies.values()))})"
    place = " on each device" if result.plan.compares else ""
    peak, most = growth.peak, ""
    if peak.workers is not None:
        around = ""
        if peak.low is not None and peak.high is not None:
            high = f"{peak.high:.0f}" if math.isfinite(peak.high) else "no limit"
            around = f" [{peak.low:.0f}, {high}]"
        most = (
            f"; throughput is highest with {peak.workers:.0f}{around} workers{place}, {peak.reason}"
        )
    return f"{_law(growth)}{most}{few}{_missed(result)}"


def _missed(result: Evaluation) -> str:
    """The step that the law misses most; "" if it misses none by more than chance."""
    sound = [step for step in result.steps if step.sound and step.throughput.per_s > 0]
    if result.growth.choice is None or not sound:
        return ""
    at = result.growth.choice.law.at

    def missed(step: Step) -> float:
        """By which part of a step's throughput the law lies outside its interval."""
        return abs(_off(at(step.level), step)) - step.throughput.relative

    worst = max(sound, key=missed)
    if missed(worst) <= MISSED:
        return ""
    off = _off(at(worst.level), worst)
    amount = f"{format_percent(abs(off), 0)} {'more' if off > 0 else 'less'}"
    return f"; the law gives {amount} than {plural(worst.workers, 'worker')} did"


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
            most = format_significant(fitted.ceiling)
            if known and known.ceiling:
                most = with_interval(fitted.ceiling, known.ceiling.low, known.ceiling.high)
            return f"a ceiling at {most} requests/s"
    return "linear: no shared bottleneck in the tested range"


def _coefficient(value: float, interval: Estimate | None) -> str:
    """A part of each request with its interval. Where that reaches beyond the whole request, only
    its low end is known.

    A low end that is shown as 0 leaves nothing that is known.
    """
    if interval is None:
        return format_percent(value)
    if interval.high <= 1.0:
        return percent_with_interval(value, interval.low, interval.high, 3)
    return (
        f"{format_percent(interval.low, 0)} or more"
        if interval.low >= LEAST_KNOWN
        else "an unknown part"
    )
