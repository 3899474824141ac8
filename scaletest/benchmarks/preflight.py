"""Reasons not to run a benchmark in a cluster: impossible specs, and pods that are denied."""

from __future__ import annotations

import re

from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import EVENTS
from scaletest.kinds.benchmark import Benchmark
from scaletest.kinds.crd import MOST_NAME
from scaletest.model.errors import UsageError

NAME = re.compile(rf"[a-z]([a-z0-9-]{{0,{MOST_NAME - 2}}}[a-z0-9])?")
# A Job tries again after 1, 2, 4, ... seconds: a denial that is only temporary is over by then. A
# quota may still be used by pods that are being deleted, which takes longer.
REFUSED_S, QUOTA_S = 10.0, 30.0
_FINAL = re.compile(r"is forbidden|denied the request|is invalid|not found")


def refuse(benchmark: Benchmark) -> None:
    """Raises UsageError for a benchmark that cannot run in any cluster."""
    if not NAME.fullmatch(benchmark.name):
        raise UsageError(
            f"the name {benchmark.name[:80]!r} cannot be used for a Service and its Jobs",
            hint=f"use a-z, 0-9 and '-', a letter first, {MOST_NAME} characters at most",
        )
    nodes = {part.node for part in benchmark.kind.layout(benchmark.spec)}
    if benchmark.spec.nodes and len(benchmark.spec.nodes) < len(nodes):
        raise UsageError(
            f"the benchmark uses {len(nodes)} nodes, and its spec names"
            f" {len(benchmark.spec.nodes)}",
            hint="name more nodes, or none",
        )


def denial(objects: ClusterObjects, namespace: str, job: Document) -> str:
    """Return the API server's last reason to deny pods of a Job, from its events; "" without one.

    The status of a Job does not tell it.
    """
    uid = job["metadata"]["uid"]
    events = objects.list(EVENTS, namespace, fields=f"involvedObject.uid={uid},reason=FailedCreate")
    if not events:
        return ""
    return str(max(events, key=_time).get("message", ""))


def failed(job: Document) -> str:
    """Explain why a Job has failed; "" when it has not."""
    for condition in job.get("status", {}).get("conditions", ()):
        if condition["type"] == "Failed" and condition["status"] == "True":
            return str(condition.get("message") or "the Job has failed")
    return ""


def final(message: str, age_s: float) -> bool:
    """Check whether waiting longer is useless after this denial of pods, for a Job of this age."""
    limit_s = QUOTA_S if "quota" in message else REFUSED_S
    return bool(_FINAL.search(message)) and age_s > limit_s


def _time(event: Document) -> str:
    return str(
        event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )
