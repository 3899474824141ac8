"""Where a benchmark in a cluster belongs, and how far a look has found it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scaletest.benchmarks.manifests import Document
from scaletest.kinds.benchmark import BenchmarkPhase, BenchmarkResult


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a benchmark is. pods: its pods as they are; message: what it waits for; edited: after it was begun.

    queued: its parts are not admitted, so that it may be long before it can use its turn.
    """

    phase: BenchmarkPhase
    message: str = ""
    pods: tuple[Document, ...] = ()
    ended: BenchmarkResult | None = None
    edited: bool = False
    queued: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark belongs. owner: an owner reference; since_s: when it was asked for; image: unless it says.

    waits: of one whose parts are admitted, what it waits for while another measures; "" when it is its turn.
    """

    namespace: str
    owner: Document
    since_s: float
    image: str
    waits: Callable[[], str] = lambda: ""
