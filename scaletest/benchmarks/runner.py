"""Runs the benchmarks of a plan by an executor, one at a time or side by side.

Each result is stored before the next benchmark starts, so a run that was killed can be resumed. An
executor always returns a result: a failure of any sort is one like any other, and the plan decides
whether the other benchmarks still run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.benchmark_set import BenchmarkPlan

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


Progress = Callable[[Benchmark, BenchmarkPhase, BenchmarkResult | None], None]
MOST_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of benchmarks for the status of a set. Warm-ups do not count."""

    permutations: int
    count: int
    succeeded: int
    failed: int

    @property
    def finished(self) -> bool:
        """Check whether all benchmarks have ended."""
        return self.succeeded + self.failed == self.count


def counts(plan: BenchmarkPlan, ended: Mapping[str, BenchmarkResult]) -> Counts:
    """Count the benchmarks of a plan that succeeded and failed so far.

    ended: results by benchmark name.
    """
    counted = [
        ended[benchmark.name]
        for benchmark in plan.benchmarks
        if not benchmark.warm_up and benchmark.name in ended
    ]
    succeeded = sum(result.ok for result in counted)
    return Counts(len(plan.permutations), plan.counted, succeeded, len(counted) - succeeded)


def run(
    plan: BenchmarkPlan,
    ended: dict[str, BenchmarkResult],
    executor: Executor,
    store: Callable[[BenchmarkResult], None],
    progress: Progress,
) -> None:
    """Run the benchmarks that have no result yet, and add theirs to `ended`.

    Each result is stored as it comes, also when an exception ends the run.
    """
    left = [benchmark for benchmark in plan.benchmarks if benchmark.name not in ended]
    lock = threading.Lock()

    def measure(benchmark: Benchmark) -> BenchmarkResult:
        result = replace(
            executor.run(benchmark, lambda phase: progress(benchmark, phase, None)),
            permutation=benchmark.permutation,
            repetition=benchmark.repetition,
        )
        with lock:
            store(result)
            ended[result.name] = result
        progress(benchmark, result.phase, result)
        return result

    if plan.disjoint and executor.side_by_side:
        _side_by_side(plan, left, measure)
        return
    for benchmark in left:
        if not measure(benchmark).ok and plan.stop_on_failure:
            return


def startable(waiting: Sequence[Benchmark], running: Sequence[Benchmark]) -> Benchmark | None:
    """Choose the first benchmark that shares no node with a running one, or None.

    A benchmark that names no nodes may use any node, so it runs alone.
    """
    busy = [benchmark.spec.nodes for benchmark in running]
    if not all(busy):
        return None
    taken = set(chain.from_iterable(busy))
    return next(
        (
            benchmark
            for benchmark in waiting
            if not running or (benchmark.spec.nodes and taken.isdisjoint(benchmark.spec.nodes))
        ),
        None,
    )


def _side_by_side(
    plan: BenchmarkPlan, left: list[Benchmark], measure: Callable[[Benchmark], BenchmarkResult]
) -> None:
    running: dict[Future[BenchmarkResult], Benchmark] = {}
    stopped = False
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        while left or running:
            while not stopped and len(running) < MOST_AT_ONCE:
                benchmark = startable(left, list(running.values()))
                if benchmark is None:
                    break
                left.remove(benchmark)
                running[pool.submit(measure, benchmark)] = benchmark
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                del running[done]
                stopped |= not done.result().ok and plan.stop_on_failure
