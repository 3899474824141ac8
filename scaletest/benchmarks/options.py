"""What a run of benchmarks is told beside its document; light, so that help is quick."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BenchmarkChanges:
    """What the command line changes about the document. sets: KEY=VALUE each."""

    sets: tuple[str, ...]
    repetitions: int | None
    thresholds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkPlace:
    """Where benchmarks run: on the workers of a queue, in a namespace of a cluster, or here."""

    queue: str
    namespace: str
    redis_url: str
