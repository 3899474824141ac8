"""A benchmark in a cluster: its API calls, its state, and its end without a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.runner import Node
from scaletest.cluster.objects import NODES, Documents
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, unframe
from scaletest.kinds.kind import Failure


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


class BenchmarkFinished(Exception):
    """The benchmark has ended, with or without a result."""

    def __init__(self, ended: BenchmarkResult, pods: tuple[Document, ...]) -> None:
        super().__init__(ended.message)
        self.ended = ended
        self.pods = pods


class NameConflict(Exception):
    """Another object has a name that is needed; it may be about to be deleted."""


def failed(
    benchmark: Benchmark,
    now_s: float,
    failure: Failure,
    message: str,
    lines: Sequence[str] = (),
    remedy: str = "",
) -> BenchmarkResult:
    """Build the result of a benchmark that failed."""
    return benchmark.failed(
        failure,
        message[:1000],
        [line[:200] for line in lines if line][:LAST_LINES],
        remedy[:1000],
        started_s=now_s,
        finished_s=now_s,
    )


def failed_by_pod(
    benchmark: Benchmark, now_s: float, pod: Document, message: str, log: str
) -> BenchmarkResult:
    """Build a failure from the framed result of a pod that ended, else from its last log lines."""
    name = pod["metadata"]["name"]
    framed = unframe(log)
    if framed is not None:
        return failed(
            benchmark,
            now_s,
            framed.failure,
            f"{name}: {framed.message}",
            framed.lines,
            framed.remedy,
        )
    reason = pod["status"].get("message") or pod["status"].get("reason") or ""
    return failed(
        benchmark,
        now_s,
        Failure.EXIT,
        f"{name}: {message}",
        [*log.splitlines()[-LAST_LINES + 1 :], reason],
    )
