"""The interface of executors, which run one benchmark to its end.

`run` always returns a result: a failure of any sort is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult

PhaseListener = Callable[[BenchmarkPhase], None]


@dataclass(frozen=True, slots=True)
class Node:
    """A node that an executor can use, with its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Executor(Protocol):
    """Runs benchmarks.

    side_by_side: whether benchmarks that share no node can run at the same time without disturbing
    each other.
    """

    side_by_side: bool

    def refuse(self, benchmark: Benchmark) -> None:
        """Raises UsageError for a benchmark that it can never run; called before any starts."""

    def nodes(self) -> Sequence[Node]:
        """List the nodes, for generators and for benchmarks that run side by side."""

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Run the benchmark and return its result or its failure.

        `on_phase` is called at each new phase.
        """

    def close(self) -> None:
        """Release everything."""
