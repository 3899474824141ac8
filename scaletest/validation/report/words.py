"""Sentences about a validation: the same on a terminal, in a page and in a comment."""

from collections.abc import Sequence

from scaletest.render.numbers import (
    percent_between,
    plural,
)
from scaletest.stats.estimate import Estimate
from scaletest.validation.judging.evaluation import Evaluation
from scaletest.validation.judging.steps import Step


def wanted_text(result: Evaluation) -> str:
    """Return what was asked of the run."""
    plan = result.plan
    if plan.compares:
        numbers = ", ".join(map(str, plan.per_device))
        return f"{numbers} workers on each of {plural(plan.devices, 'device')}"
    return f"at least {plan.scale:g}x wanted per doubling up to {plural(plan.limit, 'worker')}"


def workers_label(per_device: int) -> str:
    """Return what an axis across says of its numbers of workers."""
    return "workers on each device" if per_device else "workers"


def intervals_text(steps: Sequence[Step]) -> str:
    """Return which intervals the table shows, of throughput and of ratios where there are any."""
    if any(step.ratio for step in steps):
        return f"± {interval_text(steps)}, 90 % for the ratio"
    return f"± {interval_text(steps)}"


def interval_text(steps: Sequence[Step]) -> str:
    """Return which interval the table shows."""
    if steps and all(step.between for step in steps):
        return f"95 % interval between {len(steps[0].samples) // 2} repeats"
    return "95 % interval within the run"


def best_share_text(result: Evaluation) -> str:
    """Return by how much numbers of workers per device are worse than the best, or ""."""
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
    others = f"; of the throughput with {sharing.leader}: {'; '.join(lines)}" if lines else ""
    return f"best is {sharing.best}{others}"


def share_text(part: Estimate, most: int = 1) -> str:
    """Return a part of 1 with its interval in percent, with `most` decimals at most."""
    return percent_between(part.value, part.low, part.high, most)
