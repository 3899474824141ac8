"""Create, find and delete the cluster objects that one benchmark owns, its result among them.

Every object has a fixed name, and an object that exists is not created again. So whichever process
makes the next reconcile pass finds what an earlier one has done. The result is in a ConfigMap that
the benchmark's object owns, so it is deleted together with that.
"""

from collections.abc import Callable
from dataclasses import dataclass

from scaletest.benchmarks.documents import Benchmark, BenchmarkResult
from scaletest.benchmarks.kinds import Kind
from scaletest.benchmarks.objects import config_maps, manifests, pod_status, ssh
from scaletest.cluster.api_calls import Conflict
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import CLAIMS, CONFIG_MAPS, JOBS, PODS, SECRETS, Resource
from scaletest.model import wire


class NameConflict(Exception):
    """Another object has a name that is needed; it may be about to be deleted."""


def delete_objects(kind: Kind, name: str, uid: str, objects: ObjectClient, namespace: str) -> None:
    """Delete the objects of a benchmark except its result. Jobs are deleted with their pods.

    Only objects that `uid` owns are deleted: a benchmark of another kind may have the same name,
    and so may a later benchmark of this kind.
    """
    for resource in (JOBS, CLAIMS):
        for document in objects.list(resource, namespace, manifests.selector_of(name, uid)):
            objects.delete(
                resource, namespace, document["metadata"]["name"], document["metadata"]["uid"]
            )
    if ssh.is_needed(kind):
        objects.delete(SECRETS, namespace, ssh.secret_name(name, uid))
    peers = objects.find(CONFIG_MAPS, namespace, f"{name}-peers")
    if peers is not None and config_maps.is_owned(peers, uid):
        objects.delete(CONFIG_MAPS, namespace, f"{name}-peers", peers["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """Cluster objects owned by one benchmark, for one reconcile pass."""

    # as requested: only its name and its kind count here, and these never change
    _benchmark: Benchmark
    _objects: ObjectClient
    _namespace: str
    _owner: Document  # owner reference to the benchmark's object

    def ensure(
        self,
        resource: Resource,
        body: Document,
        before_create: Callable[[], None] = lambda: None,
    ) -> Document:
        """Find the object or create it, `before_create` first.

        Raises NameConflict when another owner has the name, and Conflict when another operator has
        ended the benchmark meanwhile.
        """
        name = body["metadata"]["name"]
        document = self._objects.find(resource, self._namespace, name)
        if document is None:
            before_create()
            # nothing is created where another operator was faster: then it is not owned either
            document = self._objects.create(resource, self._namespace, body) or {"metadata": {}}
            if self.find_result() is not None:
                # another operator has ended the benchmark meanwhile
                self.delete_all()
                raise Conflict(
                    f"another operator has ended {self._benchmark.name}",
                    hint="run one operator per namespace",
                )
        if not config_maps.is_owned(document, self._owner["uid"]):
            raise NameConflict(
                f"{resource.plural} {name} already exists and belongs to something else"
            )
        return document

    def create_key(self) -> None:
        """Create the Secret with the SSH key, where the parts start processes on each other.

        Its name holds the benchmark's uid, so one that exists is this benchmark's own.
        """
        if ssh.is_needed(self._benchmark.kind):
            self._objects.create(
                SECRETS, self._namespace, manifests.secret(self._benchmark, self._owner)
            )

    def list_pods(self) -> tuple[Document, ...]:
        """List the benchmark's pods."""
        selector = manifests.selector_of(self._benchmark.name, self._owner["uid"])
        # a debug copy of a pod lacks some of the labels
        return tuple(
            pod
            for pod in self._objects.list(PODS, self._namespace, selector)
            if pod_status.names_its_part(pod)
        )

    def measuring_pods(self, pods: tuple[Document, ...]) -> list[Document]:
        """Choose the pods of the measuring role."""
        return [
            pod
            for pod in pods
            if pod["metadata"]["labels"][manifests.ROLE] == self._benchmark.kind.measures
        ]

    def find_result(self) -> BenchmarkResult | None:
        """Load the stored result. Raises NameConflict when another object has its name.

        That is checked before measuring, so that no measurement is lost for want of a name.
        """
        name = manifests.result_name(self._benchmark.name)
        document = self._objects.find(CONFIG_MAPS, self._namespace, name)
        if document is None:
            return None
        if not config_maps.is_owned(document, self._owner["uid"]):
            raise NameConflict(f"configmaps {name} already exists and belongs to something else")
        try:
            return config_maps.read_packed(document, config_maps.RESULT, BenchmarkResult.from_dict)
        except config_maps.Damaged as error:
            return self._benchmark.failed_by(error)

    def store_result(self, result: BenchmarkResult) -> None:
        """Store a result, unless there is one already."""
        name = manifests.result_name(self._benchmark.name)
        body = {
            "metadata": manifests.owned_metadata(self._benchmark, name, self._owner),
            "binaryData": {config_maps.RESULT: config_maps.pack_text(wire.dump(result.to_dict()))},
        }
        self._objects.create(CONFIG_MAPS, self._namespace, body)

    def delete_all(self) -> None:
        """Delete all objects except the result."""
        benchmark, uid = self._benchmark, self._owner["uid"]
        delete_objects(benchmark.kind, benchmark.name, uid, self._objects, self._namespace)
