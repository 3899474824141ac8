"""The executor that has an operator measure benchmarks, on an API server in memory."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from scaletest.benchmarks.documents import BenchmarkPhase, benchmark
from scaletest.benchmarks.measure import operator_executor
from scaletest.benchmarks.measure.operator_executor import RUN, OperatorExecutor
from tests.unit.fake_cluster import FakeCluster, asked, cluster_with, look

IPERF = benchmark.read_benchmark({"kind": "IPerf", "metadata": {"name": "one"}})


def executor_on(
    cluster: FakeCluster, sleep: Callable[[float], object], monkeypatch: pytest.MonkeyPatch
) -> OperatorExecutor:
    """An executor that has the time of the cluster, and calls `sleep` when it waits."""
    clock = SimpleNamespace(time=lambda: cluster.now, sleep=sleep)
    monkeypatch.setattr(operator_executor, "time", clock)
    return OperatorExecutor(cluster, "ns", "run-1")


def test_an_executor_has_the_operator_measure_and_leaves_no_object(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given an operator that looks whenever the executor waits
    cluster, phases = FakeCluster(), list[BenchmarkPhase]()
    executor = executor_on(cluster, lambda _: look(cluster), monkeypatch)
    # when it runs one
    measured = executor.run(IPERF, phases.append)
    # expect the phases as they come, the result, and no object
    assert measured.ok and measured.headlines == {"bandwidth": 5e9}
    assert phases == [
        BenchmarkPhase.PREPARING,
        BenchmarkPhase.SUMMARISING,
        BenchmarkPhase.COMPLETED,
    ]
    assert ("iperfs", "one") not in cluster.objects
    # and one of another run is left alone
    asked(cluster)
    measured = executor.run(IPERF, phases.append)
    assert (measured.phase, measured.failure) == (BenchmarkPhase.FAILED, "refused")
    assert ("iperfs", "one") in cluster.objects


def test_an_executor_without_an_operator_times_out_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = FakeCluster()

    def sleep(seconds: float) -> None:
        cluster.now += seconds

    measured = executor_on(cluster, sleep, monkeypatch).run(IPERF, lambda phase: None)
    assert (measured.failure, measured.message) == ("timed_out", "no operator takes care of it")
    assert ("iperfs", "one") not in cluster.objects


def test_an_executor_that_was_killed_finds_its_benchmark_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # given the object of a run that was killed, which is being measured
    cluster = cluster_with()
    cluster.objects["iperfs", "one"]["metadata"]["labels"] = {RUN: "run-1"}
    look(cluster)
    # when the run goes on
    executor = executor_on(cluster, lambda _: look(cluster), monkeypatch)
    # expect the result of that one measurement
    assert executor.run(IPERF, lambda phase: None).ok
    assert cluster.made.count("jobs/one-client") == 1
