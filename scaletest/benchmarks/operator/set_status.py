"""Compute the status of a set: counts, results so far over repetitions, verdict. Pure.

Results are computed from the statuses of the benchmarks, so that no stored result is read again.
"""

import json
from collections.abc import Mapping
from typing import Any

from scaletest.benchmarks.documents import BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.judging.evaluation import BenchmarkRun, evaluate_benchmarks
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.objects import manifests, pod_status
from scaletest.benchmarks.operator import reporting, status
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.cluster.objects import Document
from scaletest.model import VerdictKind
from scaletest.render import numbers, text

# Room in the status for the results of the permutations; they are left out where they are longer.
RESULTS_BYTES = 12 * 1024


def status_of(
    document: Document,
    plan: BenchmarkPlan,
    created: Mapping[str, Document],
    now_s: float,
) -> Document:
    """Return the status of a set. created: its benchmarks by name, as far as there are any."""
    old_status = document.get("status") or {}
    # a set that stopped when its warm-up failed measured nothing
    names = [benchmark.name for benchmark in plan.benchmarks if not benchmark.warm_up]
    phases = [phase_of(created[name]) for name in names if name in created]
    succeeded, failed = phases.count("Completed"), phases.count("Failed")
    running = sum(not reporting.has_ended(child) for child in created.values())
    is_over = not running and (succeeded + failed == plan.count or is_stopped(plan, created))
    if is_over:
        phase = "Completed" if succeeded == plan.count else "Failed"
    elif document["spec"].get("paused") and not running:
        phase = "Paused"
    else:
        phase = "Running"
    new_status: Document = {
        "phase": phase,
        "permutationCount": len(plan.permutations),
        "count": plan.count,
        "benchmarksCreated": len(created),
        "running": running,
        "succeeded": succeeded,
        "failed": failed,
        "startedAt": old_status.get("startedAt") or status.write_time(now_s),
    }
    # computed only when another benchmark has ended
    if is_over or any(new_status[key] != old_status.get(key) for key in ("succeeded", "failed")):
        new_status |= measured_so_far(plan, created, is_over=is_over)
    else:
        new_status |= {key: old_status[key] for key in ("results", "summary") if key in old_status}
    if is_over:
        new_status["finishedAt"] = status.write_time(now_s)
    new_status["conditions"] = status.make_conditions(
        old_status,
        {"Complete": phase == "Completed", "Failed": phase == "Failed"},
        phase,
        f"{succeeded} succeeded, {failed} failed, of {plan.count}",
        now_s,
    )
    return new_status


def refused_status(old_status: Mapping[str, Any], message: str, now_s: float) -> Document:
    """Return the status of a set that cannot be measured."""
    return {
        "phase": "Failed",
        "finishedAt": status.write_time(now_s),
        "conditions": status.make_conditions(
            old_status, {"Complete": False, "Failed": True}, "refused", message, now_s
        ),
        "verdict": str(VerdictKind.INVALID),
        "verdictReason": message[:500],
    }


def hindered_status(old_status: Mapping[str, Any], message: str, now_s: float) -> Document:
    """Return the status while a missing right or a name in use may be corrected; later, refused."""
    # the last condition tells since when the set is hindered
    conditions = status.make_conditions(
        old_status,
        {"Complete": False, "Failed": False, "Hindered": True},
        "hindered",
        message,
        now_s,
    )
    if (
        now_s - pod_status.parse_time_s(conditions[-1]["lastTransitionTime"])
        > manifests.START_LIMIT_S
    ):
        return refused_status(old_status, message, now_s)
    return {"phase": old_status.get("phase") or "Pending", "conditions": conditions}


def is_stopped(plan: BenchmarkPlan, created: Mapping[str, Document]) -> bool:
    """Check whether a failure ends the set."""
    return plan.stop_on_failure and any(phase_of(child) == "Failed" for child in created.values())


def phase_of(child: Mapping[str, Any]) -> str:
    """Return the phase of a benchmark, "" before its first one."""
    return str((child.get("status") or {}).get("phase", ""))


def measured_so_far(
    plan: BenchmarkPlan, children: Mapping[str, Document], *, is_over: bool
) -> Document:
    """Return results and summary; once the set is over also verdict and verdictReason."""
    results = {}
    for name, child in children.items():
        if reporting.has_ended(child):
            # as much of it as the status of the benchmark has
            current = child["status"]
            results[name] = BenchmarkResult(
                name,
                BenchmarkPhase(current["phase"]),
                current.get("values") or {},
                failure=Failure(current.get("failure", "")),
                message=current.get("message", ""),
            )
    run = evaluate_benchmarks(plan, results)
    fields: Document = {"results": _fit_permutations(run), "summary": _summarise(run)}
    if is_over:
        fields["verdict"] = str(run.verdict.kind)
        fields["verdictReason"] = text.clean_text(run.verdict.reason, 500)
    return fields


def _fit_permutations(run: BenchmarkRun) -> list[Document]:
    """Return the results of all permutations, or none where they are too long for a status.

    As in the status of a benchmark, headlines are texts for people, and values numbers.
    """
    permutations: list[Document] = []
    for row in run.rows:
        headlines = {}
        for headline in run.headlines:
            if summary := row.summaries.get(headline.name):
                headlines[headline.name] = numbers.quantity_with_half_width(
                    summary.mean, summary.half_width, headline.unit
                )
        permutations.append(
            {
                "permutation": text.clean_text(row.name, 120),
                "succeeded": row.succeeded,
                "failed": row.failed,
                "headlines": headlines,
                "values": {name: summary.mean for name, summary in row.summaries.items()},
            }
        )
    is_short = len(json.dumps(permutations)) <= RESULTS_BYTES
    return permutations if is_short else []


def _summarise(run: BenchmarkRun) -> str:
    """Write the first headline: with its interval, or its range over all permutations."""
    if not run.headlines:
        return ""
    headline = run.headlines[0]
    summaries = [row.summaries[headline.name] for row in run.rows if headline.name in row.summaries]
    if len(summaries) == 1:
        return numbers.quantity_with_half_width(
            summaries[0].mean, summaries[0].half_width, headline.unit
        )
    means = [summary.mean for summary in summaries]
    return (
        f"{numbers.format_quantity(min(means), headline.unit)} to"
        f" {numbers.format_quantity(max(means), headline.unit)}"
    )
