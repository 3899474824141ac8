"""Cluster objects that one benchmark owns, its result among them: created once, found, deleted.

Every object has a fixed name, and an object that exists is not created again. So whichever process
makes the next reconcile pass finds what an earlier one has done. The result is in a ConfigMap that
the benchmark's object owns, so it is deleted together with that.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkResult, read
from scaletest.benchmarks.kinds.kind import BenchmarkFailed, Failure, Kind
from scaletest.benchmarks.objects import gang_scheduling, manifests, pod_status, ssh
from scaletest.benchmarks.objects.manifests import Document
from scaletest.cluster.answers import Busy, Conflict
from scaletest.cluster.objects import Documents
from scaletest.cluster.resources import CLAIMS, CONFIG_MAPS, JOBS, PODS, SECRETS, SERVICES, Resource
from scaletest.model import wire
from scaletest.model.errors import InvalidValue

T = TypeVar("T")
RESULT = "result.json.gz"
# A small ConfigMap may unpack to a gigabyte: without this limit, whoever may write ConfigMaps could
# fill the operator's memory.
MOST_UNPACKED = 8 * 1024**2


class NameConflict(Exception):
    """Another object has a name that is needed; it may be about to be deleted."""


class Damaged(BenchmarkFailed):
    """A ConfigMap of a benchmark was changed by somebody else and cannot be read."""

    def __init__(self, config_map: Document, reason: object) -> None:
        super().__init__(
            Failure.INTERRUPTED,
            f"the ConfigMap {config_map['metadata']['name']} was changed by somebody and cannot be"
            f" read: {reason}",
            remedy="delete the object that it belongs to, and create it again",
        )


def agreed(peers: Document) -> Benchmark:
    """Read the benchmark as it was when its first object was created. Raises Damaged.

    The spec is fixed from then on: changes that follow are not measured.
    """
    texts = peers.get("data") or {}
    if manifests.DOCUMENT not in texts:
        raise Damaged(peers, f"it has no {manifests.DOCUMENT}")
    try:
        benchmark = read(wire.load(texts[manifests.DOCUMENT], manifests.DOCUMENT))
    except InvalidValue as error:
        raise Damaged(peers, error.message) from error
    if peers["metadata"]["name"] != manifests.name_of(benchmark, "peers"):
        raise Damaged(peers, f"it belongs to another benchmark, {benchmark.name}")
    return benchmark


def measuring_s(peers: Document) -> float:
    """Read when measuring began, in seconds since the epoch. Raises Damaged."""
    try:
        began_s = float(peers["data"][manifests.MEASURING])
    except ValueError as error:
        raise Damaged(peers, f"{manifests.MEASURING}: {error}") from error
    if not math.isfinite(began_s):
        raise Damaged(peers, f"{manifests.MEASURING}: {began_s} is not a time")
    return began_s


def packed(text: str) -> str:
    """Pack a text for `binaryData` of a ConfigMap."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def zipped(config_map: Document, key: str, read: Callable[[dict[str, Any]], T]) -> T:
    """Read the packed JSON under a key of a ConfigMap, of at most MOST_UNPACKED bytes.

    Raises Damaged.
    """
    try:
        data = base64.b64decode((config_map.get("binaryData") or {})[key])
        return read(wire.load(wire.unpack(data, MOST_UNPACKED, key), key))
    except KeyError as error:
        raise Damaged(config_map, f"it has no {key}") from error
    except InvalidValue as error:
        raise Damaged(config_map, error.message) from error
    except ValueError as error:
        raise Damaged(config_map, f"{key}: {error}") from error


def stored(objects: Documents, namespace: str, name: str, uid: str) -> BenchmarkResult | None:
    """Load the result that the object with this uid owns; None when there is none."""
    config_map = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    if config_map is None or not owned(config_map, uid):
        return None
    return zipped(config_map, RESULT, BenchmarkResult.from_dict)


def owned(document: Document, uid: str) -> bool:
    """Check whether the object with this uid owns the document's object."""
    return uid in [owner["uid"] for owner in document["metadata"].get("ownerReferences", ())]


def forget(kind: Kind, name: str, uid: str, objects: Documents, namespace: str) -> None:
    """Delete the objects of a benchmark except its result. Jobs are deleted with their pods.

    Only objects that `uid` owns are deleted: a benchmark of another kind may have the same name,
    and so may a later benchmark of this kind.
    """
    for resource in (JOBS, SERVICES, CLAIMS):
        for document in objects.list(resource, namespace, manifests.own(name, uid)):
            objects.delete(
                resource, namespace, document["metadata"]["name"], document["metadata"]["uid"]
            )
    if ssh.wanted(kind):
        objects.delete(SECRETS, namespace, ssh.secret_name(name, uid))
    _delete_owned(CONFIG_MAPS, f"{name}-peers", uid, objects, namespace)


def _delete_owned(
    resource: Resource, name: str, uid: str, objects: Documents, namespace: str
) -> None:
    document = objects.find(resource, namespace, name)
    if document is not None and owned(document, uid):
        objects.delete(resource, namespace, name, document["metadata"]["uid"])


@dataclass(frozen=True, slots=True)
class OwnedObjects:
    """Cluster objects owned by one benchmark, for one reconcile pass.

    benchmark: as requested; only its name and its kind count here, and these never change.
    """

    _benchmark: Benchmark
    _objects: Documents
    _namespace: str
    _owner: Document

    def agreed(self, peers: Document) -> Benchmark:
        """Read the benchmark from the ConfigMap of its peers. Raises Damaged."""
        benchmark = agreed(peers)
        if benchmark.kind is not self._benchmark.kind:
            raise Damaged(peers, f"it is of another kind, {benchmark.kind.name}")
        return benchmark

    def ensure(
        self, resource: Resource, body: Document, before_create: Callable[[], None] = lambda: None
    ) -> Document:
        """Find the object or create it, `before_create` first.

        Raises NameConflict when another owner has the name, and Conflict when another operator has
        ended the benchmark meanwhile.
        """
        name = body["metadata"]["name"]
        document = self._objects.find(resource, self._namespace, name)
        if document is None:
            before_create()
            document = self._objects.create(resource, self._namespace, body) or {"metadata": {}}
            if self.result() is not None:
                # another operator has ended the benchmark meanwhile
                self.delete()
                raise Conflict(
                    f"another operator has ended {self._benchmark.name}",
                    hint="run one operator a namespace",
                )
        if not owned(document, self._owner["uid"]):
            raise NameConflict(f"{resource.plural} {name} is there and belongs to something else")
        return document

    def create_key(self) -> None:
        """Create the Secret with the SSH key, where the parts start processes on each other.

        Its name holds the benchmark's uid, so one that exists is this benchmark's own.
        """
        if ssh.wanted(self._benchmark.kind):
            self._objects.create(
                SECRETS, self._namespace, manifests.secret(self._benchmark, self._owner)
            )

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

    def log_if_readable(self, pod: Document) -> str:
        """Read a pod's log; "" also when it cannot be read, since its node may be gone for good."""
        with contextlib.suppress(Busy):
            return self._objects.log(self._namespace, pod_status.name(pod))
        return ""

    def result(self) -> BenchmarkResult | None:
        """Load the stored result. Raises NameConflict when another object has its name.

        That is checked before measuring, so that no measurement is lost for want of a name.
        """
        name = manifests.result_name(self._benchmark.name)
        document = self._objects.find(CONFIG_MAPS, self._namespace, name)
        if document is None:
            return None
        if not owned(document, self._owner["uid"]):
            raise NameConflict(f"configmaps {name} is there and belongs to something else")
        try:
            return zipped(document, RESULT, BenchmarkResult.from_dict)
        except Damaged as error:
            if self._peers() is None:
                return self._benchmark.failed_by(error)
            # nothing else was deleted yet: the pods still tell the result, or why there is none
            self._objects.delete(CONFIG_MAPS, self._namespace, name, document["metadata"]["uid"])
            return None

    def store(self, ended: BenchmarkResult) -> BenchmarkResult | None:
        """Store a result once and return the stored one; None when another object has the name."""
        benchmark, owner = self._benchmark, self._owner
        body = {
            "metadata": manifests.meta(benchmark, manifests.result_name(benchmark.name), owner),
            "binaryData": {RESULT: packed(wire.dump(ended.to_dict()))},
        }
        if self._objects.create(CONFIG_MAPS, self._namespace, body) is not None:
            return ended
        try:
            return stored(self._objects, self._namespace, benchmark.name, owner["uid"])
        except Damaged as error:
            # the next pass says so of the result that it finds
            raise Conflict(error.message, hint=error.remedy) from error

    def delete(self) -> None:
        """Delete all objects except the result.

        First the PodGroup of a gang: the ConfigMap of the peers tells whether there is one, so it
        must still be there.
        """
        uid, name = self._owner["uid"], self._benchmark.name
        if peers := self._peers():
            benchmark = self._benchmark  # the best guess if the ConfigMap was changed
            with contextlib.suppress(Damaged):
                benchmark = agreed(peers)
            if gang_scheduling.wanted(benchmark):
                _delete_owned(gang_scheduling.POD_GROUPS, name, uid, self._objects, self._namespace)
        forget(self._benchmark.kind, name, uid, self._objects, self._namespace)

    def _peers(self) -> Document | None:
        """Find the ConfigMap of the peers, if it is this benchmark's own."""
        name = manifests.name_of(self._benchmark, "peers")
        peers = self._objects.find(CONFIG_MAPS, self._namespace, name)
        return peers if peers and owned(peers, self._owner["uid"]) else None
