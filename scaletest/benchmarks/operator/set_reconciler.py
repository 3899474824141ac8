"""One reconcile pass over one set: store its plan once, and create the next benchmarks.

Benchmarks have the names of the plan, so none is created twice; the plan holds what samples and
selectors chose.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.benchmarks.benchmark_set import BenchmarkPlan, SetSpec
from scaletest.benchmarks.judging.benchmark_run import (
    BenchmarkRun,
    MeasuredPermutation,
    evaluate_benchmarks,
)
from scaletest.benchmarks.kinds.kind import Failure
from scaletest.benchmarks.kinds.registry import API_VERSION
from scaletest.benchmarks.measure.operator_executor import nodes_of, resource
from scaletest.benchmarks.measure.runner import startable
from scaletest.benchmarks.objects.manifests import START_S
from scaletest.benchmarks.objects.owned_objects import (
    MOST_UNPACKED,
    Damaged,
    NameConflict,
    owned,
    packed,
    zipped,
)
from scaletest.benchmarks.objects.pod_status import NAME, seconds
from scaletest.benchmarks.operator import status
from scaletest.benchmarks.operator.benchmark_reconciler import (
    TOGETHER,
    ReconcileSettings,
    ended,
    owner_reference,
    report,
)
from scaletest.benchmarks.operator.status import Document
from scaletest.benchmarks.sweep import plan_of
from scaletest.cluster.connection import Refused
from scaletest.cluster.objects import CONFIG_MAPS, Busy, Documents, Missing, Resource
from scaletest.model import VerdictKind, checks, wire
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.model.file_documents import read_written
from scaletest.model.wording import as_options
from scaletest.render.numbers import quantity, quantity_measured
from scaletest.render.text import clean

SETS = Resource("BenchmarkSet", f"/apis/{API_VERSION}", "benchmarksets", True)
SET, PLAN, HINDERED = "scaletest.dev/set", "plan.json.gz", "Hindered"
# The API server takes objects of up to about 1.5 MB.
MOST_BYTES = 900_000
# With no more permutations than these, the status lists what samples and selectors chose.
MOST_LISTED, LISTED_BYTES = 32, 8192
MOST_RUNNING = 64
MOST_PLANS = 64
# The whole status may have 16 KiB, of which permutations take 8 KiB at most.
RESULTS_BYTES, MOST_PERMUTATIONS = 6 * 1024, 100
# The fields of a benchmark's status that results are computed from.
NEEDED = ("phase", "failure", "message", "values")
# By namespace and uid of a set: its benchmarks that the index has, each as `child` makes it.
Children = Callable[[str, str], Iterable[Document]]


def child(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Document]:
    """The part of a benchmark that its set needs, by the set's namespace and uid."""
    meta = document["metadata"]
    current = document.get("status") or {}
    part = {
        "metadata": {"name": meta["name"]},
        "status": {key: current[key] for key in NEEDED if key in current},
    }
    return {
        (meta["namespace"], owner["uid"]): part
        for owner in meta.get("ownerReferences", ())
        if owner["kind"] == SETS.kind
    }


def reconcile(
    objects: Documents,
    namespace: str,
    name: str,
    settings: ReconcileSettings,
    children: Children,
) -> str:
    """Bring a set forward; its phase if that has changed, else "".

    children: the benchmarks that the index has; those that were created a moment ago may be
    missing.
    """
    act = partial(_attempt, objects, namespace, settings, children)
    return report(SETS, objects, namespace, name, settings, act)


def _attempt(
    objects: Documents,
    namespace: str,
    settings: ReconcileSettings,
    children: Children,
    document: Document,
) -> tuple[Document, str]:
    """The new status, whether the pass succeeded or not, and what an event says. Raises Busy."""
    before, now_s = document.get("status") or {}, settings.clock()
    try:
        now = _reconciled(objects, namespace, document, settings, children)
    except Busy:
        raise
    except Damaged as error:
        now = _refused(before, f"{error.message}; {error.remedy}", now_s)
    except (UsageError, Refused) as error:
        now = _refused(before, f"{error.message}; {as_options(error.hint)}", now_s)
    except (Unreachable, Missing) as error:
        now = _hindered(before, f"{error.message}; {as_options(error.hint)}", now_s)
    except NameConflict as error:
        now = _hindered(before, str(error), now_s)
    return now, now["conditions"][0]["message"]


def _reconciled(
    objects: Documents,
    namespace: str,
    document: Document,
    settings: ReconcileSettings,
    children: Children,
) -> Document:
    """Create the benchmarks that may start; the status then."""
    uid = document["metadata"]["uid"]
    plan = _plan(objects, namespace, document, settings)
    created = {child["metadata"]["name"]: child for child in children(namespace, uid)}
    # the index may be late, and a benchmark that it lacks occupies its nodes all the same
    new = settings.new_children.setdefault(uid, {})
    for benchmark in [planned for planned in plan.benchmarks if planned.name in new]:
        is_lacking = benchmark.name not in created
        path = resource(benchmark.kind)
        unseen = objects.find(path, namespace, benchmark.name) if is_lacking else None
        if unseen is not None and owned(unseen, uid):
            created[benchmark.name] = unseen
        else:
            # the index has it now, or it was deleted
            del new[benchmark.name]
    if not document["spec"].get("paused"):
        _start(objects, namespace, document, plan, created, new)
    now = _status(document, plan, created, settings.clock())
    if "finishedAt" in now:
        del settings.new_children[uid]
        settings.plans.pop(uid, None)
    return now


def _refused(before: Mapping[str, Any], message: str, now_s: float) -> Document:
    """The status of a set that cannot be measured."""
    return {
        "phase": "Failed",
        "finishedAt": status.stamp(now_s),
        "conditions": status.conditions(
            before, {"Complete": False, "Failed": True}, "refused", message, now_s
        ),
        "verdict": str(VerdictKind.INVALID),
        "verdictReason": message[:500],
    }


def _hindered(before: Mapping[str, Any], message: str, now_s: float) -> Document:
    """The status while a missing right or a name in use may be corrected; later, refused."""
    conditions = status.conditions(
        before, {"Complete": False, "Failed": False, HINDERED: True}, "hindered", message, now_s
    )
    if now_s - seconds(conditions[-1]["lastTransitionTime"]) > START_S:
        return _refused(before, message, now_s)
    conditions += status.edited(before, False, now_s)
    return {"phase": before.get("phase") or "Pending", "conditions": conditions}


def _plan(
    objects: Documents, namespace: str, document: Document, settings: ReconcileSettings
) -> BenchmarkPlan:
    """The plan, made if there is none. NameConflict when another set owns the ConfigMap."""
    meta = document["metadata"]
    if known := settings.plans.get(meta["uid"]):
        return known
    name = f"{meta['name']}-plan"
    stored = objects.find(CONFIG_MAPS, namespace, name)
    if stored is None:
        stored = objects.create(CONFIG_MAPS, namespace, _plan_object(objects, document, name))
    if stored is None or not owned(stored, meta["uid"]):
        raise NameConflict(f"the ConfigMap {name} exists and belongs to something else")
    plan = zipped(stored, PLAN, BenchmarkPlan.from_dict)
    if len(settings.plans) >= MOST_PLANS:
        settings.plans.clear()
    settings.plans[meta["uid"]] = plan
    return plan


def _plan_object(objects: Documents, document: Document, name: str) -> Document:
    """A ConfigMap with the plan of a set. Raises InvalidValue for too large ones and bad names."""
    meta = document["metadata"]
    readable = {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkSet",
        "metadata": {"name": meta["name"]},
        "spec": document["spec"],
    }
    plan, _ = plan_of(readable, lambda: nodes_of(objects))
    for benchmark in plan.benchmarks:
        checks.refuse(
            (
                not NAME.fullmatch(benchmark.name),
                f"its benchmarks would be named {benchmark.name}, which is not a valid name of a"
                " Service",
                "use a-z, 0-9 and '-' in the set's name, a letter first",
            )
        )
    text = wire.dump(plan.to_dict())
    data = packed(text)
    checks.refuse(
        (
            len(data) > MOST_BYTES or len(text.encode()) > MOST_UNPACKED,
            f"the plan has {len(text.encode())} bytes, which is too large to store",
            "split the set into smaller ones",
        )
    )
    return {
        "metadata": {
            "name": name,
            "ownerReferences": [owner_reference(document)],
            "labels": {SET: meta["name"]},
        },
        "binaryData": {PLAN: data},
    }


def _start(
    objects: Documents,
    namespace: str,
    document: Document,
    plan: BenchmarkPlan,
    created: dict[str, Document],
    new: dict[str, bool],
) -> None:
    """Create the benchmarks that may start now, and add them to `created` and `new`."""
    if _stopped(plan, created):
        return
    waiting = [benchmark for benchmark in plan.benchmarks if benchmark.name not in created]
    children = [benchmark for benchmark in plan.benchmarks if benchmark.name in created]
    running = [benchmark for benchmark in children if not ended(created[benchmark.name])]
    while waiting and len(running) < (MOST_RUNNING if plan.disjoint else 1):
        following = startable(waiting, running) if plan.disjoint else waiting[0]
        if following is None:
            return
        waiting.remove(following)
        running.append(following)
        new[following.name] = True
        created[following.name] = _create(objects, namespace, document, plan, following)


def _create(
    objects: Documents,
    namespace: str,
    document: Document,
    plan: BenchmarkPlan,
    benchmark: Benchmark,
) -> Document:
    body, path = benchmark.document(), resource(benchmark.kind)
    body["metadata"] |= {
        "labels": {
            SET: document["metadata"]["name"],
            **({TOGETHER: "true"} if plan.disjoint else {}),
        },
        "annotations": {
            "scaletest.dev/permutation": str(benchmark.permutation),
            "scaletest.dev/repetition": str(benchmark.repetition),
        },
        "ownerReferences": [owner_reference(document)],
    }
    created = objects.create(path, namespace, body)
    if created is None:
        created = objects.find(path, namespace, benchmark.name) or {"metadata": {}}
        if not owned(created, document["metadata"]["uid"]):
            raise NameConflict(
                f"there is another {benchmark.kind.name} named {benchmark.name}; delete it, or"
                " rename the set"
            )
    return created


def _stopped(plan: BenchmarkPlan, created: Mapping[str, Document]) -> bool:
    return plan.stop_on_failure and any(_phase(child) == "Failed" for child in created.values())


def _status(
    document: Document, plan: BenchmarkPlan, created: Mapping[str, Document], now_s: float
) -> Document:
    before = document.get("status") or {}
    # a set that stopped when its warm-up failed measured nothing
    measured = [benchmark.name for benchmark in plan.benchmarks if not benchmark.warm_up]
    phases = [_phase(created[name]) for name in measured if name in created]
    succeeded, failed = phases.count("Completed"), phases.count("Failed")
    running = sum(not ended(child) for child in created.values())
    over = not running and (succeeded + failed == plan.counted or _stopped(plan, created))
    phase = "Paused" if document["spec"].get("paused") and not running else "Running"
    if over:
        phase = "Completed" if succeeded == plan.counted else "Failed"
    now: Document = {
        "phase": phase,
        "permutationCount": len(plan.permutations),
        "count": plan.counted,
        "benchmarksCreated": len(created),
        "running": running,
        "succeeded": succeeded,
        "failed": failed,
        "startedAt": before.get("startedAt") or status.stamp(now_s),
    }
    now |= _permutations(plan) | _results(plan, created, before, now, over=over)
    if over:
        now["finishedAt"] = status.stamp(now_s)
    now["conditions"] = status.conditions(
        before,
        {"Complete": phase == "Completed", "Failed": phase == "Failed"},
        phase,
        f"{succeeded} succeeded, {failed} failed, of {plan.counted}",
        now_s,
    )
    now["conditions"] += status.edited(before, _is_edited(document, plan), now_s)
    if generation := document["metadata"].get("generation"):
        now["observedGeneration"] = generation
    return status.bounded(now, ("permutations", "results"))


def _permutations(plan: BenchmarkPlan) -> Document:
    """The permutations as a status field, when they are few and small."""
    permutations = [dict(permutation) for permutation in plan.permutations]
    if len(permutations) > MOST_LISTED or len(wire.dump({"all": permutations})) >= LISTED_BYTES:
        return {}
    return {"permutations": permutations}


def _results(
    plan: BenchmarkPlan,
    created: Mapping[str, Document],
    before: Mapping[str, Any],
    now: Document,
    *,
    over: bool,
) -> Document:
    """Results and summary as status fields, computed only when another benchmark has ended."""
    if over or any(now[key] != before.get(key) for key in ("succeeded", "failed")):
        return measured_so_far(plan, created, over=over)
    return {key: before[key] for key in ("results", "summary") if key in before}


def _is_edited(document: Document, plan: BenchmarkPlan) -> bool:
    """Whether the set's spec differs from that of its plan, in more than `paused`."""
    try:
        specs = [
            read_written(SetSpec, {**each["spec"], "paused": False}, "the spec")
            for each in (document, plan.document)
        ]
    except InvalidValue:
        return True
    return specs[0] != specs[1]


def _phase(child: Mapping[str, Any]) -> str:
    return str((child.get("status") or {}).get("phase", ""))


# -- results so far, over repetitions: computed from the statuses of the benchmarks, so that no
# stored result is read again
# --------------------------------------------------------------------------------------------------


def measured_so_far(
    plan: BenchmarkPlan, children: Mapping[str, Document], *, over: bool
) -> Document:
    """Fields of the status: results and summary; once the set is over verdict and verdictReason."""
    ended_children = {name: child for name, child in children.items() if ended(child)}
    run = evaluate_benchmarks(
        plan, {name: _result(name, child["status"]) for name, child in ended_children.items()}
    )
    status: Document = {"results": _fitting(run), "summary": _summary(run)}
    if over:
        status["verdict"] = str(run.verdict.kind)
        status["verdictReason"] = clean(run.verdict.reason, 500)
    return status


def _result(name: str, status: Mapping[str, Any]) -> BenchmarkResult:
    """The result of a benchmark that has ended, as far as its status has it."""
    return BenchmarkResult(
        name,
        BenchmarkPhase(status["phase"]),
        status.get("values") or {},
        failure=Failure(status.get("failure", "")),
        message=status.get("message", ""),
    )


def _fitting(run: BenchmarkRun) -> list[Document]:
    """All permutations with all numbers, else with texts only, else none: what fits.

    The benchmarks have all numbers.
    """
    if len(run.rows) > MOST_PERMUTATIONS:
        return []
    for with_numbers in (True, False):
        permutations = [_permutation(run, row, with_numbers) for row in run.rows]
        if len(json.dumps(permutations).encode()) <= RESULTS_BYTES:
            return permutations
    return []


def _permutation(run: BenchmarkRun, row: MeasuredPermutation, with_numbers: bool) -> Document:
    headlines = {}
    for headline in run.headlines:
        if summary := row.summaries.get(headline.name):
            headlines[headline.name] = {
                "text": quantity_measured(summary.mean, summary.half_width, headline.unit),
                **(summary.to_dict() if with_numbers else {}),
            }
    return {
        "permutation": clean(row.name, 120),
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
