"""Sentences and bars of text about a validation: the same in every form of its report."""

from collections.abc import Sequence

from scaletest.causes.statement import cause_statement
from scaletest.render.bars import IDEAL, Bar, bar_lines
from scaletest.render.numbers import format_significant, percent_with_interval, plural
from scaletest.stats.estimate import Estimate
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step


def wanted_text(result: Evaluation) -> str:
    """Return the scaling that was wanted of the run."""
    plan = result.plan
    if plan.compares:
        numbers = ", ".join(map(str, plan.per_device))
        return f"{numbers} workers on each of {plural(plan.devices, 'device')}"
    return f"at least {plan.scale:g}x wanted per doubling up to {plural(plan.limit, 'worker')}"


def statement_text(result: Evaluation) -> str:
    """Return the answer of a run in one sentence: its main cause, else how far it scales.

    "" where it shows neither, or numbers of workers per device are compared.
    """
    if result.limits and (statement := cause_statement(result.limits)):
        return statement
    scaling = result.growth.scaling
    if len(scaling) < 2 or result.plan.compares:
        return ""
    first, last = scaling[0], scaling[-1]
    times = f"{format_significant(last.speedup.value)}x"
    return f"{plural(last.workers, 'worker')} do {times} the work of {first.workers}"


def gain_texts(result: Evaluation) -> list[str]:
    """Return what the run would bring without its main cause, and what requests cost."""
    lines = []
    gain, cost = result.gain, result.cost
    if gain and result.limits:
        without = gain.without
        lines.append(
            f"Without it about {format_significant(without.value, 2)}x"
            f" [{format_significant(without.low, 2)}, {format_significant(without.high, 2)}]"
            f" instead of {format_significant(gain.speedup.value, 2)}x."
        )
    if cost:
        price = format_significant(cost.per_thousand.value)
        lost = ""
        if cost.lost.low > 0:
            lost = f", {format_significant(cost.lost.value)} of that is lost to poor scaling"
        lines.append(
            f"1,000 requests cost {price} with {plural(cost.workers, 'worker')} at"
            f" {result.plan.price:g}/h each{lost}."
        )
    return lines


def workers_label(per_device: int) -> str:
    """Return the label of an axis of numbers of workers."""
    return "workers on each device" if per_device else "workers"


def intervals_text(steps: Sequence[Step]) -> str:
    """Return which intervals a table of steps shows, of rates and ratios; "" without a step."""
    if not steps:
        return ""
    ratios = " (90 % for ratios)" if any(step.ratio for step in steps) else ""
    return f"± is the {rate_interval_text(steps)}{ratios}"


def rate_interval_text(steps: Sequence[Step]) -> str:
    """Return which interval of throughput a report shows."""
    if steps and all(step.between for step in steps):
        return f"95 % confidence interval between {len(steps[0].samples) // 2} repeats"
    return "95 % confidence interval over both passes"


def best_share_text(result: Evaluation) -> str:
    """Return which number of workers per device is best, and how others compare; "" without one."""
    sharing = result.sharing
    if not sharing or sharing.best is None:
        return ""
    lines = []
    for candidate in sharing.candidates:
        part = candidate.relative
        if candidate.excluded:
            lines.append(f"{candidate.per_device}: {candidate.excluded}")
        elif part and candidate.per_device != sharing.leader:
            lines.append(f"{candidate.per_device}: {share_text(part)}")
    best = f"best is {sharing.best}"
    return f"{best}; of the throughput with {sharing.leader}: {'; '.join(lines)}" if lines else best


def share_text(part: Estimate, most: int = 1) -> str:
    """Return a part of 1 with its interval in percent, with `most` decimals at most."""
    return percent_with_interval(part.value, part.low, part.high, most)


def speedup_bars(result: Evaluation) -> list[str]:
    """Return the speed-up of each step as a bar of text, beside what ideal growth would bring.

    No line without a step of 1 worker to compare with, or in a run that compares numbers of workers
    per device.
    """
    steps = result.steps
    if len(steps) < 2 or steps[0].workers > 1 or result.plan.compares:
        return []
    per_s_of_one = steps[0].throughput.per_s
    if not per_s_of_one:
        return []
    bars = []
    for step in steps:
        if not step.throughput.per_s and not step.failures:
            continue  # nothing was measured, as after an interruption
        speedup = step.throughput.per_s / per_s_of_one
        text = f"{format_significant(speedup)}x  {format_significant(step.throughput.per_s)}/s"
        bars.append(Bar(plural(step.workers, "worker"), speedup, text, ideal=step.workers))
    lines = list(bar_lines(bars, full_value=steps[-1].workers))
    if IDEAL in "".join(lines):
        lines[-1] += f"   {IDEAL} ideal"
    return lines
