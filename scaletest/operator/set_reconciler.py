"""One look at one set: its plan, made once and kept in a ConfigMap, and the next benchmarks that may start.

Benchmarks have the plan's names, so that one is never made twice; what samples and selectors chose is in the plan.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.endings import Taken
from scaletest.benchmarks.executor import Node
from scaletest.benchmarks.kept import MOST_UNPACKED, Damaged, Reads, owned, zipped
from scaletest.benchmarks.manifests import START_S
from scaletest.benchmarks.obstacles import NAME
from scaletest.benchmarks.runner import startable
from scaletest.benchmarks.said import seconds
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
from scaletest.operator.benchmark_reconciler import TOGETHER, Settings, ended, owner, resource, write
from scaletest.operator.status import Document

SETS = Resource("BenchmarkSet", f"/apis/{API_VERSION}", "benchmarksets", True)
SET, PLAN, HINDERED = "scaletest.dev/set", "plan.json.gz", "Hindered"
# An object of the API server may hold about 1.5 MB.
MOST_BYTES = 900_000
# In the status too, when there are no more: what samples and selectors chose.
MOST_SHOWN = 32
AT_ONCE = 64
MOST_PLANS = 64
# By namespace and uid of a set: those of its benchmarks that have been made, as `child` says it.
Children = Callable[[str, str], Iterable[Document]]


def child(document: Mapping[str, Any]) -> Mapping[tuple[str, str], Document]:
    """What is to be known of a benchmark that belongs to a set, by namespace and the set's uid."""
    meta = document["metadata"]
    told = document.get("status") or {}
    said = {"metadata": {"name": meta["name"]}, "status": {key: told[key] for key in set_results.NEEDED if key in told}}
    owners = [one["uid"] for one in meta.get("ownerReferences", ()) if one["kind"] == SETS.kind]
    return {(meta["namespace"], uid): said for uid in owners}


def look(objects: Reads, namespace: str, name: str, settings: Settings, children: Children) -> str:
    """Move a set on; its phase when it has changed, else "". What was made a moment ago need not be among children."""
    found = objects.find(SETS, namespace, name)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return ""
    before, now_s = found.get("status") or {}, settings.clock()
    if before.get("finishedAt"):
        if status.changed(found):
            write(SETS, objects, namespace, found, status.late(found, now_s), settings)
        return ""
    try:
        now = _moved(objects, namespace, found, settings, children)
    except Busy:
        raise
    except (UsageError, Refused) as error:
        now = _refused(before, f"{error.message}; {error.hint}", now_s)
    except (Unreachable, Missing) as error:
        now = _hindered(before, f"{error.message}; {error.hint}", now_s)
    except Taken as taken:
        now = _hindered(before, str(taken), now_s)
    if not write(SETS, objects, namespace, found, now, settings) or now["phase"] == before.get("phase"):
        return ""
    settings.tell(found, "Warning" if now["phase"] == "Failed" else "Normal", now["phase"],
                  now["conditions"][0]["message"] or now["phase"])  # fmt: skip
    return str(now["phase"])


def _moved(objects: Reads, namespace: str, found: Document, settings: Settings, children: Children) -> Document:
    """Start what may start; the status then."""
    uid = found["metadata"]["uid"]
    plan = _plan(objects, namespace, found, settings)
    there = {one["metadata"]["name"]: one for one in children(namespace, uid)}
    # the watches may be late, and a benchmark that they do not know shares its nodes all the same
    fresh = settings.fresh.setdefault(uid, {})
    for one in [one for one in plan.benchmarks if one.name in fresh]:
        made = None if one.name in there else objects.find(resource(one.kind), namespace, one.name)
        if made is not None and owned(made, uid):
            there[one.name] = made
        else:
            del fresh[one.name]
    if not found["spec"].get("paused"):
        _start(objects, namespace, found, plan, there, fresh)
    now = _status(found, plan, there, settings.clock())
    if "finishedAt" in now:
        del settings.fresh[uid]
        settings.plans.pop(uid, None)
    return now


def _refused(before: Mapping[str, Any], message: str, now_s: float) -> Document:
    facts = {"Complete": False, "Failed": True}
    conditions = status.conditions(before, facts, "refused", message, now_s)
    said = {"verdict": str(VerdictKind.INVALID), "verdictReason": message[:500]}
    return {"phase": "Failed", "finishedAt": status.stamp(now_s), "conditions": conditions, **said}


def _hindered(before: Mapping[str, Any], message: str, now_s: float) -> Document:
    """What may be mended, but is not waited for without end: a missing right, or a name that is still taken."""
    facts = {"Complete": False, "Failed": False, HINDERED: True}
    conditions = status.conditions(before, facts, "hindered", message, now_s)
    if now_s - seconds(conditions[-1]["lastTransitionTime"]) > START_S:
        return _refused(before, message, now_s)
    return {"phase": before.get("phase") or "Pending", "conditions": conditions + status.edited(before, False, now_s)}


def _plan(objects: Reads, namespace: str, found: Document, settings: Settings) -> BenchmarkPlan:
    """The plan, made when there is none. Raises Taken while that of an earlier set of this name is still there."""
    meta = found["metadata"]
    if known := settings.plans.get(meta["uid"]):
        return known
    name = f"{meta['name']}-plan"
    kept = objects.find(CONFIG_MAPS, namespace, name)
    if kept is None:
        document = {"apiVersion": API_VERSION, "kind": "BenchmarkSet", "metadata": {"name": meta["name"]},
                    "spec": found["spec"]}  # fmt: skip
        plan, _ = plan_of(document, lambda: _nodes(objects))
        _fits(plan)
        text = wire.dump(plan.to_dict()).encode()
        packed = gzip.compress(text, mtime=0)
        if len(packed) * 4 / 3 > MOST_BYTES or len(text) > MOST_UNPACKED:
            raise InvalidValue(f"the plan has {len(text)} bytes, too many to be kept", hint="make more, smaller sets")
        body = {
            "metadata": {"name": name, "ownerReferences": [owner(found)], "labels": {SET: meta["name"]}},
            "binaryData": {PLAN: base64.b64encode(packed).decode()},
        }
        kept = objects.create(CONFIG_MAPS, namespace, body)
    if kept is None or not owned(kept, meta["uid"]):
        raise Taken(f"configmaps {name} is there and belongs to something else")
    try:
        plan = BenchmarkPlan.from_dict(zipped(kept, PLAN))
    except Damaged:
        raise
    except InvalidValue as error:
        raise Damaged(kept, error.message) from error
    if len(settings.plans) >= MOST_PLANS:
        settings.plans.clear()
    settings.plans[meta["uid"]] = plan
    return plan


def _fits(plan: BenchmarkPlan) -> None:
    for one in plan.benchmarks:
        if not NAME.fullmatch(one.name):
            raise InvalidValue(
                f"its benchmarks would be named {one.name}, which no Service can be",
                hint="use a-z, 0-9 and '-' in the set's name, a letter first",
            )


def _nodes(objects: Reads) -> list[Node]:
    return [Node(one["metadata"]["name"], one["metadata"].get("labels", {})) for one in objects.list(NODES)]


def _start(
    objects: Reads, namespace: str, found: Document, plan: BenchmarkPlan, children: dict[str, Document],
    fresh: dict[str, bool],
) -> None:  # fmt: skip
    """Make the benchmarks that may start now, and add them to the children and to those that are fresh."""
    if _stopped(plan, children):
        return
    waiting = [one for one in plan.benchmarks if one.name not in children]
    running = [one for one in plan.benchmarks if one.name in children and not ended(children[one.name])]
    while waiting and len(running) < (AT_ONCE if plan.disjoint else 1):
        following = startable(waiting, running) if plan.disjoint else waiting[0]
        if following is None:
            return
        waiting.remove(following)
        running.append(following)
        fresh[following.name] = True
        children[following.name] = _make(objects, namespace, found, plan, following)


def _make(objects: Reads, namespace: str, found: Document, plan: BenchmarkPlan, one: Benchmark) -> Document:
    body = one.document()
    labels = {SET: found["metadata"]["name"], **({TOGETHER: "true"} if plan.disjoint else {})}
    numbers = {"scaletest.dev/permutation": str(one.permutation), "scaletest.dev/repetition": str(one.repetition)}
    body["metadata"] |= {"labels": labels, "annotations": numbers, "ownerReferences": [owner(found)]}
    made = objects.create(resource(one.kind), namespace, body)
    if made is None:
        made = objects.find(resource(one.kind), namespace, one.name) or {"metadata": {}}
        if not owned(made, found["metadata"]["uid"]):
            raise Taken(f"there is another {one.kind.name} {one.name}; delete it, or give the set another name")
    return made


def _stopped(plan: BenchmarkPlan, children: Mapping[str, Document]) -> bool:
    return plan.stop_on_failure and any(_phase(child) == "Failed" for child in children.values())


def _status(found: Document, plan: BenchmarkPlan, children: Mapping[str, Document], now_s: float) -> Document:
    before = found.get("status") or {}
    counted = [_phase(children[one.name]) for one in plan.benchmarks if not one.warm_up and one.name in children]
    good, bad = counted.count("Completed"), counted.count("Failed")
    running = sum(not ended(child) for child in children.values())
    over = not running and (good + bad == plan.counted or _stopped(plan, children))
    paused = bool(found["spec"].get("paused"))
    # one that stopped when the warm-up failed measured nothing
    phase = (
        ("Completed" if good == plan.counted else "Failed")
        if over
        else ("Paused" if paused and not running else "Running")
    )
    now: Document = {
        "phase": phase,
        "permutationCount": len(plan.permutations),
        "count": plan.counted,
        "benchmarksCreated": len(children),
        "running": running,
        "succeeded": good,
        "failed": bad,
        "startedAt": before.get("startedAt") or status.stamp(now_s),
    }
    if len(plan.permutations) <= MOST_SHOWN and len(wire.dump({"all": list(plan.permutations)})) < MOST_SHOWN * 256:
        now["permutations"] = [dict(one) for one in plan.permutations]
    if over or any(now[key] != before.get(key) for key in ("succeeded", "failed")):
        now |= set_results.of(plan, children, over=over)
    else:
        now |= {key: before[key] for key in ("results", "summary") if key in before}
    if over:
        now["finishedAt"] = status.stamp(now_s)
    facts = {"Complete": phase == "Completed", "Failed": phase == "Failed"}
    message = f"{good} succeeded, {bad} failed, of {plan.counted}"
    now["conditions"] = status.conditions(before, facts, phase, message, now_s)
    now["conditions"] += status.edited(before, _edited(found, plan), now_s)
    if generation := found["metadata"].get("generation"):
        now["observedGeneration"] = generation
    return status.bounded(now, ("permutations", "results"))


def _edited(found: Document, plan: BenchmarkPlan) -> bool:
    """Whether the set asks for something else than when its plan was made. paused does not count."""
    try:
        asked, agreed = (fields.read(SetSpec, one["spec"], "the spec", []) for one in (found, plan.document))
    except InvalidValue:
        return True
    return replace(asked, paused=False) != replace(agreed, paused=False)


def _phase(child: Mapping[str, Any]) -> str:
    return str((child.get("status") or {}).get("phase", ""))
