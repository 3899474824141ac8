"""Outcomes of a benchmark in a cluster other than a measured result. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.benchmarks.manifests import Document
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.log_framing import unframe

# Lines from the end of a failed pod's log that the result quotes.
LAST_LINES = 8


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
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.FAILED,
        failure=failure,
        message=message[:1000],
        lines=tuple(line[:200] for line in lines if line)[:LAST_LINES],
        remedy=remedy[:1000],
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
    lines = [*log.splitlines()[-LAST_LINES + 1 :], reason]
    return failed(benchmark, now_s, Failure.EXIT, f"{name}: {message}", lines)
