"""One reconcile pass over one set: store its plan once, and create the next benchmarks.

Benchmarks have the names of the plan, so none is created twice; the plan holds what samples and
selectors chose.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.benchmarks.executor import Node
from scaletest.benchmarks.manifests import START_S
from scaletest.benchmarks.outcomes import NameConflict
from scaletest.benchmarks.pod_status import seconds
from scaletest.benchmarks.preflight import NAME
from scaletest.benchmarks.result_store import MOST_UNPACKED, Damaged, owned, zipped
from scaletest.benchmarks.runner import startable
from scaletest.benchmarks.sweep import plan_of
from scaletest.cluster.connection import Refused
from scaletest.cluster.documents import CONFIG_MAPS, NODES, Busy, Missing, Resource
from scaletest.kinds import fields
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.benchmark_set import SetSpec
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.kinds.registry import API_VERSION
from scaletest.model import VerdictKind, wire
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.operator import set_results, status
from scaletest.operator.benchmark_reconciler import (
    TOGETHER,
    ReconcileSettings,
    ended,
    owner_reference,
    resource,
    write_status,
)
from scaletest.operator.status import Document

SETS = Resource("BenchmarkSet", f"/apis/{API_VERSION}", "benchmarksets", True)
SET, PLAN, HINDERED = "scaletest.dev/set", "plan.json.gz", "Hindered"
# The API server takes objects of up to about 1.5 MB.
MOST_BYTES = 900_000
# With no more permutations than these, the status lists what samples and selectors chose.
MOST_LISTED, LISTED_BYTES = 32, 8192
MOST_RUNNING = 64
MOST_PLANS = 64
# By namespace and uid of a set: its benchmarks that the index has, each as `child` makes it.
Children = Callable[[str, str], Iterable[Document]]


def child(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Document]:
    """The part of a benchmark that its set needs, by the set's namespace and uid."""
    meta = document["metadata"]
    current = document.get("status") or {}
    needed = {key: current[key] for key in set_results.NEEDED if key in current}
    part = {"metadata": {"name": meta["name"]}, "status": needed}
    owners = [
        owner["uid"] for owner in meta.get("ownerReferences", ()) if owner["kind"] == SETS.kind
    ]
    return {(meta["namespace"], uid): part for uid in owners}


def reconcile(
    objects: ClusterObjects,
    namespace: str,
    name: str,
    settings: ReconcileSettings,
    children: Children,
) -> str:
    """Bring a set forward; its phase if that has changed, else "".

    children: the benchmarks that the index has; those that were created a moment ago may be
    missing.
    """
    document = objects.find(SETS, namespace, name)
    if document is None or document["metadata"].get("deletionTimestamp"):
        return ""
    before, now_s = document.get("status") or {}, settings.clock()
    if before.get("finishedAt"):
        if status.changed(document):
            late = status.after_late_edit(document, now_s)
            write_status(SETS, objects, namespace, document, late, settings)
        return ""
    now = _attempt(objects, namespace, document, settings, children)
    if not write_status(SETS, objects, namespace, document, now, settings):
        return ""
    phase = str(now["phase"])
    if phase == before.get("phase"):
        return ""
    event_type = "Warning" if phase == "Failed" else "Normal"
    settings.send_event(document, event_type, phase, now["conditions"][0]["message"] or phase)
    return phase


def _attempt(
    objects: ClusterObjects,
    namespace: str,
    document: Document,
    settings: ReconcileSettings,
    children: Children,
) -> Document:
    """The new status, whether the pass succeeded or not. Raises Busy."""
    before, now_s = document.get("status") or {}, settings.clock()
    try:
        return _reconciled(objects, namespace, document, settings, children)
    except Busy:
        raise
    except (UsageError, Refused) as error:
        return _refused(before, f"{error.message}; {error.hint}", now_s)
    except (Unreachable, Missing) as error:
        return _hindered(before, f"{error.message}; {error.hint}", now_s)
    except NameConflict as error:
        return _hindered(before, str(error), now_s)


def _reconciled(
    objects: ClusterObjects,
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
    for benchmark in plan.benchmarks:
        if benchmark.name not in new:
            continue
        unseen = None
        if benchmark.name not in created:
            unseen = objects.find(resource(benchmark.kind), namespace, benchmark.name)
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
    facts = {"Complete": False, "Failed": True}
    return {
        "phase": "Failed",
        "finishedAt": status.stamp(now_s),
        "conditions": status.conditions(before, facts, "refused", message, now_s),
        "verdict": str(VerdictKind.INVALID),
        "verdictReason": message[:500],
    }


def _hindered(before: Mapping[str, Any], message: str, now_s: float) -> Document:
    """The status while a missing right or a name in use may be corrected; later, refused."""
    facts = {"Complete": False, "Failed": False, HINDERED: True}
    conditions = status.conditions(before, facts, "hindered", message, now_s)
    if now_s - seconds(conditions[-1]["lastTransitionTime"]) > START_S:
        return _refused(before, message, now_s)
    conditions += status.edited(before, False, now_s)
    return {"phase": before.get("phase") or "Pending", "conditions": conditions}


def _plan(
    objects: ClusterObjects, namespace: str, document: Document, settings: ReconcileSettings
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
    try:
        plan = BenchmarkPlan.from_dict(zipped(stored, PLAN))
    except Damaged:
        raise
    except InvalidValue as error:
        raise Damaged(stored, error.message) from error
    if len(settings.plans) >= MOST_PLANS:
        settings.plans.clear()
    settings.plans[meta["uid"]] = plan
    return plan


def _plan_object(objects: ClusterObjects, document: Document, name: str) -> Document:
    """A ConfigMap with the plan of a set. Raises InvalidValue for too large ones and bad names."""
    meta = document["metadata"]
    readable = {
        "apiVersion": API_VERSION,
        "kind": "BenchmarkSet",
        "metadata": {"name": meta["name"]},
        "spec": document["spec"],
    }
    plan, _ = plan_of(readable, lambda: _nodes(objects))
    _check_names(plan)
    text = wire.dump(plan.to_dict()).encode()
    packed = gzip.compress(text, mtime=0)
    # base64 makes it a third longer
    if len(packed) * 4 / 3 > MOST_BYTES or len(text) > MOST_UNPACKED:
        raise InvalidValue(
            f"the plan has {len(text)} bytes, which is too large to store",
            hint="split the set into smaller ones",
        )
    return {
        "metadata": {
            "name": name,
            "ownerReferences": [owner_reference(document)],
            "labels": {SET: meta["name"]},
        },
        "binaryData": {PLAN: base64.b64encode(packed).decode()},
    }


def _check_names(plan: BenchmarkPlan) -> None:
    for benchmark in plan.benchmarks:
        if not NAME.fullmatch(benchmark.name):
            raise InvalidValue(
                f"its benchmarks would be named {benchmark.name}, which is not a valid name of a"
                " Service",
                hint="use a-z, 0-9 and '-' in the set's name, a letter first",
            )


def _nodes(objects: ClusterObjects) -> list[Node]:
    nodes = [node["metadata"] for node in objects.list(NODES)]
    return [Node(meta["name"], meta.get("labels", {})) for meta in nodes]


def _start(
    objects: ClusterObjects,
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
    objects: ClusterObjects,
    namespace: str,
    document: Document,
    plan: BenchmarkPlan,
    benchmark: Benchmark,
) -> Document:
    body = benchmark.document()
    labels = {SET: document["metadata"]["name"]}
    if plan.disjoint:
        labels[TOGETHER] = "true"
    annotations = {
        "scaletest.dev/permutation": str(benchmark.permutation),
        "scaletest.dev/repetition": str(benchmark.repetition),
    }
    references = [owner_reference(document)]
    body["metadata"] |= {
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": references,
    }
    path = resource(benchmark.kind)
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
    phase = _set_phase(document, running, over=over, complete=succeeded == plan.counted)
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
    facts = {"Complete": phase == "Completed", "Failed": phase == "Failed"}
    message = f"{succeeded} succeeded, {failed} failed, of {plan.counted}"
    now["conditions"] = status.conditions(before, facts, phase, message, now_s)
    now["conditions"] += status.edited(before, _is_edited(document, plan), now_s)
    if generation := document["metadata"].get("generation"):
        now["observedGeneration"] = generation
    return status.bounded(now, ("permutations", "results"))


def _set_phase(document: Document, running: int, *, over: bool, complete: bool) -> str:
    if over:
        return "Completed" if complete else "Failed"
    return "Paused" if document["spec"].get("paused") and not running else "Running"


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
        return set_results.of(plan, created, over=over)
    return {key: before[key] for key in ("results", "summary") if key in before}


def _is_edited(document: Document, plan: BenchmarkPlan) -> bool:
    """Whether the set's spec differs from that of its plan, in more than `paused`."""
    try:
        current = fields.read(SetSpec, document["spec"], "the spec", [])
        planned = fields.read(SetSpec, plan.document["spec"], "the spec", [])
    except InvalidValue:
        return True
    return replace(current, paused=False) != replace(planned, paused=False)


def _phase(child: Mapping[str, Any]) -> str:
    return str((child.get("status") or {}).get("phase", ""))
