"""State of a benchmark in a cluster, as one reconcile pass observes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scaletest.benchmarks.manifests import Document
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult


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
