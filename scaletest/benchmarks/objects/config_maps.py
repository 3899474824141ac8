"""Read and write the ConfigMaps of a benchmark: the benchmark as it began, and its result.

Others may write ConfigMaps too, so what cannot be read is an error of this benchmark alone.
"""

import base64
import gzip
from collections.abc import Callable
from typing import Any, TypeVar

from scaletest.benchmarks.documents import Benchmark, BenchmarkResult, read_benchmark
from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, Kind
from scaletest.benchmarks.objects import manifests
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import CONFIG_MAPS
from scaletest.model import errors, wire

T = TypeVar("T")
RESULT = "result.json.gz"
# A small ConfigMap may unpack to a gigabyte: without this limit, whoever may write ConfigMaps could
# fill the operator's memory.
MOST_UNPACKED = 8 * 1024**2


class Damaged(BenchmarkFailed):
    """A ConfigMap of a benchmark was changed by others and cannot be read."""

    def __init__(self, config_map: Document, reason: object) -> None:
        super().__init__(
            Failure.INTERRUPTED,
            f"the ConfigMap {config_map['metadata']['name']} was changed by somebody and cannot be"
            f" read: {reason}",
            remedy="delete the object that it belongs to, and create it again",
        )


def read_agreed(peers: Document, kind: Kind) -> Benchmark:
    """Read the benchmark as it was when its first object was created. Raises Damaged.

    The spec is fixed from then on: changes that follow are not measured.
    """
    texts = peers.get("data") or {}
    try:
        benchmark = read_benchmark(wire.load(texts.get(manifests.DOCUMENT, ""), manifests.DOCUMENT))
    except errors.InvalidValue as error:
        raise Damaged(peers, error.message) from error
    is_same_name = peers["metadata"]["name"] == manifests.name_of(benchmark, "peers")
    if benchmark.kind is not kind or not is_same_name:
        raise Damaged(peers, f"it belongs to {benchmark.kind.name} {benchmark.name}")
    return benchmark


def pack_text(text: str) -> str:
    """Pack a text for `binaryData` of a ConfigMap."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def read_packed(config_map: Document, key: str, read: Callable[[dict[str, Any]], T]) -> T:
    """Read the packed JSON under a key of a ConfigMap, of at most MOST_UNPACKED bytes.

    Raises Damaged.
    """
    try:
        data = base64.b64decode((config_map.get("binaryData") or {})[key])
        return read(wire.load(wire.decompress(data, MOST_UNPACKED, key), key))
    except (KeyError, ValueError, errors.InvalidValue) as error:
        raise Damaged(config_map, f"{key}: {error}") from error


def load_result(
    objects: ObjectClient, namespace: str, name: str, uid: str
) -> BenchmarkResult | None:
    """Load the result that the object with this uid owns; None when there is none."""
    config_map = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    if config_map and is_owned(config_map, uid):
        return read_packed(config_map, RESULT, BenchmarkResult.from_dict)
    return None


def is_owned(document: Document, uid: str) -> bool:
    """Check whether the object with this uid owns the document's object."""
    return uid in [owner["uid"] for owner in document["metadata"].get("ownerReferences", ())]
