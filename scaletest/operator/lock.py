"""A lock for each namespace: a Lease names the benchmark that measures, as only one may at a time.

A holder that has ended or was deleted holds nothing, so no lock is left behind.
"""

from __future__ import annotations

from scaletest.benchmarks.cluster_objects import ClusterObjects
from scaletest.cluster.documents import LEASES, Conflict, Missing, Resource
from scaletest.kinds.benchmark import BenchmarkPhase
from scaletest.kinds.registry import API_VERSION, KINDS

NAME = "scaletest-benchmarks"


class Lock:
    """Namespace-wide lock, as one benchmark uses it."""

    def __init__(
        self, objects: ClusterObjects, namespace: str, plural: str, name: str, uid: str
    ) -> None:
        self._objects, self._namespace = objects, namespace
        self._holder = f"{plural}/{name}/{uid}"

    def take(self) -> str:
        """Take the lock, or keep it; "" on success, else the name of the holder."""
        lease = self._objects.find(LEASES, self._namespace, NAME)
        if lease is None:
            body = {"metadata": {"name": NAME}, "spec": {"holderIdentity": self._holder}}
            created = self._objects.create(LEASES, self._namespace, body)
            return "" if created is not None else "another"
        holder = lease["spec"].get("holderIdentity") or ""
        if holder == self._holder:
            return ""
        if holder and self._is_measuring(holder):
            return holder.rpartition("/")[0]
        return "" if self._write(self._holder, lease["metadata"]["resourceVersion"]) else "another"

    def give_back(self) -> None:
        """Release the lock if this benchmark holds it."""
        lease = self._objects.find(LEASES, self._namespace, NAME)
        if lease is not None and lease["spec"].get("holderIdentity") == self._holder:
            self._write("", lease["metadata"]["resourceVersion"])

    def _write(self, holder: str, version: str) -> bool:
        body = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}}
        try:
            self._objects.patch(LEASES, self._namespace, NAME, body)
        except (Conflict, Missing):
            return False
        return True

    def _is_measuring(self, holder: str) -> bool:
        plural, name, uid = (*holder.split("/"), "", "", "")[:3]
        if plural not in [kind.plural for kind in KINDS.values()]:
            return False
        resource = Resource(plural, f"/apis/{API_VERSION}", plural, True)
        benchmark = self._objects.find(resource, self._namespace, name)
        if benchmark is None or benchmark["metadata"]["uid"] != uid:
            return False
        phase = (benchmark.get("status") or {}).get("phase")
        return not (phase and BenchmarkPhase(phase).ended)
