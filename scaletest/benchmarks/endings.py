"""How a benchmark in a cluster comes to its end without a result, and in whose words. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from scaletest.benchmarks.manifests import Document
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.log_framing import unframe

# Of a pod that failed: the end of its log.
LAST_LINES = 8


class Over(Exception):
    """The benchmark has come to its end."""

    def __init__(self, ended: BenchmarkResult, pods: tuple[Document, ...]) -> None:
        super().__init__(ended.message)
        self.ended, self.pods = ended, pods


class Taken(Exception):
    """A name that is needed is that of something else, which may be on its way out."""


def failed(
    benchmark: Benchmark, now_s: float, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = ""
) -> BenchmarkResult:  # fmt: skip
    """The end of one without a result."""
    kept = tuple(line[:200] for line in lines if line)[:LAST_LINES]
    return BenchmarkResult(
        benchmark.name, BenchmarkPhase.FAILED, failure=failure, message=message[:1000], lines=kept,
        remedy=remedy[:1000], started_s=now_s, finished_s=now_s,
    )  # fmt: skip


def blamed(benchmark: Benchmark, now_s: float, pod: Document, message: str, log: str) -> BenchmarkResult:
    """The end that a pod's own ended in: what it framed in its log counts, else the log's last lines."""
    name, told = pod["metadata"]["name"], unframe(log)
    if told is not None:
        return failed(benchmark, now_s, told.failure, f"{name}: {told.message}", told.lines, told.remedy)
    reason = pod["status"].get("message") or pod["status"].get("reason") or ""
    lines = [*log.splitlines()[-LAST_LINES + 1 :], reason]
    return failed(benchmark, now_s, Failure.EXIT, f"{name}: {message}", lines)
