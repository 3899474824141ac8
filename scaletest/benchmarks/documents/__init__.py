"""Documents of benchmarks and sets: read, expanded, and described to editors and clusters."""

from scaletest.benchmarks.documents.benchmark import MOST_NAME, Benchmark, read_benchmark
from scaletest.benchmarks.documents.generators import Node
from scaletest.benchmarks.documents.result import (
    FINAL_PHASES,
    MOST_MESSAGE,
    BenchmarkPhase,
    BenchmarkResult,
    frame_result,
    read_framed_result,
)

__all__ = [
    "FINAL_PHASES",
    "MOST_MESSAGE",
    "MOST_NAME",
    "Benchmark",
    "BenchmarkPhase",
    "BenchmarkResult",
    "Node",
    "frame_result",
    "read_benchmark",
    "read_framed_result",
]
