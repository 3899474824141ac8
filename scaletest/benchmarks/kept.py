"""What a benchmark leaves in a cluster: its result, in a ConfigMap that goes with its object; and how the rest goes."""

from __future__ import annotations

import base64
import gzip
from typing import Protocol

from scaletest.benchmarks import gang, manifests, ssh
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.documents import CLAIMS, CONFIG_MAPS, JOBS, SECRETS, SERVICES, Resource
from scaletest.cluster.rights import Right
from scaletest.kinds.benchmark import Benchmark, Ended, read
from scaletest.kinds.kind import Kind
from scaletest.model import wire

RESULT = "result.json.gz"


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


def agreed(peers: Document) -> Benchmark:
    """The benchmark as it was when its first object was made: what is changed later is not measured."""
    return read(wire.load(peers["data"][manifests.DOCUMENT], "the benchmark"))


def keep(objects: Reads, namespace: str, benchmark: Benchmark, owner: Document, ended: Ended) -> Ended | None:
    """Store a result, once: the one that is there already when it is this object's; None when it is another's."""
    packed = gzip.compress(wire.dump(ended.to_dict()).encode(), mtime=0)
    body = {
        "metadata": manifests.meta(benchmark, manifests.result_name(benchmark.name), owner),
        "binaryData": {RESULT: base64.b64encode(packed).decode()},
    }
    if objects.create(CONFIG_MAPS, namespace, body) is not None:
        return ended
    return stored(objects, namespace, benchmark.name, owner["uid"])


def stored(objects: Reads, namespace: str, name: str, uid: str) -> Ended | None:
    """The result that is there, when it is that of this very object."""
    found = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    if found is None or uid not in [one["uid"] for one in found["metadata"].get("ownerReferences", ())]:
        return None
    packed = base64.b64decode(found["binaryData"][RESULT])
    return Ended.from_dict(wire.load(gzip.decompress(packed).decode(), "the stored result"))


def forget(name: str, objects: Reads, namespace: str) -> None:
    """Take away what a benchmark made, its result excepted. Its Jobs go with their pods."""
    labels = f"{manifests.BENCHMARK}={name}"
    for what in (JOBS, SERVICES, CLAIMS):
        for one in objects.list(what, namespace, labels):
            objects.delete(what, namespace, one["metadata"]["name"], one["metadata"]["uid"])
    objects.delete(CONFIG_MAPS, namespace, f"{name}-peers")


def forget_key(kind: Kind, name: str, uid: str, objects: Reads, namespace: str) -> None:
    """Take away the key of a benchmark whose parts start processes on each other."""
    if ssh.wanted(kind):
        objects.delete(SECRETS, namespace, ssh.secret_name(name, uid))


def forget_together(benchmark: Benchmark, objects: Reads, namespace: str) -> None:
    """Take away what held its parts together, with the Jobs that are its own."""
    what = gang.holder(benchmark)
    if what is not None:
        objects.delete(what, namespace, benchmark.name)
