"""What a benchmark leaves in a cluster: its result, in a ConfigMap that goes with its object; and how the rest goes."""

from __future__ import annotations

import base64
import gzip
import math
from typing import Any, Protocol

from scaletest.benchmarks import gang, manifests, ssh
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import CLAIMS, CONFIG_MAPS, JOBS, SECRETS, SERVICES, Resource
from scaletest.cluster.rights import Right
from scaletest.kinds.benchmark import Benchmark, BenchmarkResult, read
from scaletest.kinds.kind import Kind
from scaletest.model import wire
from scaletest.model.errors import InvalidValue
from scaletest.model.packing import unpack

RESULT = "result.json.gz"
# Whoever may write ConfigMaps could else fill the operator's memory: one may unpack to a gigabyte.
MOST_UNPACKED = 8 * 1024**2


class Reads(Protocol):
    """What is used of cluster.documents.Documents; tests script it."""

    def find(self, what: Resource, namespace: str, name: str) -> Document | None: ...
    def list(self, what: Resource, namespace: str = "", labels: str = "", fields: str = "") -> list[Document]: ...
    def create(self, what: Resource, namespace: str, body: Document) -> Document | None: ...
    def patch(self, what: Resource, namespace: str, name: str, body: Document, part: str = "") -> Document: ...
    def delete(self, what: Resource, namespace: str, name: str, uid: str = "") -> None: ...
    def may(self, namespace: str, home: str, account: str, right: Right) -> bool: ...
    def version(self) -> str: ...
    def log(self, namespace: str, pod: str) -> str | None: ...


class Damaged(InvalidValue):
    """A ConfigMap of ours was changed by somebody and cannot be read."""

    def __init__(self, found: Document, why: object) -> None:
        super().__init__(
            f"the ConfigMap {found['metadata']['name']} was changed by somebody and cannot be read: {why}",
            hint="delete the object that it belongs to, and make it again",
        )


def agreed(peers: Document) -> Benchmark:
    """The benchmark as it was when its first object was made: what is changed later is not measured. Raises Damaged."""
    data = peers.get("data") or {}
    if manifests.DOCUMENT not in data:
        raise Damaged(peers, f"it has no {manifests.DOCUMENT}")
    try:
        found = read(wire.load(data[manifests.DOCUMENT], manifests.DOCUMENT))
    except InvalidValue as error:
        raise Damaged(peers, error.message) from error
    if peers["metadata"]["name"] != manifests.name_of(found, "peers"):
        raise Damaged(peers, f"it is of another benchmark, {found.name}")
    return found


def measuring_s(peers: Document) -> float:
    """When measuring was begun, in seconds since the epoch. Raises Damaged."""
    try:
        found = float(peers["data"][manifests.MEASURING])
    except ValueError as error:
        raise Damaged(peers, f"{manifests.MEASURING}: {error}") from error
    if not math.isfinite(found):
        raise Damaged(peers, f"{manifests.MEASURING}: {found} is no time")
    return found


def zipped(found: Document, key: str) -> dict[str, Any]:
    """What is packed under a key of a ConfigMap, of at most MOST_UNPACKED bytes. Raises Damaged."""
    try:
        packed = (found.get("binaryData") or {})[key]
        return wire.load(unpack(base64.b64decode(packed), MOST_UNPACKED, key), key)
    except KeyError as error:
        raise Damaged(found, f"it has no {key}") from error
    except InvalidValue as error:
        raise Damaged(found, error.message) from error
    except ValueError as error:
        raise Damaged(found, f"{key}: {error}") from error


def keep(
    objects: Reads, namespace: str, benchmark: Benchmark, owner: Document, ended: BenchmarkResult
) -> BenchmarkResult | None:
    """Store a result, once: the one that is there already when it is this object's; None when it is another's."""
    packed = gzip.compress(wire.dump(ended.to_dict()).encode(), mtime=0)
    body = {
        "metadata": manifests.meta(benchmark, manifests.result_name(benchmark.name), owner),
        "binaryData": {RESULT: base64.b64encode(packed).decode()},
    }
    if objects.create(CONFIG_MAPS, namespace, body) is not None:
        return ended
    return stored(objects, namespace, benchmark.name, owner["uid"])


def stored(objects: Reads, namespace: str, name: str, uid: str) -> BenchmarkResult | None:
    """The result that is there, when it is that of this very object."""
    found = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    return unpacked(found) if found is not None and owned(found, uid) else None


def unpacked(found: Document) -> BenchmarkResult:
    """The result in a ConfigMap. Raises Damaged."""
    data = zipped(found, RESULT)
    try:
        return BenchmarkResult.from_dict(data)
    except InvalidValue as error:
        raise Damaged(found, error.message) from error


def owned(found: Document, uid: str) -> bool:
    """Whether it belongs to the object of that uid."""
    return uid in [one["uid"] for one in found["metadata"].get("ownerReferences", ())]


def forget(kind: Kind, name: str, uid: str, objects: Reads, namespace: str) -> None:
    """Take away what a benchmark made, its result excepted. Its Jobs go with their pods.

    Nothing of another one of that name: a kind has its own names, and one that is gone may be there again.
    """
    for what in (JOBS, SERVICES, CLAIMS):
        for one in objects.list(what, namespace, manifests.own(name, uid)):
            objects.delete(what, namespace, one["metadata"]["name"], one["metadata"]["uid"])
    if ssh.wanted(kind):
        objects.delete(SECRETS, namespace, ssh.secret_name(name, uid))
    _forget_one(CONFIG_MAPS, f"{name}-peers", uid, objects, namespace)


def forget_together(asked: Benchmark, uid: str, objects: Reads, namespace: str) -> None:
    """Take away what held its parts together, with the Jobs that are its own; the peers still say what that was."""
    peers = objects.find(CONFIG_MAPS, namespace, f"{asked.name}-peers")
    if peers is None or not owned(peers, uid):
        return
    try:
        one = agreed(peers)
    except Damaged:
        one = asked  # nobody knows better
    if what := gang.holder(one):
        _forget_one(what, asked.name, uid, objects, namespace)


def _forget_one(what: Resource, name: str, uid: str, objects: Reads, namespace: str) -> None:
    found = objects.find(what, namespace, name)
    if found is not None and owned(found, uid):
        objects.delete(what, namespace, name, found["metadata"]["uid"])
