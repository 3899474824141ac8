"""Results of a set so far, over its repetitions, for its status: bounded in size. Pure.

They are computed from the statuses of the benchmarks, so no stored result is read again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from scaletest.analysis.benchmark_run import BenchmarkRun, evaluate_benchmarks
from scaletest.analysis.benchmark_thresholds import MeasuredPermutation
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.operator.status import Document
from scaletest.render.text import clean
from scaletest.render.units import quantity, quantity_measured

# The whole status may have 16 KiB, of which permutations take 8 KiB at most.
MOST_BYTES, MOST_PERMUTATIONS = 6 * 1024, 100
# The fields of a benchmark's status that this module reads.
NEEDED = ("phase", "failure", "message", "values")


def of(plan: BenchmarkPlan, children: Mapping[str, Document], *, over: bool) -> Document:
    """Fields of the status: results and summary; once the set is over verdict and verdictReason."""
    results: dict[str, BenchmarkResult] = {}
    for name, child in children.items():
        result = _result(name, child.get("status") or {})
        if result is not None:
            results[name] = result
    run = evaluate_benchmarks(plan, results)
    status: Document = {"results": _fitting(run), "summary": _summary(run)}
    if over:
        status |= {
            "verdict": str(run.verdict.kind),
            "verdictReason": clean(run.verdict.reason, 500),
        }
    return status


def _result(name: str, status: Mapping[str, Any]) -> BenchmarkResult | None:
    """The result of a benchmark that has ended, as far as its status has it; None before."""
    phase = status.get("phase")
    if not phase or not BenchmarkPhase(phase).ended:
        return None
    failure, message = Failure(status.get("failure", "")), status.get("message", "")
    return BenchmarkResult(
        name, BenchmarkPhase(phase), status.get("values") or {}, failure=failure, message=message
    )


def _fitting(run: BenchmarkRun) -> list[Document]:
    """All permutations with all numbers, else with texts only, else none: what fits.

    The benchmarks have all numbers.
    """
    if len(run.rows) > MOST_PERMUTATIONS:
        return []
    for with_numbers in (True, False):
        permutations = [_permutation(run, row, with_numbers) for row in run.rows]
        if len(json.dumps(permutations).encode()) <= MOST_BYTES:
            return permutations
    return []


def _permutation(run: BenchmarkRun, row: MeasuredPermutation, with_numbers: bool) -> Document:
    headlines = {}
    for headline in run.headlines:
        if summary := row.summaries.get(headline.name):
            text = quantity_measured(summary.mean, summary.half_width, headline.unit)
            numbers = summary.to_dict() if with_numbers else {}
            headlines[headline.name] = {"text": text, **numbers}
    name = clean(row.name, 120)
    return {
        "permutation": name,
        "succeeded": row.good,
        "failed": row.failed,
        "headlines": headlines,
    }


def _summary(run: BenchmarkRun) -> str:
    """The first headline: with its interval, or its range over all permutations."""
    if not run.headlines:
        return ""
    headline = run.headlines[0]
    summaries = [row.summaries[headline.name] for row in run.rows if headline.name in row.summaries]
    if len(summaries) == 1:
        return quantity_measured(summaries[0].mean, summaries[0].half_width, headline.unit)
    means = [summary.mean for summary in summaries]
    return f"{quantity(min(means), headline.unit)} to {quantity(max(means), headline.unit)}"
