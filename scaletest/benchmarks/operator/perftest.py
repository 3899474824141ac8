"""One reconcile pass over an object of kube-perftest's API group: it is converted into ours.

Ours has the same name, belongs to theirs, and is measured like any other; its status is copied
back. So theirs has the fields of our status, and whoever deletes it deletes ours.
"""

from scaletest.benchmarks.documents import BenchmarkPhase, benchmark
from scaletest.benchmarks.objects import config_maps
from scaletest.benchmarks.operator import reporting
from scaletest.benchmarks.operator.status import Document
from scaletest.cluster.objects import ObjectClient, Resource


def reconcile(
    theirs: Resource,
    ours: Resource,
    objects: ObjectClient,
    settings: reporting.ReconcileSettings,
    namespace: str,
    name: str,
) -> str:
    """Bring an object of theirs forward; return its phase if that has changed, else ""."""
    return reporting.report(
        theirs,
        objects,
        namespace,
        name,
        settings,
        lambda document: _copy(ours, objects, namespace, document),
    )


def _copy(
    ours: Resource, objects: ObjectClient, namespace: str, document: Document
) -> tuple[Document, str]:
    """Create ours if there is none; return its status, and what an event says."""
    name, warnings = document["metadata"]["name"], list[str]()
    mine = objects.find(ours, namespace, name)
    if mine is None:
        body = benchmark.read_envelope(
            {key: document[key] for key in ("apiVersion", "kind", "spec")}, warnings
        )
        body["metadata"] = {"name": name, "ownerReferences": [reporting.owner_reference(document)]}
        mine = objects.create(ours, namespace, body)
    if mine is None or not config_maps.is_owned(mine, document["metadata"]["uid"]):
        message = (
            f"there is another {ours.kind} {name} of group scaletest.dev; delete it, or rename"
        )
        return {"phase": str(BenchmarkPhase.FAILED), "message": message}, message
    # their generations count changes of their own specs
    status = {
        key: part for key, part in mine.get("status", {}).items() if key != "observedGeneration"
    }
    status = {"phase": str(BenchmarkPhase.PENDING)} | status
    return status, "; ".join(warnings) or status.get("summary") or status.get("message", "")
