"""One benchmark at a time in a namespace: a Lease that names who measures. Who has ended or is gone holds nothing."""

from __future__ import annotations

from scaletest.benchmarks.kept import Reads
from scaletest.cluster.documents import LEASES, Conflict, Missing, Resource
from scaletest.kinds.benchmark import BenchmarkPhase
from scaletest.kinds.registry import API_VERSION, KINDS

NAME = "scaletest-benchmarks"


class Lock:
    """That of one namespace, as one benchmark sees it."""

    def __init__(self, objects: Reads, namespace: str, plural: str, name: str, uid: str) -> None:
        self._objects, self._namespace = objects, namespace
        self._me = f"{plural}/{name}/{uid}"

    def take(self) -> str:
        """Take it, or keep it; "" when it is ours, else the name of who has it."""
        found = self._objects.find(LEASES, self._namespace, NAME)
        if found is None:
            body = {"metadata": {"name": NAME}, "spec": {"holderIdentity": self._me}}
            made = self._objects.create(LEASES, self._namespace, body)
            return "" if made is not None else "another"
        holder = found["spec"].get("holderIdentity") or ""
        if holder == self._me:
            return ""
        if holder and self._measures(holder):
            return holder.rpartition("/")[0]
        return "" if self._write(self._me, found["metadata"]["resourceVersion"]) else "another"

    def give_back(self) -> None:
        """Let others measure, when it was ours."""
        found = self._objects.find(LEASES, self._namespace, NAME)
        if found is not None and found["spec"].get("holderIdentity") == self._me:
            self._write("", found["metadata"]["resourceVersion"])

    def _write(self, holder: str, version: str) -> bool:
        body = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}}
        try:
            self._objects.patch(LEASES, self._namespace, NAME, body)
        except (Conflict, Missing):
            return False
        return True

    def _measures(self, holder: str) -> bool:
        plural, name, uid = (*holder.split("/"), "", "", "")[:3]
        if plural not in [kind.plural for kind in KINDS.values()]:
            return False
        one = self._objects.find(Resource(plural, f"/apis/{API_VERSION}", plural, True), self._namespace, name)
        phase = ((one or {}).get("status") or {}).get("phase")
        return one is not None and one["metadata"]["uid"] == uid and not (phase and BenchmarkPhase(phase).ended)
