"""Results of benchmarks that workers of a queue send back."""

from dataclasses import replace

import pytest

from scaletest.benchmarks.documents import (
    BenchmarkPhase,
    BenchmarkResult,
    frame_result,
    read_benchmark,
)
from scaletest.benchmarks.kinds import Failure
from scaletest.benchmarks.measure.queue_executor import read_reply
from scaletest.model import Outcome, Reason, Reply

BENCHMARK = read_benchmark({"kind": "IPerf"})


@pytest.mark.parametrize(
    ("outcome", "reason", "failure"),
    [
        (Outcome.FAILED, Reason.EXIT, Failure.EXIT),
        (Outcome.FAILED, Reason.NO_BINARY, Failure.NO_BINARY),
        (Outcome.FAILED, Reason.NO_DEVICE, Failure.NO_DEVICE),
        (Outcome.TIMED_OUT, Reason.NONE, Failure.TIMED_OUT),
        # nobody measured these to their end
        (Outcome.FAILED, Reason.LOST, Failure.INTERRUPTED),
        (Outcome.FAILED, Reason.POISON, Failure.INTERRUPTED),
        (Outcome.PURGED, Reason.NONE, Failure.INTERRUPTED),
        (Outcome.CLIENT_GONE, Reason.NONE, Failure.INTERRUPTED),
        # a worker of something else ran it and has no result
        (Outcome.SUCCEEDED, Reason.NONE, Failure.REFUSED),
    ],
)
def test_a_benchmark_that_no_worker_measured_fails_with_advice(
    outcome: Outcome, reason: Reason, failure: Failure
) -> None:
    ended = read_reply(BENCHMARK, Reply("r", outcome, reason))
    assert ended.failure is failure and ended.message and ended.advice and not ended.lines
    assert ended.failure.unmeasured == (failure not in (Failure.EXIT, Failure.TIMED_OUT))


def test_a_result_framed_by_the_worker_is_used() -> None:
    framed = BenchmarkResult(
        "other",
        BenchmarkPhase.FAILED,
        failure=Failure.REFUSED,
        message="too large",
        remedy="choose a smaller size",
    )
    reply = Reply(
        "r", Outcome.FAILED, Reason.EXIT, node="a", figures={"result": frame_result(framed)}
    )
    ended = read_reply(BENCHMARK, reply)
    assert (
        replace(ended, environment={}) == replace(framed, name="iperf")
        and ended.environment["node"] == "a"
    )
