"""What stands in the status of a benchmark: phase, headline and why, bounded in size. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from scaletest.benchmarks import manifests
from scaletest.benchmarks.seen import Seen
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.crd import MOST_MESSAGE
from scaletest.kinds.kind import Failure
from scaletest.render.units import quantity

MOST_BYTES = 16 * 1024
MOST_PODS = 32
EDITED = "SpecChangeIgnored"
Document = dict[str, Any]


def of(benchmark: Benchmark, seen: Seen, before: Mapping[str, Any], now_s: float, generation: int = 0) -> Document:
    """The status, given the one before: times are kept, and a phase never goes back."""
    phase = seen.phase if _rank(seen.phase) >= _rank(before.get("phase")) else BenchmarkPhase(before["phase"])
    found: Document = {
        "phase": str(phase),
        "message": seen.message[:MOST_MESSAGE],
        "pods": _pods(seen) or before.get("pods") or {},
    }
    if phase is not BenchmarkPhase.PENDING:
        found["startedAt"] = before.get("startedAt") or stamp(now_s)
    if seen.ended is not None:
        found |= _end(benchmark, seen.ended, now_s)
    found["conditions"] = conditions(before, {"Complete": phase is BenchmarkPhase.COMPLETED, "Failed": phase is BenchmarkPhase.FAILED},
                                     str(found.get("failure") or phase), found["message"], now_s)  # fmt: skip
    found["conditions"] += edited(before, seen.edited, now_s)
    found |= {"observedGeneration": generation} if generation else {}
    return bounded({**{key: before[key] for key in ("startedAt",) if key in before}, **found})


def conditions(
    before: Mapping[str, Any], now: Mapping[str, bool], reason: str, message: str, now_s: float
) -> list[Document]:
    """Conditions, whose transition times change only when they do. A reason is one word in CamelCase."""
    known = {one["type"]: one for one in before.get("conditions") or ()}
    found = []
    for name, value in now.items():
        old, text = known.get(name, {}), str(value)
        since = old.get("lastTransitionTime") if old.get("status") == text else None
        word = "".join(part.capitalize() for part in reason.split("_")) if reason.islower() else reason
        found.append({
            "type": name, "status": text, "reason": word, "message": message[:500],
            "lastTransitionTime": since or stamp(now_s),
        })  # fmt: skip
    return found


def edited(before: Mapping[str, Any], now: bool, now_s: float) -> list[Document]:
    """The condition that says that a change came too late, from then on."""
    known = [one for one in before.get("conditions") or () if one["type"] == EDITED]
    message = "the spec was changed after its plan was made, and that is ignored; delete the object and make another"
    return known or (conditions({}, {EDITED: True}, "TooLate", message, now_s) if now else [])


def told(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """What an event is to say of a change that came too late; "" when it was said before."""
    fresh = {one["type"]: one["message"] for one in now.get("conditions") or ()}
    return "" if edited(before, False, 0.0) else str(fresh.get(EDITED, ""))


def changed(document: Mapping[str, Any]) -> bool:
    """Whether the object's spec was changed since it was last looked at."""
    seen = (document.get("status") or {}).get("observedGeneration")
    return seen is not None and int(document["metadata"].get("generation", 0)) > int(seen)


def late(document: Mapping[str, Any], now_s: float) -> Document:
    """What changes in the status of one that has ended when its spec is changed."""
    before = document["status"]
    rest = [one for one in before.get("conditions") or () if one["type"] != EDITED]
    return {"observedGeneration": document["metadata"]["generation"], "conditions": rest + edited(before, True, now_s)}


def stamp(seconds: float) -> str:
    """As Kubernetes writes times."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def bounded(
    status: Document, fields: Sequence[str] = ("pods", "lines", "headlines", "values", "network")
) -> Document:  # fmt: skip
    """The status without its largest fields when it is too large, and a note where it has a message.

    They are null then, or what is there would stay, as the status is merged into it.
    """
    found = dict(status)
    for name in fields:
        if len(json.dumps(found)) <= MOST_BYTES:
            break
        if found.get(name):
            found[name] = None
            note = f"{name} left out: the status was too large"
            if "message" in found:
                found["message"] = f"{found['message'][:1000]}; {note}".removeprefix("; ")
    return found


def as_kept(value: Any) -> Any:
    """As it is in the object then: a merge takes a null for what is to go, in lists too."""
    if isinstance(value, Mapping):
        return {key: as_kept(one) for key, one in value.items() if one is not None}
    return [as_kept(one) for one in value] if isinstance(value, list | tuple) else value


def _end(benchmark: Benchmark, ended: BenchmarkResult, now_s: float) -> Document:
    units = {one.name: one.unit for one in benchmark.kind.headlines}
    texts = {name: quantity(value, units[name]) for name, value in ended.headlines.items() if name in units}
    message = ended.message or "; ".join(ended.notes)
    return {
        "failure": str(ended.failure),
        "message": message[:MOST_MESSAGE],
        "lines": [line[:200] for line in ended.lines][:8],
        "remedy": ended.advice[:MOST_MESSAGE],
        "headlines": texts,
        "values": {name: ended.headlines[name] for name in texts},
        "summary": next(iter(texts.values()), "") if ended.ok else (ended.message or str(ended.failure))[:200],
        "network": dict(ended.network),
        # what was refused has nothing more to say
        **({} if ended.failure is Failure.REFUSED else {"resultConfigMap": manifests.result_name(benchmark.name)}),
        "finishedAt": stamp(ended.finished_s or now_s),
    }


def _pods(seen: Seen) -> Document:
    """Where the pods are, by role."""
    found: dict[str, list[Document]] = {}
    for pod in seen.pods[:MOST_PODS]:
        role, said = pod["metadata"]["labels"][manifests.ROLE], pod.get("status", {})
        row = {"name": pod["metadata"]["name"], "nodeName": pod["spec"].get("nodeName"), "podIp": said.get("podIP"),
               "nodeIp": said.get("hostIP")}  # fmt: skip
        found.setdefault(role, []).append({key: value for key, value in row.items() if value})
    return found


def _rank(phase: object) -> int:
    order = list(BenchmarkPhase)
    return order.index(BenchmarkPhase(str(phase))) if phase else -1
