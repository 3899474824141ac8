"""The speed-up of each step as a bar of text, beside what ideal growth would bring."""

from scaletest.render.bars import IDEAL, Bar, bar_lines
from scaletest.render.numbers import format_significant, plural
from scaletest.validation.judging.evaluation import Evaluation


def speedup_bars(result: Evaluation) -> list[str]:
    """Return a bar a step; none without a step of 1 worker to compare with.

    None either where numbers of workers per device are compared.
    """
    steps = result.steps
    if len(steps) < 2 or steps[0].workers > 1 or result.plan.compares:
        return []
    first = steps[0].throughput.per_s
    if not first:
        return []
    bars = []
    for step in steps:
        speedup = step.throughput.per_s / first
        text = f"{format_significant(speedup)}x  {format_significant(step.throughput.per_s)}/s"
        bars.append(Bar(plural(step.workers, "worker"), speedup, text, ideal=step.workers))
    lines = list(bar_lines(bars, full_value=steps[-1].workers))
    if IDEAL in "".join(lines):
        lines[-1] += f"   {IDEAL} ideal"
    return lines
