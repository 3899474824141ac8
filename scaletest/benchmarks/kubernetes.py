"""One benchmark in a cluster, moved on a step at a time; all that is known of it is in the cluster.

Who calls `step` may be killed between any two requests and another may go on: objects have names of their own, what
is there is not made again, and the result is stored before anything is taken away. So nothing is measured twice.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from scaletest.benchmarks import manifests
from scaletest.benchmarks.manifests import Document
from scaletest.cluster.connection import Refused
from scaletest.cluster.documents import CLAIMS, CONFIG_MAPS, JOBS, PODS, SERVICES, Resource
from scaletest.kinds.benchmark import Benchmark, Ended, Phase
from scaletest.kinds.frame import unframe
from scaletest.kinds.kind import Failure, Peer
from scaletest.kinds.mpi_pingpong import KIND as MPI_PINGPONG
from scaletest.kinds.openfoam import KIND as OPENFOAM
from scaletest.model import wire
from scaletest.model.errors import UsageError

NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
RESULT = "result.json.gz"
# What stands on a pod that failed is read of the end of its log.
LAST_LINES = 8
# An address of a part is written into the pod so that its kubelet looks at the ConfigMap at once.
WRITTEN = "scaletest.dev/peers-written"


class Reads(Protocol):
    """What is used of cluster.documents.Documents; tests script it."""

    def find(self, what: Resource, namespace: str, name: str) -> Document | None: ...
    def list(self, what: Resource, namespace: str = "", labels: str = "") -> list[Document]: ...
    def create(self, what: Resource, namespace: str, body: Document) -> Document | None: ...
    def patch(self, what: Resource, namespace: str, name: str, body: Document, part: str = "") -> Document: ...
    def delete(self, what: Resource, namespace: str, name: str, uid: str = "") -> None: ...
    def log(self, namespace: str, pod: str) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Seen:
    """How far a benchmark is. pods: its pods as they are; message: what it waits for."""

    phase: Phase
    message: str = ""
    pods: tuple[Document, ...] = ()
    ended: Ended | None = None


def refuse(benchmark: Benchmark) -> None:
    """Raises UsageError for what cannot be run in a cluster."""
    if benchmark.kind in (MPI_PINGPONG, OPENFOAM):
        raise UsageError(
            f"{benchmark.kind.name} starts processes on its workers through an agent, which pods do not have",
            hint="run it with: scaletest bench run, on one machine",
        )
    if not NAME.fullmatch(benchmark.name):
        raise UsageError(
            f"the name {benchmark.name[:80]!r} cannot be that of a Service and its Jobs",
            hint="use a-z, 0-9 and '-', a letter first, 40 characters at most",
        )
    parts = benchmark.kind.layout(benchmark.spec)
    wanted = len({part.node for part in parts})
    if benchmark.spec.nodes and len(benchmark.spec.nodes) < wanted:
        raise UsageError(
            f"{wanted} nodes are used, and {len(benchmark.spec.nodes)} are named", hint="name more, or none"
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a benchmark belongs. owner: an owner reference; since_s: when it was asked for; image: unless it says."""

    namespace: str
    owner: Document
    since_s: float
    image: str


def step(benchmark: Benchmark, objects: Reads, place: Place, clock: Callable[[], float]) -> Seen:
    """Do what can be done now, and say how far it is. Errors of the API server are raised; call it again later."""
    return _Step(benchmark, objects, place, clock).go()


def forget(name: str, objects: Reads, namespace: str) -> None:
    """Take away what a benchmark made, its result excepted. Its Jobs go with their pods."""
    labels = f"{manifests.BENCHMARK}={name}"
    for job in objects.list(JOBS, namespace, labels):
        objects.delete(JOBS, namespace, job["metadata"]["name"], job["metadata"]["uid"])
    for what in (SERVICES, CLAIMS):
        for one in objects.list(what, namespace, labels):
            objects.delete(what, namespace, one["metadata"]["name"], one["metadata"]["uid"])
    objects.delete(CONFIG_MAPS, namespace, f"{name}-peers")


def stored(objects: Reads, namespace: str, name: str, uid: str) -> Ended | None:
    """The result that is there, when it is that of this very object."""
    found = objects.find(CONFIG_MAPS, namespace, manifests.result_name(name))
    if found is None or uid not in [one["uid"] for one in found["metadata"].get("ownerReferences", ())]:
        return None
    packed = base64.b64decode(found["binaryData"][RESULT])
    return Ended.from_dict(wire.load(gzip.decompress(packed).decode(), "the stored result"))


class _Step:
    """One look at one benchmark."""

    def __init__(self, benchmark: Benchmark, objects: Reads, place: Place, clock: Callable[[], float]) -> None:
        self._benchmark, self._objects, self._clock = benchmark, objects, clock
        self._namespace, self._owner, self._image = place.namespace, place.owner, place.image
        self._since_s = place.since_s
        self._role = benchmark.kind.measures

    def go(self) -> Seen:
        name = self._benchmark.name
        ended = stored(self._objects, self._namespace, name, self._owner["uid"])
        if ended is not None:
            forget(name, self._objects, self._namespace)
            return Seen(ended.phase, ended.message, (), ended)
        try:
            refuse(self._benchmark)
            peers = self._prepared()
            pods = tuple(self._pods())
            if manifests.MEASURING not in peers["data"]:
                return self._prepare(peers, pods)
            return self._measure(peers, pods)
        except _Over as over:
            return self._store(over.ended, over.pods)
        except _Taken as taken:
            if self._clock() - self._since_s <= manifests.START_S:
                return Seen(Phase.PREPARING, str(taken))
            return self._store(self._failed(Failure.REFUSED, str(taken)), ())
        except (UsageError, Refused) as error:
            return self._store(self._failed(Failure.REFUSED, error.message, (error.hint,)), ())

    # -- until everything is ready ----------------------------------------------------------------------------------

    def _prepared(self) -> Document:
        """The objects of the servers. Those of an earlier benchmark of this name, which are going, are waited for."""
        peers = self._own(CONFIG_MAPS, manifests.peers_map(self._benchmark, self._owner))
        if manifests.MEASURING in peers["data"]:
            return peers
        self._own(SERVICES, manifests.service(self._benchmark, self._owner))
        claim = manifests.claim(self._benchmark, self._owner)
        if claim:
            self._own(CLAIMS, claim)
        parts = manifests.servers(self._benchmark)
        if parts:
            self._own(JOBS, manifests.job(self._benchmark, parts, self._owner, self._image))
        return peers

    def _own(self, what: Resource, body: Document) -> Document:
        """The object, made when it is not there. Raises _Taken when it is somebody else's."""
        name = body["metadata"]["name"]
        found = self._objects.create(what, self._namespace, body)
        if found is None:
            found = self._objects.find(what, self._namespace, name) or {"metadata": {}}
        owners = [one["uid"] for one in found["metadata"].get("ownerReferences", ())]
        if self._owner["uid"] not in owners:
            raise _Taken(f"{what.plural} {name} is there and belongs to something else")
        return found

    def _pods(self) -> list[Document]:
        return self._objects.list(PODS, self._namespace, f"{manifests.BENCHMARK}={self._benchmark.name}")

    def _prepare(self, peers: Document, pods: tuple[Document, ...]) -> Seen:
        wanted = len(manifests.servers(self._benchmark))
        for pod in pods:
            if pod["status"].get("phase") in ("Failed", "Succeeded"):
                raise self._blamed(pod, pods, "a server ended before it was needed")
        known = self._known(pods)
        if len(known) == wanted and wanted and manifests.PEERS not in peers["data"]:
            self._tell(known, pods)
        waiting = [pod for pod in pods if not manifests.ready(pod)]
        if len(known) < wanted or waiting or len(pods) < wanted:
            why = next((f"{_name(pod)}: {manifests.why_not(pod)}" for pod in waiting), "pods are being made")
            if self._age(peers) > manifests.START_S:
                ended = self._failed(Failure.TIMED_OUT, f"not all parts started in time; {why}")
                raise _Over(ended, pods)
            return Seen(Phase.PREPARING, why, pods)
        self._own(JOBS, self._measuring_job())
        # from here on a Job that is not there was deleted: it is not made again
        change = {"data": {manifests.MEASURING: "true"}}
        self._objects.patch(CONFIG_MAPS, self._namespace, peers["metadata"]["name"], change)
        return Seen(Phase.PREPARING, "the measuring part is being started", pods)

    def _measuring_job(self) -> Document:
        parts = [one for one in self._benchmark.kind.layout(self._benchmark.spec) if one.role == self._role]
        return manifests.job(self._benchmark, parts, self._owner, self._image)

    def _known(self, pods: Sequence[Document]) -> list[Peer]:
        """The servers that have an address on the network that is to be measured."""
        spec, found = self._benchmark.spec, []
        for pod in pods:
            role = pod["metadata"]["labels"][manifests.ROLE]
            index = int(pod["metadata"]["annotations"].get(manifests.INDEX, 0))
            address = manifests.address(pod, spec.ip_family, spec.network_name)
            if role != self._role and address:
                found.append(Peer(role, index, manifests.name_of(self._benchmark, f"{role}-{index}"), address))
        return sorted(found, key=lambda one: (one.role, one.index))

    def _tell(self, known: Sequence[Peer], pods: Sequence[Document]) -> None:
        """Write the addresses down, and have the kubelets look."""
        rows = [{"role": one.role, "index": one.index, "host": one.host, "address": one.address} for one in known]
        change = {"data": {manifests.PEERS: json.dumps(rows), manifests.HOSTS: manifests.hosts(known)}}
        self._objects.patch(CONFIG_MAPS, self._namespace, manifests.name_of(self._benchmark, "peers"), change)
        for pod in pods:
            self._objects.patch(PODS, self._namespace, _name(pod), {"metadata": {"annotations": {WRITTEN: "true"}}})

    # -- until there is a result ------------------------------------------------------------------------------------

    def _measure(self, peers: Document, pods: tuple[Document, ...]) -> Seen:
        job = self._objects.find(JOBS, self._namespace, manifests.name_of(self._benchmark, self._role))
        measuring = [pod for pod in pods if pod["metadata"]["labels"][manifests.ROLE] == self._role]
        for pod in measuring:
            if pod["status"].get("phase") in ("Running", "Succeeded", "Failed"):
                self._result(pod, pods)
        if job is None:
            raise _Over(self._failed(Failure.INTERRUPTED, "the measuring Job was deleted by somebody"), pods)
        conditions = job.get("status", {}).get("conditions", ())
        if any(one["type"] in ("Failed", "Complete") and one["status"] == "True" for one in conditions):
            lost = "the measuring pod ended without a result" if measuring else "the measuring pod was deleted"
            raise _Over(
                self._failed(Failure.INTERRUPTED, lost, tuple(one.get("message", "") for one in conditions)), pods
            )
        running = any(pod["status"].get("phase") == "Running" for pod in measuring)
        limit = self._benchmark.limit_s + manifests.SPARE_S + (0 if running else manifests.START_S)
        since = _started(measuring[0]) if running else job["metadata"]["creationTimestamp"]
        if self._clock() - _seconds(since) > limit:
            said = "" if running or not measuring else f"; {manifests.why_not(measuring[0])}"
            raise _Over(self._failed(Failure.TIMED_OUT, f"there was no result after {limit:.0f} s{said}"), pods)
        if running:
            return Seen(Phase.RUNNING, "", pods)
        return Seen(Phase.PREPARING, manifests.why_not(measuring[0]) if measuring else "", pods)

    def _result(self, pod: Document, pods: tuple[Document, ...]) -> None:
        """Raises _Over when the pod's log holds a result, or the pod has ended without one."""
        log = self._objects.log(self._namespace, _name(pod)) or ""
        found = unframe(log)
        if found is not None:
            self._same_network(found, pod, pods)
            where = {"nodes": {_name(one): one["spec"].get("nodeName", "") for one in pods[: 2 * 16]}}
            environment = {**found.environment, **where}
            raise _Over(replace(found, name=self._benchmark.name, environment=environment), pods)
        if pod["status"]["phase"] != "Running":
            raise self._blamed(pod, pods, "the measuring pod ended without a result", log)

    def _same_network(self, found: Ended, pod: Document, pods: tuple[Document, ...]) -> None:
        """Raises _Over when the pod did not reach its peer from its address on the network that was asked for."""
        name, used = self._benchmark.spec.network_name, str(found.network.get("address", ""))
        own = manifests.addresses(pod, name)
        if name and found.ok and used not in own:
            by = f"the peer was reached from {used or 'nowhere'} by {found.network.get('interface', 'no interface')}"
            message = f"{by}, and the pod's address on {name} is {', '.join(own) or 'not known'}"
            raise _Over(self._failed(Failure.MISMATCH, message), pods)

    def _blamed(self, pod: Document, pods: tuple[Document, ...], message: str, log: str | None = None) -> _Over:
        said = log if log is not None else self._objects.log(self._namespace, _name(pod)) or ""
        told = unframe(said)
        if told is not None:
            return _Over(self._failed(told.failure, f"{_name(pod)}: {told.message}", told.lines), pods)
        reason = pod["status"].get("message") or pod["status"].get("reason") or ""
        lines = [*said.splitlines()[-LAST_LINES + 1 :], reason]
        return _Over(self._failed(Failure.EXIT, f"{_name(pod)}: {message}", lines), pods)

    def _failed(self, failure: Failure, message: str, lines: Sequence[str] = ()) -> Ended:
        kept = tuple(line[:200] for line in lines if line)[:LAST_LINES]
        now = self._clock()
        return Ended(
            self._benchmark.name, Phase.FAILED, failure=failure, message=message[:1000], lines=kept,
            started_s=now, finished_s=now,
        )  # fmt: skip

    # -- and its storing --------------------------------------------------------------------------------------------

    def _store(self, ended: Ended, pods: tuple[Document, ...]) -> Seen:
        """The result first, then the end: whoever comes after a crash finds the one or the other."""
        packed = gzip.compress(wire.dump(ended.to_dict()).encode(), mtime=0)
        name = manifests.result_name(self._benchmark.name)
        body = {
            "metadata": manifests.meta(self._benchmark, name, self._owner),
            "binaryData": {RESULT: base64.b64encode(packed).decode()},
        }
        if self._objects.create(CONFIG_MAPS, self._namespace, body) is None:
            mine = stored(self._objects, self._namespace, self._benchmark.name, self._owner["uid"])
            if mine is None:
                return Seen(Phase.SUMMARISING, f"the ConfigMap {name} belongs to something else: delete it", pods)
            ended = mine
        return Seen(Phase.SUMMARISING, ended.message, pods)

    def _age(self, document: Mapping[str, Any]) -> float:
        return self._clock() - _seconds(document["metadata"]["creationTimestamp"])


class _Over(Exception):
    """The benchmark has come to its end."""

    def __init__(self, ended: Ended, pods: tuple[Document, ...]) -> None:
        super().__init__(ended.message)
        self.ended, self.pods = ended, pods


class _Taken(Exception):
    """A name that is needed is that of something else, which may be on its way out."""


def _name(pod: Document) -> str:
    return str(pod["metadata"]["name"])


def _started(pod: Document) -> str:
    return str(pod["status"].get("startTime") or pod["metadata"]["creationTimestamp"])


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()
