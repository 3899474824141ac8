"""Runs a plan: each benchmark once, one at a time or side by side where they share no node, and says how it goes.

What has ended is stored before the next one starts, so a run that was killed goes on where it was. A failure is a
result like any other; whether the others still run is the set's to say.
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
    """The numbers of a set's status. Warm-ups do not count."""

    permutations: int
    count: int
    succeeded: int
    failed: int

    @property
    def finished(self) -> bool:
        """Whether all have ended."""
        return self.succeeded + self.failed == self.count


def counts(plan: BenchmarkPlan, ended: Mapping[str, BenchmarkResult]) -> Counts:
    """How far a plan is."""
    rows = [ended[one.name] for one in plan.benchmarks if not one.warm_up and one.name in ended]
    good = sum(row.ok for row in rows)
    return Counts(len(plan.permutations), plan.counted, good, len(rows) - good)


def run(
    plan: BenchmarkPlan,
    ended: dict[str, BenchmarkResult],
    executor: Executor,
    store: Callable[[BenchmarkResult], None],
    progress: Progress,
) -> None:
    """Run what has not ended yet; `ended` grows. Whatever is raised, what has ended is stored."""
    left = [one for one in plan.benchmarks if one.name not in ended]
    lock = threading.Lock()

    def one(benchmark: Benchmark) -> BenchmarkResult:
        found = executor.run(benchmark, lambda phase: progress(benchmark, phase, None))
        with lock:
            store(found)
            ended[found.name] = found
        progress(benchmark, found.phase, found)
        return found

    if plan.disjoint and executor.side_by_side:
        _side_by_side(plan, left, one)
        return
    for benchmark in left:
        if not one(benchmark).ok and plan.stop_on_failure:
            return


def startable(waiting: Sequence[Benchmark], running: Iterable[Benchmark]) -> Benchmark | None:
    """The first that shares no node with those that run. One that names no nodes may get any, so it runs alone."""
    taken = list(running)
    if any(not one.spec.nodes for one in taken):
        return None
    busy = {node for one in taken for node in one.spec.nodes}
    for one in waiting:
        if one.spec.nodes and not busy & set(one.spec.nodes):
            return one
        if not one.spec.nodes and not taken:
            return one
    return None


def _side_by_side(plan: BenchmarkPlan, left: list[Benchmark], one: Callable[[Benchmark], BenchmarkResult]) -> None:
    running: dict[Future[BenchmarkResult], Benchmark] = {}
    stopped = False
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        while left or running:
            while not stopped and len(running) < MOST_AT_ONCE and (found := startable(left, running.values())):
                left.remove(found)
                running[pool.submit(one, found)] = found
            if not running:
                return
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                del running[done]
                stopped |= not done.result().ok and plan.stop_on_failure
