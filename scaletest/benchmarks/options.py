"""What a run of benchmarks is told beside its document; light, so that help is quick."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class BenchmarkChanges:
    """What the command line changes about the document. sets: KEY=VALUE each."""

    sets: tuple[str, ...]
    repetitions: int | None
    random_order: bool
    seed: int | None
    warm_up: int | None
    stop_on_failure: bool
    thresholds: tuple[str, ...]
    paused: bool


@dataclass(frozen=True, slots=True)
class BenchmarkPlace:
    """Where benchmarks run: on the workers of a queue, in a namespace of a cluster, or here."""

    queue: str
    namespace: str
    redis_url: str
    scratch: Path | None
    no_causes: bool
