"""A benchmark in a cluster: its API calls, its state, and its end without a result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.runner import Node
from scaletest.cluster.objects import NODES, Documents
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult, unframe
from scaletest.kinds.kind import BenchmarkFailed, Failure


@dataclass(frozen=True, slots=True)
class Observation:
    """Progress of a benchmark after one reconcile pass.

    message: what the benchmark waits for. pods: its pods with their current status. ended: its
    result. edited: the object was changed after the benchmark began; the change is not measured.
    queued: its parts are not admitted yet, so it may be long before it can use its turn.
    """

    phase: BenchmarkPhase
    message: str = ""
    pods: tuple[Document, ...] = ()
    ended: BenchmarkResult | None = None
    edited: bool = False
    queued: bool = False


@dataclass(frozen=True, slots=True)
class BenchmarkContext:
    """Namespace, owner and turn of a benchmark in a cluster.

    owner: owner reference to the benchmark's object. since_s: when the benchmark was requested, in
    seconds since the epoch. image: the container image, unless the benchmark's spec names one.
    waits: called when all parts are admitted; the reason to wait while another benchmark measures,
    "" when it is this one's turn.
    """

    namespace: str
    owner: Document
    since_s: float
    image: str
    waits: Callable[[], str] = lambda: ""


# Lines from the end of a failed pod's log that the result quotes.
LAST_LINES = 8


def nodes_of(objects: Documents) -> list[Node]:
    """List the cluster's nodes. Needs the right to list them."""
    metadata = [node["metadata"] for node in objects.list(NODES)]
    return [Node(meta["name"], meta.get("labels", {})) for meta in metadata]


class NameConflict(Exception):
    """Another object has a name that is needed; it may be about to be deleted."""


def failure_of_pod(pod: Document, message: str, log: str) -> BenchmarkFailed:
    """Build a failure from the framed result of a pod that ended, else from its last log lines."""
    name = pod["metadata"]["name"]
    framed = unframe(log)
    if framed is not None:
        message = f"{name}: {framed.message}"
        return BenchmarkFailed(framed.failure, message, framed.lines, framed.remedy)
    reason = pod["status"].get("message") or pod["status"].get("reason") or ""
    lines = [*log.splitlines()[-LAST_LINES + 1 :], reason]
    return BenchmarkFailed(Failure.EXIT, f"{name}: {message}", lines)
