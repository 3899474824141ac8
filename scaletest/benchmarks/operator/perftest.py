"""Reconcile an object of kube-perftest's API group by converting it into ours.

Ours has the same name, belongs to theirs, and is measured like any other; its status is copied
back. So theirs has the fields of our status, and deleting it deletes ours.
"""

from dataclasses import dataclass

from scaletest.benchmarks.documents import BenchmarkPhase, benchmark
from scaletest.benchmarks.objects import config_maps
from scaletest.benchmarks.operator import reporting
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import Resource


def reconcile(
    theirs: Resource,
    ours: Resource,
    objects: ObjectClient,
    namespace: str,
    name: str,
    *,
    settings: reporting.ReconcileSettings,
) -> str:
    """Bring an object of theirs forward; return its phase if that has changed, else ""."""
    return reporting.run_pass(
        theirs,
        objects,
        namespace,
        name,
        lambda document: _PerftestPass(theirs, objects, namespace, settings, document, ours),
    )


@dataclass(frozen=True, slots=True)
class _PerftestPass(reporting.ReconcilePass):
    """One reconcile pass over an object of theirs."""

    ours: Resource

    def act(self) -> tuple[Document, str]:
        """Create ours if there is none; return its status, and what an event says."""
        name, warnings = self.document["metadata"]["name"], list[str]()
        copy = self.objects.find(self.ours, self.namespace, name)
        if copy is None:
            body = benchmark.read_envelope(
                {key: self.document[key] for key in ("apiVersion", "kind", "spec")}, warnings
            )
            body["metadata"] = {
                "name": name,
                "ownerReferences": [reporting.owner_reference(self.document)],
            }
            copy = self.objects.create(self.ours, self.namespace, body)
        if copy is None or not config_maps.is_owned(copy, self.document["metadata"]["uid"]):
            message = (
                f"there is another {self.ours.kind} {name} of group scaletest.dev; delete it, or"
                " rename"
            )
            return {"phase": str(BenchmarkPhase.FAILED), "message": message}, message
        status = {"phase": str(BenchmarkPhase.PENDING), **copy.get("status", {})}
        return status, "; ".join(warnings) or status.get("summary") or status.get("message", "")
