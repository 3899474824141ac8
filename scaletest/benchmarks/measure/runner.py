"""Run the benchmarks of a plan by an executor, one at a time.

Each result is stored before the next benchmark starts, so a run that was killed can be resumed. An
executor always returns a result: a failure of any sort is one like any other, and the plan decides
whether the other benchmarks still run.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Protocol

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, BenchmarkResult, Node
from scaletest.benchmarks.plan import BenchmarkPlan

PhaseListener = Callable[[BenchmarkPhase], None]
Progress = Callable[[Benchmark, BenchmarkResult | None, BenchmarkPhase], None]


class Executor(Protocol):
    """Runs benchmarks, one after the other."""

    def refuse(self, benchmark: Benchmark) -> None:
        """Raise UsageError for a benchmark that it can never run; called before any starts."""

    def nodes(self) -> Sequence[Node]:
        """List the nodes, for generators."""

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Run the benchmark and return its result or its failure.

        `on_phase` is called at each new phase.
        """


def run_plan(
    plan: BenchmarkPlan,
    results: dict[str, BenchmarkResult],
    executor: Executor,
    store: Callable[[BenchmarkResult], None],
    progress: Progress,
) -> None:
    """Run the benchmarks that have no result yet, and add theirs to `results`.

    Each result is stored as it comes, also when an exception ends the run.
    """
    for benchmark in plan.benchmarks:
        if benchmark.name in results:
            continue
        result = executor.run(benchmark, partial(progress, benchmark, None))
        store(result)
        results[result.name] = result
        progress(benchmark, result, result.phase)
        if not result.ok and plan.stop_on_failure:
            return


def first_startable(waiting: Sequence[Benchmark], running: Sequence[Benchmark]) -> Benchmark | None:
    """Choose the first benchmark that shares no node with a running one, or None.

    A benchmark that names no nodes may use any node, so it runs alone.
    """
    if not all(benchmark.spec.nodes for benchmark in running):
        return None
    busy_nodes = set(chain.from_iterable(benchmark.spec.nodes for benchmark in running))
    for benchmark in waiting:
        nodes = benchmark.spec.nodes
        if not running or (nodes and busy_nodes.isdisjoint(nodes)):
            return benchmark
    return None
