"""The lock of a namespace: a Lease that names the benchmark that measures, one at a time.

A holder that has ended or was deleted holds nothing, so no lock is left behind.
"""

from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure.operator_executor import resource
from scaletest.benchmarks.operator.reporting import has_ended
from scaletest.cluster.connection import Conflict, Missing
from scaletest.cluster.objects import LEASES, Documents

LEASE = "scaletest-benchmarks"


class Lock:
    """Namespace-wide lock, as one benchmark uses it."""

    def __init__(
        self, objects: Documents, namespace: str, plural: str, name: str, uid: str
    ) -> None:
        self._objects, self._namespace = objects, namespace
        self._holder = f"{plural}/{name}/{uid}"

    def take(self) -> str:
        """Take the lock, or keep it; "" on success, else the name of the holder."""
        lease = self._objects.find(LEASES, self._namespace, LEASE)
        if lease is None:
            body = {"metadata": {"name": LEASE}, "spec": {"holderIdentity": self._holder}}
            return "" if self._objects.create(LEASES, self._namespace, body) else "another"
        holder = lease["spec"].get("holderIdentity") or ""
        if holder == self._holder:
            return ""
        # one that has ended or is gone holds nothing
        plural, name, uid = (*holder.split("/"), "", "", "")[:3]
        kinds = {kind.plural: kind for kind in KINDS.values()}
        if plural in kinds:
            document = self._objects.find(resource(kinds[plural]), self._namespace, name)
            if document and document["metadata"]["uid"] == uid and not has_ended(document):
                return f"{plural}/{name}"
        return "" if self._write(self._holder, lease["metadata"]["resourceVersion"]) else "another"

    def give_back(self) -> None:
        """Release the lock if this benchmark holds it."""
        lease = self._objects.find(LEASES, self._namespace, LEASE)
        if lease is not None and lease["spec"].get("holderIdentity") == self._holder:
            self._write("", lease["metadata"]["resourceVersion"])

    def _write(self, holder: str, version: str) -> bool:
        """Write the holder; False when another one was faster."""
        body = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}}
        try:
            self._objects.patch(LEASES, self._namespace, LEASE, body)
        except (Conflict, Missing):
            return False
        return True
