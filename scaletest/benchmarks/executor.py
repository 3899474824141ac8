"""The interface of executors: something that runs one benchmark to its end. Whatever happens, `run` returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult

Told = Callable[[BenchmarkPhase], None]


@dataclass(frozen=True, slots=True)
class Node:
    """A node that an executor can use, with its labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


class Executor(Protocol):
    """Runs benchmarks. side_by_side: whether several at once do not disturb each other when they share no node."""

    side_by_side: bool

    def refuse(self, benchmark: Benchmark) -> None:
        """Raises UsageError when it cannot run such a benchmark at all; asked of all before any is started."""

    def nodes(self) -> Sequence[Node]:
        """The nodes that there are, for generators and for benchmarks side by side."""

    def run(self, benchmark: Benchmark, told: Told) -> BenchmarkResult:
        """Run it; failures of any sort are in what is returned. Tells each phase as it comes."""

    def close(self) -> None:
        """Leave nothing behind."""
