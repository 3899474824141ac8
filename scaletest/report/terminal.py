"""The summary on a terminal: a table, warnings, the verdict last, where the files are. Under 25 lines for 8 steps."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.law import Choice
from scaletest.analysis.ratio import Ratio
from scaletest.analysis.steps import Step
from scaletest.model import Verdict, VerdictKind

COLOURS = {VerdictKind.PASS: "green", VerdictKind.FAIL: "red", VerdictKind.INVALID: "yellow"}
MAX_ERRORS = 3


def summary(result: Evaluation, console: Console, folder: str) -> None:
    """Print the whole result."""
    plan = result.plan
    console.print(
        f"validate {plan.workload} · up to {plan.limit} workers · at least {plan.scale:g}x wanted per doubling · "
        f"{result.elapsed_s:.0f} s",
        highlight=False,
        soft_wrap=True,
    )
    if result.steps:
        console.print(_table(result.steps))
        console.print("± 95 % interval; times are means over successful requests", style="dim")
    if result.law:
        console.print(Text(law_line(result.law)), soft_wrap=True)
    elif len(result.steps) > 1:
        console.print("law: too few steps to tell (needs 4)", style="dim")
    for line in result.warnings:
        console.print(Text(f"warning: {line}"), soft_wrap=True)
    for group in result.failures[:MAX_ERRORS]:
        console.print(Text(f"error, {group.count} times: {group.error or group.outcome}"), soft_wrap=True)
    console.print(verdict_line(result.verdict), soft_wrap=True)
    if result.verdict.remedy:
        console.print(Text(f"  what to do: {result.verdict.remedy}"), soft_wrap=True)
    console.print(Text(f"saved in {folder}"), soft_wrap=True)


def law_line(choice: Choice) -> str:
    """The scaling law in words, and what could not be told apart for lack of points."""
    law = choice.law
    words = {
        "linear": "linear: nothing shared limits it here",
        "amdahl": f"amdahl: contention {law.contention:.1%}, some work of each request waits for the others",
        "usl": f"usl: contention {law.contention:.1%}, coherency {law.coherency:.2%}",
        "capped": f"a ceiling at {law.ceiling:.3g} requests/s" if math.isfinite(law.ceiling) else "linear",
    }
    few = f" (too few steps to tell from {', '.join(choice.too_few)})" if choice.too_few else ""
    return f"law: {words[law.name]}{few}"


def verdict_line(verdict: Verdict) -> Text:
    """PASS, FAIL or INVALID, in words and in colour, with the reason."""
    line = Text(verdict.kind.value, style=f"bold {COLOURS[verdict.kind]}")
    line.append(f"  {verdict.reason}", style="none")
    return line


def _table(steps: Iterable[Step]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("workers", "requests/s", "ratio", "effic.", "wait", "run", "overhead", "failed"):
        table.add_column(name, justify="right", no_wrap=True)
    for step in steps:
        ratio = step.ratio
        rate = step.throughput
        table.add_row(
            str(step.workers),
            f"{rate.per_s:.3f} ± {_digits(rate.half_width)}",
            _ratio(ratio),
            f"{step.efficiency:.1%}" if step.efficiency is not None else "n/a",
            seconds(step.wait_s),
            seconds(step.run_s),
            seconds(step.overhead_s),
            str(step.failures),
        )
    return table


def seconds(value: float) -> str:
    """A duration with three significant digits and a unit that people read at once."""
    if value <= 0:
        return "0"
    if value < 0.001:
        return f"{value * 1e6:.0f} us"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"


def _ratio(ratio: Ratio | None) -> str:
    if ratio is None:
        return ""
    half = max(ratio.high - ratio.value, ratio.value - ratio.low)
    return f"{ratio.value:.3f} ± {_digits(half)}"


def _digits(value: float) -> str:
    return f"{value:.3f}" if math.isfinite(value) else "n/a"
