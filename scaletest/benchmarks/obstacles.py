"""What keeps a benchmark from being run in a cluster: what no pod can do, and what admission says against its pods."""

from __future__ import annotations

import re

from scaletest.benchmarks.kept import Reads
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import EVENTS
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.crd import MOST_NAME
from scaletest.model.errors import UsageError

NAME = re.compile(rf"[a-z]([a-z0-9-]{{0,{MOST_NAME - 2}}}[a-z0-9])?")
# A Job tries again after 1, 2, 4, ... seconds: what passes has passed then. A quota may be used by who is leaving.
REFUSED_S, QUOTA_S = 10.0, 30.0
_FINAL = re.compile(r"is forbidden|denied the request|is invalid|not found")


def refuse(benchmark: Benchmark) -> None:
    """Raises UsageError for what cannot be run in a cluster."""
    if not NAME.fullmatch(benchmark.name):
        raise UsageError(
            f"the name {benchmark.name[:80]!r} cannot be that of a Service and its Jobs",
            hint=f"use a-z, 0-9 and '-', a letter first, {MOST_NAME} characters at most",
        )
    parts = benchmark.kind.layout(benchmark.spec)
    wanted = len({part.node for part in parts})
    if benchmark.spec.nodes and len(benchmark.spec.nodes) < wanted:
        raise UsageError(
            f"{wanted} nodes are used, and {len(benchmark.spec.nodes)} are named", hint="name more, or none"
        )


def said(objects: Reads, namespace: str, job: Document) -> str:
    """What the API server last said against pods of a Job, whose status does not tell; "" when it said nothing."""
    uid = job["metadata"]["uid"]
    rows = objects.list(EVENTS, namespace, fields=f"involvedObject.uid={uid},reason=FailedCreate")
    return str(max(rows, key=_time).get("message", "")) if rows else ""


def failed(job: Document) -> str:
    """Why a Job has failed; "" when it has not."""
    rows = [one for one in job.get("status", {}).get("conditions", ()) if one["type"] == "Failed"]
    return next((one.get("message") or "it has failed" for one in rows if one["status"] == "True"), "")


def final(message: str, age_s: float) -> bool:
    """Whether what was said against the pods of a Job of that age will not pass by itself."""
    return bool(_FINAL.search(message)) and age_s > (QUOTA_S if "quota" in message else REFUSED_S)


def _time(event: Document) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")
