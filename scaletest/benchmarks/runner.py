"""Runs the benchmarks of a plan, one at a time or side by side, and reports progress.

Each result is stored before the next benchmark starts, so a run that was killed can be resumed. A
failure is a result like any other; the plan decides whether the other benchmarks still run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from scaletest.benchmarks.executor import Executor
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.plan import BenchmarkPlan

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
        result = executor.run(benchmark, lambda phase: progress(benchmark, phase, None))
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


def startable(waiting: Sequence[Benchmark], running: Iterable[Benchmark]) -> Benchmark | None:
    """Choose the first benchmark that shares no node with a running one, or None.

    A benchmark that names no nodes may use any node, so it runs alone.
    """
    busy: set[str] = set()
    idle = True
    for benchmark in running:
        if not benchmark.spec.nodes:
            return None
        busy.update(benchmark.spec.nodes)
        idle = False
    for benchmark in waiting:
        if benchmark.spec.nodes and not busy & set(benchmark.spec.nodes):
            return benchmark
        if not benchmark.spec.nodes and idle:
            return benchmark
    return None


def _side_by_side(
    plan: BenchmarkPlan, left: list[Benchmark], measure: Callable[[Benchmark], BenchmarkResult]
) -> None:
    running: dict[Future[BenchmarkResult], Benchmark] = {}
    stopped = False
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        while left or running:
            while not stopped and len(running) < MOST_AT_ONCE:
                benchmark = startable(left, running.values())
                if benchmark is None:
                    break
                left.remove(benchmark)
                running[pool.submit(measure, benchmark)] = benchmark
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                del running[done]
                stopped |= not done.result().ok and plan.stop_on_failure
