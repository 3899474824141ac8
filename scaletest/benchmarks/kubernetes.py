"""One benchmark in a cluster, moved on a step at a time; all that is known of it is in the cluster.

Who calls `step` may be killed between any two requests and another may go on: objects have names of their own, what
is there is not made again, and the result is stored before anything is taken away. So nothing is measured twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from scaletest.benchmarks import gang, manifests, obstacles, said
from scaletest.benchmarks.belongings import Belongings
from scaletest.benchmarks.endings import Over, Taken
from scaletest.benchmarks.kept import Damaged, Reads, measuring_s
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.seen import Place, Seen
from scaletest.cluster.connection import Busy, Missing, Refused
from scaletest.cluster.documents import CLAIMS, CONFIG_MAPS, JOBS, PODS, SERVICES
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase
from scaletest.kinds.kind import Failure, PartAddress
from scaletest.kinds.log_framing import unframe
from scaletest.model.errors import Unreachable, UsageError

# An address of a part is written into the pod so that its kubelet looks at the ConfigMap at once.
WRITTEN = "scaletest.dev/peers-written"


def step(benchmark: Benchmark, objects: Reads, place: Place, clock: Callable[[], float]) -> Seen:
    """Do what can be done now, and say how far it is. Errors of the API server are raised; call it again later."""
    return _Step(benchmark, objects, place, clock).go()


def differ(one: Benchmark, other: Benchmark) -> bool:
    """Whether something else is to be measured. paused does not count."""
    return replace(one.spec, paused=False) != replace(other.spec, paused=False)


class _Step(Belongings):
    """One look at one benchmark."""

    def go(self) -> Seen:
        try:
            if ended := self._ended():
                self._forget()
                return Seen(ended.phase, ended.message, (), ended)
            peers, asked = self._own(CONFIG_MAPS, manifests.peers_map(self._benchmark, self._owner)), self._benchmark
            self._benchmark = self._agreed(peers)
            return replace(self._go_on(peers), edited=differ(asked, self._benchmark))
        except Over as over:
            return self._store(over.ended, over.pods)
        except Taken as taken:
            if self._clock() - self._since_s <= manifests.start_s(self._benchmark):
                return Seen(BenchmarkPhase.PREPARING, str(taken))
            # its result may have no place either
            self._forget()
            return Seen(BenchmarkPhase.FAILED, str(taken), (), self._failed(Failure.REFUSED, str(taken)))
        except Damaged as error:
            return self._store(self._failed(Failure.INTERRUPTED, error.message, remedy=error.hint), ())
        except (UsageError, Refused) as error:
            return self._store(self._failed(Failure.REFUSED, error.message, remedy=error.hint), ())

    def _go_on(self, peers: Document) -> Seen:
        if manifests.MEASURING not in peers["data"]:
            self._prepared()
        pods = tuple(self._pods())
        return (self._measure if manifests.MEASURING in peers["data"] else self._prepare)(peers, pods)

    # -- until everything is ready ----------------------------------------------------------------------------------

    def _prepared(self) -> None:
        """The objects of the servers. Those of an earlier benchmark of this name, which are going, are waited for."""
        self._own(SERVICES, manifests.service(self._benchmark, self._owner))
        claim = manifests.claim(self._benchmark, self._owner)
        if claim:
            self._own(CLAIMS, claim)
        parts = manifests.servers(self._benchmark)
        if gang.wanted(self._benchmark):
            self._prepared_together()
        elif parts:
            job = manifests.job(self._benchmark, parts, self._owner, self._image)
            self._own(JOBS, job, before=self._make_key)

    def _prepared_together(self) -> None:
        """All Jobs, and what holds them together. Raises UsageError where that cannot be had: it is not waited for."""
        (what, first), *rest = gang.made(self._benchmark, self._owner, self._image)

        def before() -> None:
            gang.check(self._benchmark, self._objects, self._namespace)
            self._make_key()

        try:
            self._own(what, first, before)
        except Busy:
            raise
        except (Missing, Unreachable) as error:
            raise gang.absent(self._benchmark, error.message) from error
        for what, job in rest:
            self._own(what, job)

    def _prepare(self, peers: Document, pods: tuple[Document, ...]) -> Seen:
        since_s = said.seconds(peers["metadata"]["creationTimestamp"])
        if gang.wanted(self._benchmark):
            admission = gang.admission(self._benchmark, self._objects, self._namespace)
            if not admission.since_s:
                return self._queued(admission.message, peers, pods)
            if waits := self._waits():
                return Seen(BenchmarkPhase.PENDING, waits, pods)
            # what it waited for its turn is not its parts' fault
            since_s = max(admission.since_s, self._since_s)
        for pod in pods:
            if pod["status"].get("phase") in ("Failed", "Succeeded"):
                raise self._blamed(pod, pods, "a server ended before it was needed")
        why = self._missing(peers, pods)
        if why:
            if self._clock() - since_s > manifests.start_s(self._benchmark):
                ended = self._failed(Failure.TIMED_OUT, f"not all parts started in time; {why}")
                raise Over(ended, pods)
            return Seen(BenchmarkPhase.PREPARING, why, pods)
        if not gang.wanted(self._benchmark):
            self._own(JOBS, self._measuring_job())
        # from here on a Job that is not there was deleted: it is not made again
        change = {"data": {manifests.MEASURING: str(self._clock())}}
        self._objects.patch(CONFIG_MAPS, self._namespace, peers["metadata"]["name"], change)
        for pod in self._measuring(pods):
            self._look_again(pod, manifests.MEASURING)
        return Seen(BenchmarkPhase.PREPARING, "the measuring part is being started", pods)

    def _missing(self, peers: Document, pods: tuple[Document, ...]) -> str:
        """What is still to come before it can be measured, "" when nothing is. Tells the parts of each other."""
        roles = [part.role for part in manifests.servers(self._benchmark)]
        if gang.wanted(self._benchmark) and not self._measuring(pods):
            roles.append(self._role)
        known, wanted = said.known(self._benchmark, pods), len(manifests.servers(self._benchmark))
        if len(known) == wanted and wanted and manifests.PEERS not in peers["data"]:
            self._tell(known, pods)
        serving = [pod for pod in pods if pod not in self._measuring(pods)]
        waiting = [pod for pod in serving if not said.ready(pod)]
        if len(serving) < len(roles):
            job = self._objects.find(JOBS, self._namespace, gang.job_name(self._benchmark, roles[-1]))
            return self._denied(job, pods) or next(map(said.waits, waiting), "pods are being made")
        return next(map(said.waits, waiting), "" if len(known) == wanted else "pods have no address yet")

    def _queued(self, message: str, peers: Document, pods: tuple[Document, ...]) -> Seen:
        """Raises Over when the parts were already running, or have waited for too long."""
        if manifests.PEERS in peers["data"]:
            raise Over(self._failed(Failure.INTERRUPTED, f"what was admitted was taken back: {message}"), pods)
        if self._age(peers) > (limit := gang.admit_s(self._benchmark)):
            raise Over(self._failed(Failure.TIMED_OUT, f"not admitted in {limit:.0f} s: {message}"), pods)
        return Seen(BenchmarkPhase.PENDING, message, pods, queued=self._age(peers) > gang.AT_ONCE_S)

    def _measuring_job(self) -> Document:
        parts = [one for one in self._benchmark.kind.layout(self._benchmark.spec) if one.role == self._role]
        return manifests.job(self._benchmark, parts, self._owner, self._image)

    def _tell(self, known: Sequence[PartAddress], pods: Sequence[Document]) -> None:
        """Write the addresses down, and have the kubelets look."""
        rows = [{"role": one.role, "index": one.index, "host": one.host, "address": one.address} for one in known]
        change = {"data": {manifests.PEERS: json.dumps(rows), manifests.HOSTS: manifests.hosts(known)}}
        self._objects.patch(CONFIG_MAPS, self._namespace, manifests.name_of(self._benchmark, "peers"), change)
        for pod in pods:
            self._look_again(pod, manifests.PEERS)

    def _look_again(self, pod: Document, at: str) -> None:
        self._objects.patch(PODS, self._namespace, said.name(pod), {"metadata": {"annotations": {WRITTEN: at}}})

    # -- until there is a result ------------------------------------------------------------------------------------

    def _measure(self, peers: Document, pods: tuple[Document, ...]) -> Seen:
        job = self._objects.find(JOBS, self._namespace, gang.job_name(self._benchmark, self._role))
        measuring = self._measuring(pods)
        unread = ""
        for pod in measuring:
            if pod["status"].get("phase") in ("Running", "Succeeded", "Failed"):
                try:
                    self._result(pod, pods)
                except Busy as error:
                    # its node may be gone for ever, and the log with it
                    unread = error.message
        if unread:
            return self._unread(unread, peers, pods)
        if job is None:
            raise Over(self._failed(Failure.INTERRUPTED, "the measuring Job was deleted by somebody"), pods)
        conditions = job.get("status", {}).get("conditions", ())
        if any(one["type"] in ("Failed", "Complete", "Suspended") and one["status"] == "True" for one in conditions):
            lost = "the measuring pod ended without a result" if measuring else "the measuring pod was deleted"
            raise Over(
                self._failed(Failure.INTERRUPTED, lost, tuple(one.get("message", "") for one in conditions)), pods
            )
        running = any(pod["status"].get("phase") == "Running" for pod in measuring)
        start_s, limit_s = manifests.start_s(self._benchmark), self._benchmark.limit_s + manifests.SPARE_S
        limit = limit_s if running else start_s
        since_s = measuring_s(peers)
        if running:
            since_s = max(since_s, said.started_s(measuring[0]))
        why = "" if running else said.why_not(measuring[0]) if measuring else self._denied(job, pods)
        if self._clock() - since_s > limit:
            more = f"; {why}" if why else ""
            missing = "there was no result" if running else "the measuring part did not start"
            raise Over(self._failed(Failure.TIMED_OUT, f"{missing} in {limit:.0f} s{more}"), pods)
        return Seen(BenchmarkPhase.RUNNING if running else BenchmarkPhase.PREPARING, why, pods)

    def _unread(self, why: str, peers: Document, pods: tuple[Document, ...]) -> Seen:
        """Raises Over when a log that cannot be read could hold no result that came in time."""
        limit = self._benchmark.limit_s + manifests.SPARE_S
        if self._clock() - max(measuring_s(peers), *map(said.started_s, self._measuring(pods))) > limit:
            raise Over(self._failed(Failure.TIMED_OUT, f"there was no result in {limit:.0f} s; {why}"), pods)
        return Seen(BenchmarkPhase.RUNNING, why, pods)

    def _denied(self, job: Document | None, pods: tuple[Document, ...]) -> str:
        """What keeps a Job from making pods. Raises Over when that will not pass."""
        if job is None:
            return ""
        if failed := obstacles.failed(job):
            # it has one try, so there will be no other pod
            raise Over(self._failed(Failure.INTERRUPTED, "a pod was lost before it was needed", (failed,)), pods)
        message = obstacles.said(self._objects, self._namespace, job)
        # a Job that was suspended has not tried before
        began = job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"]
        if obstacles.final(message, self._clock() - said.seconds(began)):
            raise Over(self._failed(Failure.REFUSED, message), pods)
        return message

    def _result(self, pod: Document, pods: tuple[Document, ...]) -> None:
        """Raises Over when the pod's log holds a result, or the pod has ended without one."""
        log = self._objects.log(self._namespace, said.name(pod)) or ""
        found = unframe(log)
        if found is not None:
            if wrong := said.elsewhere(pod, self._benchmark.spec.network_name, found):
                raise Over(self._failed(Failure.MISMATCH, wrong), pods)
            environment = {**found.environment, **said.places(pods), "kubernetes": self._objects.version()}
            raise Over(replace(found, name=self._benchmark.name, environment=environment), pods)
        if pod["status"]["phase"] != "Running":
            raise self._blamed(pod, pods, "the measuring pod ended without a result", log)
