"""Run benchmarks in a cluster: create objects that the operator measures, and fetch results.

The operator decides when to measure, so that no two benchmarks of a namespace disturb each other. A
run that was interrupted and is resumed finds its object again.
"""

import time
from collections.abc import Sequence
from typing import Any

from scaletest.benchmarks.documents import (
    FINAL_PHASES,
    Benchmark,
    BenchmarkPhase,
    BenchmarkResult,
    Node,
)
from scaletest.benchmarks.kinds import API_VERSION, BenchmarkFailed, Failure, Kind, fail_if
from scaletest.benchmarks.measure.runner import PhaseListener
from scaletest.benchmarks.objects import config_maps, manifests
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import NODES, Resource

RUN = "scaletest.dev/run"
POLL_S = 1.0
# An operator looks every second, so after this time there is none.
SILENT_S = 60.0


def resource_of(kind: Kind) -> Resource:
    """Return the API path of the objects of a benchmark kind."""
    return Resource(kind.name, f"/apis/{API_VERSION}", kind.plural, True)


def nodes_of(objects: ObjectClient) -> list[Node]:
    """List the cluster's nodes. Needs the right to list them."""
    return [
        Node(node["metadata"]["name"], node["metadata"].get("labels", {}))
        for node in objects.list(NODES)
    ]


class OperatorExecutor:
    """Runs the benchmarks of one run in one namespace.

    Needs the rights to get, create and delete benchmark objects there, and to get ConfigMaps.
    """

    def __init__(self, objects: ObjectClient, namespace: str, run: str) -> None:
        self._objects = objects
        self._namespace = namespace
        self._run = run

    def refuse(self, benchmark: Benchmark) -> None:
        """Raise UsageError for a benchmark that cannot be measured in pods."""
        manifests.require_runnable(benchmark)

    def nodes(self) -> Sequence[Node]:
        """List the cluster's nodes. Needs the right to list them."""
        return nodes_of(self._objects)

    def run(self, benchmark: Benchmark, on_phase: PhaseListener) -> BenchmarkResult:
        """Wait until the operator has measured the benchmark, then delete its object."""
        asked_s = time.time()
        resource = resource_of(benchmark.kind)
        try:
            uid = self._create_or_find(resource, benchmark)["metadata"]["uid"]
            try:
                result = self._wait_for_result(benchmark, resource, uid, on_phase)
            finally:
                self._objects.delete(resource, self._namespace, benchmark.name, uid)
        except BenchmarkFailed as error:
            result = benchmark.failed_by(error, started_s=asked_s, finished_s=time.time())
        on_phase(result.phase)
        return result

    def _create_or_find(self, resource: Resource, benchmark: Benchmark) -> Document:
        """Create the run's object or find it. BenchmarkFailed when another run has the name.

        An object that is being deleted is waited for: it is left from a run that was interrupted,
        and goes when the operator has cleaned up.
        """
        until_s = time.time() + SILENT_S
        body = benchmark.document()
        body["metadata"]["labels"] = {RUN: self._run}
        while True:
            # None where one with that name exists, of this run or of another
            document = self._objects.create(resource, self._namespace, body)
            document = document or self._objects.find(resource, self._namespace, benchmark.name)
            if document is not None and "deletionTimestamp" not in document["metadata"]:
                if document["metadata"].get("labels", {}).get(RUN) == self._run:
                    return document
                break
            if time.time() > until_s:
                break
            time.sleep(POLL_S)
        raise BenchmarkFailed(
            Failure.REFUSED,
            f"there is another {resource.kind} {benchmark.name} in {self._namespace}",
            remedy="delete it, or use another name",
        )

    def _wait_for_result(
        self, benchmark: Benchmark, resource: Resource, uid: str, on_phase: PhaseListener
    ) -> BenchmarkResult:
        """Follow the object's phases to its result. Raises BenchmarkFailed without one."""
        began_s = time.time()
        # the limit counts from the first phase after PENDING; waiting for others has no limit
        limit_s = (
            2 * manifests.start_limit_s(benchmark) + benchmark.limit_s + 2 * manifests.LIMIT_SLACK_S
        )
        started_s = 0.0  # 0 until it has started
        phase = ""
        while True:
            document = self._objects.find(resource, self._namespace, benchmark.name)
            if document is None or document["metadata"]["uid"] != uid:
                raise BenchmarkFailed(Failure.INTERRUPTED, "its object was deleted by somebody")
            status: dict[str, Any] = document.get("status") or {}
            if status.get("phase", "") != phase:
                phase = status["phase"]
                if phase in FINAL_PHASES:
                    break
                on_phase(BenchmarkPhase(phase))
            now_s = time.time()
            fail_if(
                not phase and now_s - began_s > SILENT_S,
                "no operator takes care of it",
                failure=Failure.TIMED_OUT,
                remedy="install one: docs/how-to/operator.md",
            )
            if not started_s and phase not in ("", BenchmarkPhase.PENDING):
                started_s = now_s
            fail_if(
                started_s and now_s - started_s > limit_s,
                f"the operator delivered no result within {limit_s:.0f} s",
                [str(status.get("message", ""))],
                failure=Failure.TIMED_OUT,
            )
            time.sleep(POLL_S)
        result = config_maps.load_result(self._objects, self._namespace, benchmark.name, uid)
        if result is not None:
            return result
        if not status.get("failure"):
            raise BenchmarkFailed(Failure.INTERRUPTED, "its result is gone")
        raise BenchmarkFailed(
            Failure(status["failure"]),
            str(status.get("message", "")),
            list(map(str, status.get("lines") or ())),
            str(status.get("remedy") or ""),
        )
