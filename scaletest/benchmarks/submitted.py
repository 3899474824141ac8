"""The cluster's executor: a benchmark becomes an object there, which the operator measures; its result is fetched.

The operator decides when: it sees to it that no two benchmarks of a namespace disturb each other. A run that was
interrupted finds its object again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from scaletest.benchmarks.executor import Node, Told
from scaletest.benchmarks.kept import Damaged, Reads, stored
from scaletest.benchmarks.manifests import SPARE_S, Document, start_s
from scaletest.benchmarks.obstacles import refuse
from scaletest.cluster.documents import NODES, Resource
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure
from scaletest.kinds.registry import API_VERSION

RUN = "scaletest.dev/run"
LOOK_S = 1.0
# An operator that is there looks every second.
SILENT_S = 60.0


class SubmittedExecutor:
    """Benchmarks of one run in one namespace. Needs get, create and delete of our kinds there, and get configmaps."""

    # the operator would have them wait for each other
    side_by_side = False

    def __init__(
        self, objects: Reads, namespace: str, run: str, clock: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        self._objects, self._namespace, self._run = objects, namespace, run
        self._clock, self._sleep = clock, sleep

    def refuse(self, benchmark: Benchmark) -> None:
        """Raises UsageError for what cannot be measured in pods."""
        refuse(benchmark)

    def nodes(self) -> Sequence[Node]:
        """Those of the cluster. Needs the right to list them."""
        rows = self._objects.list(NODES)
        return [Node(one["metadata"]["name"], one["metadata"].get("labels", {})) for one in rows]

    def close(self) -> None:
        """Nothing stays behind a benchmark."""

    def run(self, benchmark: Benchmark, told: Told) -> BenchmarkResult:
        """Have it measured, and take its object away."""
        where, began = Resource(benchmark.kind.name, f"/apis/{API_VERSION}", benchmark.kind.plural, True), self._clock()
        body = benchmark.document()
        body["metadata"]["labels"] = {RUN: self._run}
        made = self._object(where, body)
        if made is None:
            message = f"there is another {benchmark.kind.name} {benchmark.name} in {self._namespace}"
            return self._failed(benchmark, Failure.REFUSED, message, began, remedy="delete it, or use another name")
        try:
            found = self._wait(benchmark, where, made["metadata"]["uid"], told)
        finally:
            self._objects.delete(where, self._namespace, benchmark.name, made["metadata"]["uid"])
        told(found.phase)
        return replace(found, permutation=benchmark.permutation, repetition=benchmark.repetition)

    def _object(self, where: Resource, body: Document) -> Document | None:
        """The run's, made or found; None when it is another's. One that is going is waited for.

        That of a run that was interrupted goes when the operator has cleaned up after it.
        """
        name, until = body["metadata"]["name"], self._clock() + SILENT_S
        while True:
            made = self._objects.create(where, self._namespace, body)
            made = made or self._objects.find(where, self._namespace, name)
            if made is not None and not made["metadata"].get("deletionTimestamp"):
                return made if made["metadata"].get("labels", {}).get(RUN) == self._run else None
            if self._clock() > until:
                return None
            self._sleep(LOOK_S)

    def _wait(self, benchmark: Benchmark, where: Resource, uid: str, told: Told) -> BenchmarkResult:
        began, limit = self._clock(), 2 * start_s(benchmark) + benchmark.limit_s + 2 * SPARE_S
        started, phase = 0.0, ""
        while True:
            found = self._objects.find(where, self._namespace, benchmark.name)
            if found is None or found["metadata"]["uid"] != uid:
                return self._failed(benchmark, Failure.INTERRUPTED, "its object was deleted by somebody", began)
            said: dict[str, Any] = found.get("status") or {}
            if said.get("phase", "") != phase:
                phase = said["phase"]
                if BenchmarkPhase(phase).ended:
                    return self._result(benchmark, found, began)
                told(BenchmarkPhase(phase))
            now = self._clock()
            if not phase and now - began > SILENT_S:
                hint = "install one: docs/how-to/operator.md"
                return self._failed(benchmark, Failure.TIMED_OUT, "no operator looks at it", began, remedy=hint)
            started = started or (now if phase not in ("", BenchmarkPhase.PENDING) else 0.0)
            if started and now - started > limit:
                message = f"the operator brought no result in {limit:.0f} s"
                return self._failed(benchmark, Failure.TIMED_OUT, message, began, str(said.get("message", "")))
            self._sleep(LOOK_S)

    def _result(self, benchmark: Benchmark, found: Document, began: float) -> BenchmarkResult:
        try:
            ended = stored(self._objects, self._namespace, benchmark.name, found["metadata"]["uid"])
        except Damaged as error:
            return self._failed(benchmark, Failure.INTERRUPTED, error.message, began, remedy=error.hint)
        if ended is not None:
            return ended
        said = found["status"]
        failure = Failure(said.get("failure") or Failure.INTERRUPTED)
        message = said.get("message") or "its result is gone"
        lines = map(str, said.get("lines") or ())
        return self._failed(benchmark, failure, message, began, *lines, remedy=str(said.get("remedy") or ""))

    def _failed(
        self, benchmark: Benchmark, failure: Failure, message: str, began: float, *lines: str, remedy: str = ""
    ) -> BenchmarkResult:  # fmt: skip
        return BenchmarkResult(
            benchmark.name, BenchmarkPhase.FAILED, failure=failure, message=message, lines=tuple(filter(None, lines)),
            remedy=remedy,
            started_s=began, finished_s=self._clock(),
        )  # fmt: skip
