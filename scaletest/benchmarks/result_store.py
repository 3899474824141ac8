"""Storage of a benchmark's result in a ConfigMap, and deletion of the benchmark's other objects.

The ConfigMap is owned by the benchmark's object and is deleted together with it.
"""

from __future__ import annotations

import base64
import gzip
import math
from typing import Any

from scaletest.benchmarks import gang_scheduling, manifests, ssh
from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import CLAIMS, CONFIG_MAPS, JOBS, SECRETS, SERVICES, Resource
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult, read
from scaletest.kinds.kind import Kind
from scaletest.model import wire
from scaletest.model.errors import InvalidValue
from scaletest.model.packing import unpack

RESULT = "result.json.gz"
# A small ConfigMap may unpack to a gigabyte: without this limit, whoever may write ConfigMaps could
# fill the operator's memory.
MOST_UNPACKED = 8 * 1024**2


class Damaged(InvalidValue):
    """A ConfigMap of a benchmark was changed by somebody else and cannot be read."""

    def __init__(self, config_map: Document, reason: object) -> None:
        super().__init__(
            f"the ConfigMap {config_map['metadata']['name']} was changed by somebody and cannot be"
            f" read: {reason}",
            hint="delete the object that it belongs to, and create it again",
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


def zipped(config_map: Document, key: str) -> dict[str, Any]:
    """Unpack the JSON under a key of a ConfigMap, of at most MOST_UNPACKED bytes.

    Raises Damaged.
    """
    try:
        packed = (config_map.get("binaryData") or {})[key]
        return wire.load(unpack(base64.b64decode(packed), MOST_UNPACKED, key), key)
    except KeyError as error:
        raise Damaged(config_map, f"it has no {key}") from error
    except InvalidValue as error:
        raise Damaged(config_map, error.message) from error
    except ValueError as error:
        raise Damaged(config_map, f"{key}: {error}") from error


def store(
    objects: ClusterObjects,
    namespace: str,
    benchmark: Benchmark,
    owner: Document,
    ended: BenchmarkResult,
) -> BenchmarkResult | None:
    """Store a result once and return the stored one; None when another object has the name."""
    packed = gzip.compress(wire.dump(ended.to_dict()).encode(), mtime=0)
    body = {
        "metadata": manifests.meta(benchmark, manifests.result_name(benchmark.name), owner),
        "binaryData": {RESULT: base64.b64encode(packed).decode()},
    }
    if objects.create(CONFIG_MAPS, namespace, body) is not None:
        return ended
    return stored(objects, namespace, benchmark.name, owner["uid"])


def stored(objects: ClusterObjects, namespace: str, name: str, uid: str) -> BenchmarkResult | None:
    """Load the result that the object with this uid owns; None when there is none."""
    config_map = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    if config_map is None or not owned(config_map, uid):
        return None
    return unpacked(config_map)


def unpacked(config_map: Document) -> BenchmarkResult:
    """Read the result in a ConfigMap. Raises Damaged."""
    fields = zipped(config_map, RESULT)
    try:
        return BenchmarkResult.from_dict(fields)
    except InvalidValue as error:
        raise Damaged(config_map, error.message) from error


def owned(document: Document, uid: str) -> bool:
    """Check whether the object with this uid owns the document's object."""
    return uid in [owner["uid"] for owner in document["metadata"].get("ownerReferences", ())]


def forget(kind: Kind, name: str, uid: str, objects: ClusterObjects, namespace: str) -> None:
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


def forget_together(
    requested: Benchmark, uid: str, objects: ClusterObjects, namespace: str
) -> None:
    """Delete the object that admitted the parts together, with the Jobs that it owns.

    The ConfigMap of the peers tells which kind of object that is, so it must still be there.
    """
    peers = objects.find(CONFIG_MAPS, namespace, f"{requested.name}-peers")
    if peers is None or not owned(peers, uid):
        return
    try:
        benchmark = agreed(peers)
    except Damaged:
        benchmark = requested  # the best guess that is left
    resource = gang_scheduling.holder(benchmark)
    if resource is not None:
        _delete_owned(resource, requested.name, uid, objects, namespace)


def _delete_owned(
    resource: Resource, name: str, uid: str, objects: ClusterObjects, namespace: str
) -> None:
    document = objects.find(resource, namespace, name)
    if document is not None and owned(document, uid):
        objects.delete(resource, namespace, name, document["metadata"]["uid"])
