"""Cluster objects that one benchmark owns: created once, found again, deleted at the end.

Every object has a fixed name, and an object that exists is not created again. So whichever process
makes the next reconcile pass finds what an earlier one has done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from scaletest.benchmarks import manifests, outcomes, pod_status, ssh
from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.observation import BenchmarkContext
from scaletest.benchmarks.outcomes import NameConflict
from scaletest.benchmarks.result_store import (
    Damaged,
    agreed,
    forget,
    forget_together,
    owned,
    store,
    unpacked,
)
from scaletest.cluster.connection import Busy, Conflict
from scaletest.cluster.documents import CONFIG_MAPS, PODS, SECRETS, Resource
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult
from scaletest.kinds.kind import Failure


class OwnedObjects:
    """Cluster objects owned by one benchmark, for one reconcile pass.

    benchmark: as requested; only its name and its kind count here, and these never change.
    clock: seconds since the epoch.
    """

    def __init__(
        self,
        benchmark: Benchmark,
        objects: ClusterObjects,
        context: BenchmarkContext,
        clock: Callable[[], float],
    ) -> None:
        self._benchmark = benchmark
        self._objects = objects
        self._clock = clock
        self._namespace = context.namespace
        self._owner = context.owner

    def agreed(self, peers: Document) -> Benchmark:
        """Read the benchmark from the ConfigMap of its peers. Raises Damaged."""
        benchmark = agreed(peers)
        if benchmark.kind is not self._benchmark.kind:
            raise Damaged(peers, f"it is of another kind, {benchmark.kind.name}")
        return benchmark

    def find(self, resource: Resource, name: str) -> Document | None:
        """Find an object of the benchmark's namespace, whoever owns it."""
        return self._objects.find(resource, self._namespace, name)

    def patch(self, resource: Resource, name: str, change: Document) -> None:
        """Merge a change into an object of the benchmark's namespace."""
        self._objects.patch(resource, self._namespace, name, change)

    def ensure(
        self, resource: Resource, body: Document, before_create: Callable[[], None] = lambda: None
    ) -> Document:
        """Find the object or create it, `before_create` first.

        Raises NameConflict when another owner has the name.
        """
        name = body["metadata"]["name"]
        document = self.find(resource, name)
        if document is None:
            before_create()
            document = self._objects.create(resource, self._namespace, body) or {"metadata": {}}
            self._require_unfinished()
        if not owned(document, self._owner["uid"]):
            raise NameConflict(f"{resource.plural} {name} is there and belongs to something else")
        return document

    def create_key(self) -> None:
        """Create the Secret with the SSH key, where the parts start processes on each other.

        Its name holds the benchmark's uid, so one that exists is this benchmark's own.
        """
        if ssh.wanted(self._benchmark.kind):
            body = manifests.secret(self._benchmark, self._owner)
            self._objects.create(SECRETS, self._namespace, body)

    def pods(self) -> tuple[Document, ...]:
        """List the benchmark's pods."""
        selector = manifests.own(self._benchmark.name, self._owner["uid"])
        # a debug copy of a pod lacks some of the labels
        return tuple(
            pod
            for pod in self._objects.list(PODS, self._namespace, selector)
            if pod_status.marked(pod)
        )

    def measuring(self, pods: tuple[Document, ...]) -> list[Document]:
        """Choose the pods of the measuring role."""
        return [
            pod
            for pod in pods
            if pod["metadata"]["labels"][manifests.ROLE] == self._benchmark.kind.measures
        ]

    def log(self, pod: Document) -> str:
        """Read a pod's log; "" without one. Raises Busy while its node does not answer."""
        return self._objects.log(self._namespace, pod_status.name(pod)) or ""

    def log_if_readable(self, pod: Document) -> str:
        """Read a pod's log; "" also when it cannot be read, since its node may be gone for good."""
        with contextlib.suppress(Busy):
            return self.log(pod)
        return ""

    def result(self) -> BenchmarkResult | None:
        """Load the stored result. Raises NameConflict when another object has its name.

        That is checked before measuring, so that no measurement is lost for want of a name.
        """
        name = manifests.result_name(self._benchmark.name)
        document = self.find(CONFIG_MAPS, name)
        if document is None:
            return None
        if not owned(document, self._owner["uid"]):
            raise NameConflict(f"configmaps {name} is there and belongs to something else")
        try:
            return unpacked(document)
        except Damaged as error:
            peers = self.find(CONFIG_MAPS, manifests.name_of(self._benchmark, "peers"))
            if peers is None or not owned(peers, self._owner["uid"]):
                return outcomes.failed(
                    self._benchmark,
                    self._clock(),
                    Failure.INTERRUPTED,
                    error.message,
                    remedy=error.hint,
                )
            # nothing else was deleted yet: the pods still tell the result, or why there is none
            self._objects.delete(CONFIG_MAPS, self._namespace, name, document["metadata"]["uid"])
            return None

    def store(self, ended: BenchmarkResult) -> BenchmarkResult | None:
        """Store the result; returns what is stored, None when another object has the name."""
        return store(self._objects, self._namespace, self._benchmark, self._owner, ended)

    def delete(self) -> None:
        """Delete all objects except the result."""
        uid = self._owner["uid"]
        forget_together(self._benchmark, uid, self._objects, self._namespace)
        forget(self._benchmark.kind, self._benchmark.name, uid, self._objects, self._namespace)

    def _require_unfinished(self) -> None:
        """Delete what was just created when another operator has ended the benchmark meanwhile.

        Raises Conflict.
        """
        if self.result() is not None:
            self.delete()
            message = f"another operator has ended {self._benchmark.name}"
            raise Conflict(message, hint="run one operator a namespace")
