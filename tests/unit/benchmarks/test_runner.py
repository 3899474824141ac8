"""A plan is run in its order, once, until a failure ends it."""

from collections.abc import Callable, Sequence

import pytest

from scaletest.benchmarks.documents import (
    Benchmark,
    BenchmarkPhase,
    BenchmarkResult,
    Node,
    read_benchmark,
)
from scaletest.benchmarks.measure.runner import PhaseListener, first_startable, run_plan
from scaletest.benchmarks.plan import BenchmarkPlan
from tests.unit.benchmarks.test_sweep import NODES, counts, plan


class Scripted:
    """An executor with scripted results."""

    def __init__(self, result: Callable[[Benchmark], BenchmarkResult]) -> None:
        self.result = result
        self.ran: list[str] = []

    def refuse(self, benchmark: Benchmark) -> None:
        pass

    def nodes(self) -> Sequence[Node]:
        return NODES

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        self.ran.append(benchmark.name)
        on_phase(BenchmarkPhase.RUNNING)
        return self.result(benchmark)


def completed(benchmark: Benchmark) -> BenchmarkResult:
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.COMPLETED,
        {"bandwidth": 1e9},
    )


def failed(benchmark: Benchmark) -> BenchmarkResult:
    return BenchmarkResult(
        benchmark.name,
        BenchmarkPhase.FAILED,
        message="no",
    )


def play(
    planned: BenchmarkPlan, executor: Scripted, ended: dict[str, BenchmarkResult] | None = None
) -> dict[str, BenchmarkResult]:
    done: dict[str, BenchmarkResult] = {} if ended is None else ended
    stored: list[str] = []
    run_plan(
        planned,
        done,
        executor,
        lambda ended_benchmark: stored.append(ended_benchmark.name),
        lambda *_: None,
    )
    assert stored == executor.ran
    return done


def test_a_failure_ends_the_set_only_with_on_failure_stop() -> None:
    product = {"product": {"streams": [1, 2, 4]}}
    going_on, stopping = plan(permutations=product), plan(permutations=product, onFailure="stop")
    assert counts(going_on, play(going_on, Scripted(failed))) == (0, 3)
    executor = Scripted(failed)
    assert counts(stopping, play(stopping, executor)) == (0, 1)
    assert executor.ran == ["s-1"]


def test_ended_benchmarks_are_not_measured_again() -> None:
    planned = plan(permutations={"product": {"streams": [1, 2, 4]}})
    first = planned.benchmarks[0]
    executor = Scripted(completed)
    done = play(planned, executor, {first.name: completed(first)})
    assert executor.ran == ["s-2", "s-3"] and counts(planned, done) == (3, 0)


def test_an_interrupted_benchmark_is_not_stored() -> None:
    planned = plan(permutations={"product": {"streams": [1, 2, 4]}})
    done: dict[str, BenchmarkResult] = {}

    def second(benchmark: Benchmark) -> BenchmarkResult:
        if benchmark.name == "s-2":
            raise KeyboardInterrupt
        return completed(benchmark)

    with pytest.raises(KeyboardInterrupt):
        run_plan(planned, done, Scripted(second), lambda _: None, lambda *_: None)
    assert list(done) == ["s-1"]


def on(*names: str) -> Benchmark:
    return read_benchmark({"kind": "IPerf", "spec": {"nodes": list(names)}})


def test_only_benchmarks_that_share_no_node_run_at_once() -> None:
    waiting = [on("a", "b"), on("b", "c"), on("c", "d"), on()]
    assert first_startable(waiting, []) is waiting[0]
    assert first_startable(waiting[1:], [waiting[0]]) is waiting[2]
    assert first_startable([waiting[1]], [waiting[0]]) is None
    assert first_startable([waiting[3]], [waiting[0]]) is None, (
        "one that may get any node runs alone"
    )
    assert first_startable([waiting[0]], [waiting[3]]) is None
    assert first_startable([waiting[3]], []) is waiting[3]
