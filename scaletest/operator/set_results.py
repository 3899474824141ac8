"""What a set has measured so far, over repetitions, for its status: bounded in size. Pure.

It is told from the benchmarks' own statuses, so no result is fetched again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scaletest.archive.benchmarks import StoredBenchmarks
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.operator.status import Document
from scaletest.render.text import clean
from scaletest.render.units import quantity, quantity_measured
from scaletest.report.benchmarks import BenchmarkRun, Row
from scaletest.report.benchmarks import of as summarised

# The whole status may have 16 KiB; permutations have 8 of them at most.
MOST_BYTES, MOST_ROWS = 6 * 1024, 100
# what is read of a benchmark's status
NEEDED = ("phase", "failure", "message", "values")


def of(plan: BenchmarkPlan, children: Mapping[str, Document], *, over: bool) -> Document:
    """results: one row a permutation, summary: the first headline; verdict and verdictReason once it is over."""
    ended = {name: one for name, child in children.items() if (one := _ended(name, child.get("status") or {}))}
    run = summarised(plan.name, "", StoredBenchmarks(plan, {}, ended, {}))
    found: Document = {"results": _fitting(run), "summary": _summary(run)}
    if over:
        found |= {"verdict": str(run.verdict.kind), "verdictReason": clean(run.verdict.reason, 500)}
    return found


def _ended(name: str, said: Mapping[str, Any]) -> BenchmarkResult | None:
    phase = said.get("phase")
    if not phase or not BenchmarkPhase(phase).ended:
        return None
    failure = Failure(said.get("failure", ""))
    return BenchmarkResult(
        name, BenchmarkPhase(phase), said.get("values") or {}, failure=failure, message=said.get("message", "")
    )


def _fitting(run: BenchmarkRun) -> list[Document]:
    """All permutations with all numbers, or without some of these, or none: whoever wants them reads the benchmarks."""
    for numbers in (True, False) if len(run.rows) <= MOST_ROWS else ():
        rows = [_row(run, row, numbers) for row in run.rows]
        if len(json.dumps(rows).encode()) <= MOST_BYTES:
            return rows
    return []


def _row(run: BenchmarkRun, row: Row, numbers: bool) -> Document:
    headlines = {}
    for one in run.headlines:
        if summary := row.summaries.get(one.name):
            text = quantity_measured(summary.mean, summary.half_width, one.unit)
            headlines[one.name] = {"text": text, **(summary.to_dict() if numbers else {})}
    what = clean(row.what, 120)
    return {"permutation": what, "succeeded": row.good, "failed": row.failed, "headlines": headlines}


def _summary(run: BenchmarkRun) -> str:
    """The first headline: with its interval, or over all permutations."""
    if not run.headlines:
        return ""
    one = run.headlines[0]
    rows = [row.summaries[one.name] for row in run.rows if one.name in row.summaries]
    if len(rows) == 1:
        return quantity_measured(rows[0].mean, rows[0].half_width, one.unit)
    means = [row.mean for row in rows]
    return f"{quantity(min(means), one.unit)} to {quantity(max(means), one.unit)}"
