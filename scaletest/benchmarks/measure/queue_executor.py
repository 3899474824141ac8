"""Send benchmarks to the workers of a queue, which run `scaletest bench execute`.

A worker runs all parts on its own node. Parts on two workers would need two requests that run at
the same time, and a queue does not promise that. So benchmarks that need two real nodes are
refused.
"""

from collections.abc import Sequence
from dataclasses import replace

from scaletest.benchmarks.documents import (
    Benchmark,
    BenchmarkPhase,
    BenchmarkResult,
    Node,
    read_framed_result,
)
from scaletest.benchmarks.kinds import DIFFERENT_NODES, BenchmarkFailed, Failure
from scaletest.benchmarks.measure.runner import PhaseListener
from scaletest.broker import Client, Queues
from scaletest.broker.connection import Redis
from scaletest.model import Outcome, Reason, Reply, Request, checks, errors, wire

# Failure of a request that brought no result. It may even have succeeded: by workers that run
# another workload than benchmarks.
_FAILURES = {
    (Outcome.FAILED, Reason.NO_DEVICE): Failure.NO_DEVICE,
    (Outcome.FAILED, Reason.NO_BINARY): Failure.NO_BINARY,
    (Outcome.FAILED, Reason.LOST): Failure.INTERRUPTED,
    (Outcome.FAILED, Reason.POISON): Failure.INTERRUPTED,
    (Outcome.TIMED_OUT, Reason.NONE): Failure.TIMED_OUT,
    (Outcome.PURGED, Reason.NONE): Failure.INTERRUPTED,
    (Outcome.CLIENT_GONE, Reason.NONE): Failure.INTERRUPTED,
    (Outcome.SUCCEEDED, Reason.NONE): Failure.REFUSED,
}


class QueueExecutor:
    """Sends benchmarks to a declared queue and waits for each. Not safe for several threads."""

    def __init__(self, redis: Redis, queue: str) -> None:
        """Connect to the queue. Raises UndeclaredQueue."""
        self._redis = redis
        self._queue = queue
        names = Queues(redis).names()
        if queue not in names:
            raise errors.UndeclaredQueue(queue, names)
        self._client = Client(redis)

    def refuse(self, benchmark: Benchmark) -> None:
        """Raise UsageError for a benchmark that one worker cannot run alone."""
        spec = benchmark.spec
        checks.raise_first_mistake(
            (
                spec.placement == DIFFERENT_NODES or spec.nodes or spec.network_name,
                f"{benchmark.name}: a worker runs all parts on its own node",
                "leave placement differentNodes, nodes and networkName out, or use a cluster",
            )
        )

    def nodes(self) -> Sequence[Node]:
        """Return no nodes: none can be chosen, since any free worker takes a request."""
        return ()

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Submit the benchmark and wait for the reply, without a limit on the time in the queue."""
        on_phase(BenchmarkPhase.PENDING)
        request = Request(
            id=self._client.new_id(),
            queue=self._queue,
            arguments=(wire.dump(benchmark.document()),),
            # a minute more, for the worker's work before and after the benchmark
            time_limit_s=benchmark.limit_s + 60.0,
        )
        self._client.submit_one(request)
        try:
            reply = self._wait_for_reply(request)
        except BaseException:
            self._client.cancel(self._queue, [request.id])
            raise
        result = read_reply(benchmark, reply)
        on_phase(result.phase)
        return result

    def close(self) -> None:
        """Sign off from the queue and close the connection."""
        self._client.close()
        self._redis.close()

    def _wait_for_reply(self, request: Request) -> Reply:
        while True:
            for reply in self._client.replies(5.0):
                if reply.id == request.id:
                    return reply
            # after a crash Redis may have forgotten the request
            self._client.recover({request.id: request})


def read_reply(benchmark: Benchmark, reply: Reply) -> BenchmarkResult:
    """Read the worker's framed result from a reply, or build a failure with the reason."""
    result = read_framed_result(str(reply.figures.get("result", "")))
    if result is None:
        failure = _FAILURES.get((reply.outcome, reply.reason), Failure.EXIT)
        message = reply.error or f"the request ended as {reply.outcome}, without a result"
        is_foreign = failure in (Failure.EXIT, Failure.REFUSED)
        remedy = "start workers that run benchmarks: scaletest worker --queue QUEUE bench"
        result = benchmark.failed_by(
            BenchmarkFailed(failure, message, remedy=remedy if is_foreign else ""),
            started_s=reply.started_s,
            finished_s=reply.ended_s,
        )
    return replace(
        result,
        name=benchmark.name,
        environment={
            **result.environment,
            "node": reply.node,
            "worker": reply.worker,
            "wait_s": reply.wait_s,
        },
    )
