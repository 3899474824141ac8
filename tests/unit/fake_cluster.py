"""A Kubernetes API server in memory that can end the operator at any request, and reconcile passes
of the operator on it.
"""

import copy
import itertools
from collections.abc import Mapping
from typing import Any

from scaletest.benchmarks.documents import benchmark
from scaletest.benchmarks.documents.result import BenchmarkPhase, BenchmarkResult, frame_result
from scaletest.benchmarks.documents.sweep import merge
from scaletest.benchmarks.kinds import API_VERSION
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure.operator_executor import resource_of
from scaletest.benchmarks.objects import manifests
from scaletest.benchmarks.operator import benchmark_reconciler, reporting, set_reconciler, status
from scaletest.benchmarks.operator.reporting import ReconcileSettings
from scaletest.cluster.api_calls import Conflict, Missing
from scaletest.cluster.objects import Document
from scaletest.cluster.resources import JOBS, PODS, Resource

IPERF = KINDS["IPerf"]


class Killed(BaseException):
    """The operator's process is gone."""


def without_nulls(value: Any, inside: bool = False) -> Any:
    """A merge patch as API servers apply it: a null inside a list says nothing, too."""
    if isinstance(value, list):
        return [without_nulls(part, inside=True) for part in value]
    if isinstance(value, dict):
        return {
            key: without_nulls(part, inside)
            for key, part in value.items()
            if part is not None or not inside
        }
    return value


class FakeCluster:
    """Documents by resource and name; Jobs get pods that run. fatal: the request after which the
    operator is dead.
    """

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Document] = {}
        self.made: list[str] = []
        self.requests, self.fatal = 0, 0
        self.logs: dict[str, str] = {}
        self.now = 1_000_000.0
        self.annotations: dict[str, str] = {}
        self.ips = ["10.1.0.1", "fd00::1"]
        self.runs = self.ready = True
        self._uids = itertools.count(1)

    def _count(self) -> None:
        self.requests += 1
        if self.requests == self.fatal:
            raise Killed

    def find(self, resource: Resource, namespace: str, name: str) -> Document | None:
        document = copy.deepcopy(self.objects.get((resource.plural, name)))
        self._count()
        return document

    def list(
        self, resource: Resource, namespace: str = "", labels: str = "", fields: str = ""
    ) -> list[Document]:
        wanted = dict(selector.split("=") for selector in labels.split(",") if selector)
        rows = [
            document for (plural, _), document in self.objects.items() if plural == resource.plural
        ]
        selected = [
            document
            for document in rows
            if wanted.items() <= document["metadata"].get("labels", {}).items()
        ]
        about = dict(selector.split("=") for selector in fields.split(",") if selector)
        if about:
            selected = [
                event
                for event in selected
                if event["involvedObject"]["uid"] == about["involvedObject.uid"]
            ]
        self._count()
        return copy.deepcopy(selected)

    def create(self, resource: Resource, namespace: str, body: Document) -> Document | None:
        key = (resource.plural, body["metadata"]["name"])
        if key in self.objects:
            self._count()
            return None
        stored_document = self.put(resource, body)
        self.made.append("/".join(key))
        if resource is JOBS and self.runs:
            self._pods(stored_document)
        self._count()
        return copy.deepcopy(stored_document)

    def put(self, resource: Resource, body: Document) -> Document:
        document = copy.deepcopy(body)
        document["metadata"] |= {"namespace": "ns", "generation": 1}
        document["metadata"] |= {
            "uid": f"u{next(self._uids)}",
            "creationTimestamp": status.write_time(self.now),
            "resourceVersion": "1",
        }
        self.objects[resource.plural, document["metadata"]["name"]] = document
        return document

    def patch(
        self, resource: Resource, namespace: str, name: str, body: Document, part: str = ""
    ) -> Document:
        if (resource.plural, name) not in self.objects:
            raise Missing(name)
        old = self.objects[resource.plural, name]
        version = body.get("metadata", {}).get("resourceVersion")
        if version and version != old["metadata"]["resourceVersion"]:
            raise Conflict(name)
        new = dict(merge(old, without_nulls(body)))
        new["metadata"] = {
            **new["metadata"],
            "resourceVersion": str(int(old["metadata"]["resourceVersion"]) + 1),
        }
        self.objects[resource.plural, name] = new
        self._count()
        return copy.deepcopy(new)

    def delete(self, resource: Resource, namespace: str, name: str, uid: str = "") -> None:
        document = self.objects.get((resource.plural, name))
        gone = (
            document
            and (not uid or document["metadata"]["uid"] == uid)
            and self.objects.pop((resource.plural, name))
        )
        if gone and resource is JOBS:
            for key in [
                key for key, document in self.objects.items() if document.get("job") == name
            ]:
                del self.objects[key]
        self._count()

    def version(self) -> str:
        self._count()
        return "v1.37.1"

    def log(self, namespace: str, pod: str) -> str:
        self._count()
        return self.logs.get(pod, "")

    def _pods(self, job: Document) -> None:
        template, name = job["spec"]["template"], job["metadata"]["name"]
        for index in range(job["spec"]["completions"]):
            meta = {**template["metadata"], "name": f"{name}-{index}"}
            meta["annotations"] = {
                **meta["annotations"],
                manifests.INDEX: str(index),
                **self.annotations,
            }
            pod = self.put(PODS, {"metadata": meta, "spec": {"nodeName": f"n{index}"}})
            pod["job"] = name
            ready = [{"type": "Ready", "status": str(self.ready)}]
            ips = [{"ip": address} for address in self.ips]
            pod["status"] = {
                "phase": "Running",
                "conditions": ready,
                "podIPs": ips,
                "podIP": self.ips[0],
            }
            pod["status"]["containerStatuses"] = [{"imageID": "sha256:abc"}]
            if meta["labels"][manifests.ROLE] in ("client", "master"):
                label = meta["labels"][manifests.BENCHMARK]
                ended = BenchmarkResult(
                    label,
                    BenchmarkPhase.COMPLETED,
                    {"bandwidth": 5e9},
                    {"some": 1},
                    started_s=1.0,
                    finished_s=2.0,
                )
                self.logs[f"{name}-{index}"] = f"noise\n{frame_result(ended)}\n"


def asked(cluster: FakeCluster, name: str = "one", kind: str = "IPerf", **spec: Any) -> None:
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    where = set_reconciler.SETS if kind == "BenchmarkSet" else resource_of(KINDS[kind])
    cluster.put(where, body)


def cluster_with(
    name: str = "one", kind: str = "IPerf", *, ready: bool = True, **spec: Any
) -> FakeCluster:
    """A cluster in which this benchmark is asked for. ready: whether its pods get ready."""
    cluster = FakeCluster()
    cluster.ready = ready
    asked(cluster, name, kind, **spec)
    return cluster


def settings(cluster: FakeCluster) -> ReconcileSettings:
    return ReconcileSettings("image", lambda: cluster.now, lambda *_: None)


def look(cluster: FakeCluster, name: str = "one") -> Mapping[str, Any]:
    benchmark_reconciler.reconcile(IPERF, cluster, "ns", name, settings(cluster))
    state: Mapping[str, Any] = cluster.objects["iperfs", name].get("status", {})
    return state


def look_at_set(
    cluster: FakeCluster, reconcile_settings: ReconcileSettings | None = None
) -> Mapping[str, Any]:
    """One look, with what the watches would have brought."""
    rows = [document for (plural, _), document in cluster.objects.items() if plural == "iperfs"]

    def children(namespace: str, uid: str) -> list[Document]:
        return [
            child_state
            for document in rows
            for (_, owner), child_state in set_reconciler.child_by_owner(document).items()
            if owner == uid
        ]

    set_reconciler.reconcile(
        cluster, "ns", "set", reconcile_settings or settings(cluster), children
    )
    state: Mapping[str, Any] = cluster.objects["benchmarksets", "set"].get("status", {})
    return state


def until_set_ended(
    cluster: FakeCluster, reconcile_settings: ReconcileSettings | None = None
) -> Mapping[str, Any]:
    """Look at the set and at its benchmarks until it has ended; its status."""
    for _ in range(2000):
        state = look_at_set(cluster, reconcile_settings)
        if "finishedAt" in state:
            return state
        for plural, name in list(cluster.objects):
            if plural == "iperfs" and not reporting.has_ended(cluster.objects[plural, name]):
                look(cluster, name)
    raise AssertionError(state)


def until_ended(cluster: FakeCluster, name: str = "one") -> Mapping[str, Any]:
    for _ in range(20):
        state = look(cluster, name)
        if state.get("phase") in ("Completed", "Failed"):
            return state
    raise AssertionError(state)


def requests_of_a_whole_run() -> int:
    cluster = cluster_with()
    until_ended(cluster)
    return cluster.requests


def pod_of(planned: benchmark.Benchmark, role: str) -> Document:
    job = manifests.job(planned, role, {"uid": "u"}, "image")
    pod: Document = job["spec"]["template"]["spec"]
    return pod
