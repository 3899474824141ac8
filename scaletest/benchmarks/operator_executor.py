"""The executor for clusters: creates objects that the operator measures, and fetches results.

The operator decides when to measure, so that no two benchmarks of a namespace disturb each other. A
run that was interrupted and is resumed finds its object again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.benchmarks.executor import Node, PhaseListener
from scaletest.benchmarks.manifests import SPARE_S, Document, start_s
from scaletest.benchmarks.preflight import refuse
from scaletest.benchmarks.result_store import Damaged, stored
from scaletest.cluster.documents import NODES, Resource
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.registry import API_VERSION

RUN = "scaletest.dev/run"
LOOK_S = 1.0
# An operator looks every second, so after this time there is none.
SILENT_S = 60.0


class OperatorExecutor:
    """Runs the benchmarks of one run in one namespace.

    Needs the rights to get, create and delete benchmark objects there, and to get ConfigMaps.
    """

    # the operator lets one benchmark wait for another, so starting several at once gains nothing
    side_by_side = False

    def __init__(
        self,
        objects: ClusterObjects,
        namespace: str,
        run: str,
        clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._objects = objects
        self._namespace = namespace
        self._run = run
        self._clock = clock
        self._sleep = sleep

    def refuse(self, benchmark: Benchmark) -> None:
        """Raises UsageError for a benchmark that cannot be measured in pods."""
        refuse(benchmark)

    def nodes(self) -> Sequence[Node]:
        """List the cluster's nodes. Needs the right to list them."""
        metadata = [node["metadata"] for node in self._objects.list(NODES)]
        return [Node(meta["name"], meta.get("labels", {})) for meta in metadata]

    def close(self) -> None:
        """Do nothing: `run` deletes the object of each benchmark."""

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Wait until the operator has measured the benchmark, then delete its object."""
        resource = Resource(
            benchmark.kind.name, f"/apis/{API_VERSION}", benchmark.kind.plural, True
        )
        began_s = self._clock()
        body = benchmark.document()
        body["metadata"]["labels"] = {RUN: self._run}
        document = self._ensure(resource, body)
        if document is None:
            message = (
                f"there is another {benchmark.kind.name} {benchmark.name} in {self._namespace}"
            )
            return self._failed(
                benchmark,
                Failure.REFUSED,
                message,
                began_s,
                remedy="delete it, or use another name",
            )
        uid = document["metadata"]["uid"]
        try:
            ended = self._wait(benchmark, resource, uid, on_phase)
        finally:
            self._objects.delete(resource, self._namespace, benchmark.name, uid)
        on_phase(ended.phase)
        return replace(ended, permutation=benchmark.permutation, repetition=benchmark.repetition)

    def _ensure(self, resource: Resource, body: Document) -> Document | None:
        """Create the run's object or find it; None when another run has the name.

        An object that is being deleted is waited for: it is left from a run that was interrupted,
        and goes when the operator has cleaned up.
        """
        name, until = body["metadata"]["name"], self._clock() + SILENT_S
        while True:
            document = self._objects.create(resource, self._namespace, body)
            document = document or self._objects.find(resource, self._namespace, name)
            if document is not None and not document["metadata"].get("deletionTimestamp"):
                own = document["metadata"].get("labels", {}).get(RUN) == self._run
                return document if own else None
            if self._clock() > until:
                return None
            self._sleep(LOOK_S)

    def _wait(
        self, benchmark: Benchmark, resource: Resource, uid: str, on_phase: PhaseListener
    ) -> BenchmarkResult:
        # the limit counts from the first phase after PENDING; waiting for others has no limit
        began_s = self._clock()
        limit_s = 2 * start_s(benchmark) + benchmark.limit_s + 2 * SPARE_S
        started_s, phase = 0.0, ""
        while True:
            document = self._objects.find(resource, self._namespace, benchmark.name)
            if document is None or document["metadata"]["uid"] != uid:
                return self._failed(
                    benchmark, Failure.INTERRUPTED, "its object was deleted by somebody", began_s
                )
            status: dict[str, Any] = document.get("status") or {}
            if status.get("phase", "") != phase:
                phase = status["phase"]
                if BenchmarkPhase(phase).ended:
                    return self._load(benchmark, document, began_s)
                on_phase(BenchmarkPhase(phase))
            now_s = self._clock()
            if not phase and now_s - began_s > SILENT_S:
                return self._without_operator(benchmark, began_s)
            if not started_s and phase not in ("", BenchmarkPhase.PENDING):
                started_s = now_s
            if started_s and now_s - started_s > limit_s:
                message = f"the operator brought no result in {limit_s:.0f} s"
                return self._failed(
                    benchmark, Failure.TIMED_OUT, message, began_s, str(status.get("message", ""))
                )
            self._sleep(LOOK_S)

    def _without_operator(self, benchmark: Benchmark, began_s: float) -> BenchmarkResult:
        hint = "install one: docs/how-to/operator.md"
        return self._failed(
            benchmark, Failure.TIMED_OUT, "no operator takes care of it", began_s, remedy=hint
        )

    def _load(self, benchmark: Benchmark, document: Document, began_s: float) -> BenchmarkResult:
        """Load the stored result, or build one from the object's status when none is stored."""
        try:
            ended = stored(
                self._objects, self._namespace, benchmark.name, document["metadata"]["uid"]
            )
        except Damaged as error:
            return self._failed(
                benchmark, Failure.INTERRUPTED, error.message, began_s, remedy=error.hint
            )
        if ended is not None:
            return ended
        status = document["status"]
        failure = Failure(status.get("failure") or Failure.INTERRUPTED)
        message = status.get("message") or "its result is gone"
        lines = map(str, status.get("lines") or ())
        return self._failed(
            benchmark, failure, message, began_s, *lines, remedy=str(status.get("remedy") or "")
        )

    def _failed(
        self,
        benchmark: Benchmark,
        failure: Failure,
        message: str,
        began_s: float,
        *lines: str,
        remedy: str = "",
    ) -> BenchmarkResult:
        return BenchmarkResult(
            benchmark.name,
            BenchmarkPhase.FAILED,
            failure=failure,
            message=message,
            lines=tuple(filter(None, lines)),
            remedy=remedy,
            started_s=began_s,
            finished_s=self._clock(),
        )
