"""Reconciles one benchmark in a cluster; the cluster holds the whole state.

The caller may be killed at any point; another process resumes. That works because objects have
fixed names, an object that exists is not created again, and the result is stored before anything is
deleted. So nothing is measured twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

from scaletest.benchmarks import gang_scheduling, manifests, observation, pod_status
from scaletest.benchmarks.manifests import Document
from scaletest.benchmarks.observation import (
    BenchmarkContext,
    BenchmarkFinished,
    NameConflict,
    Observation,
)
from scaletest.benchmarks.owned_objects import Damaged, OwnedObjects, measuring_s
from scaletest.cluster.connection import Busy, Missing, Refused
from scaletest.cluster.objects import CLAIMS, CONFIG_MAPS, JOBS, PODS, SERVICES, Documents
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, unframe
from scaletest.kinds.kind import Failure, Part
from scaletest.model.errors import Unreachable, UsageError

# Written into a pod as an annotation: a kubelet looks at the ConfigMap at once when its pod
# changes, and else up to a minute later.
WRITTEN = "scaletest.dev/peers-written"
_JOB_OVER = ("Failed", "Complete", "Suspended")
Pods = tuple[Document, ...]


def reconcile(
    benchmark: Benchmark,
    objects: Documents,
    context: BenchmarkContext,
    clock: Callable[[], float],
) -> Observation:
    """Do what can be done now and return the progress.

    Raises the API server's errors; call it again later.
    """
    owned = OwnedObjects(benchmark, objects, context.namespace, context.owner, clock)
    return _Reconciliation(benchmark, objects, context, clock, owned).run()


def differ(benchmark: Benchmark, other: Benchmark) -> bool:
    """Check whether two benchmarks measure something different; `paused` does not count."""
    return replace(benchmark.spec, paused=False) != replace(other.spec, paused=False)


@dataclass(slots=True)
class _Reconciliation:
    """One reconcile pass over one benchmark."""

    _benchmark: Benchmark
    _objects: Documents
    _context: BenchmarkContext
    _clock: Callable[[], float]
    _owned: OwnedObjects

    def run(self) -> Observation:
        try:
            ended = self._owned.result()
            if ended is not None:
                self._owned.delete()
                return Observation(ended.phase, ended.message, (), ended)
            peers = self._owned.ensure(
                CONFIG_MAPS, manifests.peers_map(self._benchmark, self._context.owner)
            )
            requested = self._benchmark
            self._benchmark = self._owned.agreed(peers)
            return replace(self._advance(peers), edited=differ(requested, self._benchmark))
        except BenchmarkFinished as finished:
            return self._store(finished.ended, finished.pods)
        except NameConflict as conflict:
            return self._after_conflict(conflict)
        except Damaged as error:
            return self._store(
                self._failed(Failure.INTERRUPTED, error.message, remedy=error.hint), ()
            )
        except (UsageError, Refused) as error:
            return self._store(self._failed(Failure.REFUSED, error.message, remedy=error.hint), ())

    def _advance(self, peers: Document) -> Observation:
        if manifests.MEASURING in peers["data"]:
            return self._measure(peers, self._owned.pods())
        self._create_objects()
        return self._prepare(peers, self._owned.pods())

    def _after_conflict(self, conflict: NameConflict) -> Observation:
        """Wait for the other object to go, and give up when that takes too long."""
        if self._clock() - self._context.since_s <= manifests.start_s(self._benchmark):
            return Observation(BenchmarkPhase.PREPARING, str(conflict))
        # the name of the result may be taken as well, so the result is only returned, not stored
        self._owned.delete()
        return Observation(
            BenchmarkPhase.FAILED, str(conflict), (), self._failed(Failure.REFUSED, str(conflict))
        )

    # -- results
    # ----------------------------------------------------------------------------------------------

    def _failed(
        self, failure: Failure, message: str, lines: Sequence[str] = (), remedy: str = ""
    ) -> BenchmarkResult:
        return observation.failed(self._benchmark, self._clock(), failure, message, lines, remedy)

    def _finished(
        self, failure: Failure, message: str, pods: Pods, lines: Sequence[str] = ()
    ) -> BenchmarkFinished:
        return BenchmarkFinished(self._failed(failure, message, lines), pods)

    def _finished_by_pod(
        self, pod: Document, pods: Pods, message: str, log: str
    ) -> BenchmarkFinished:
        return BenchmarkFinished(
            observation.failed_by_pod(self._benchmark, self._clock(), pod, message, log), pods
        )

    def _store(self, ended: BenchmarkResult, pods: Pods) -> Observation:
        """Store the result.

        Objects are deleted by the next pass only, so a crash between the two loses nothing.
        """
        stored = self._owned.store(ended)
        name = manifests.result_name(self._benchmark.name)
        message = (
            f"the ConfigMap {name} belongs to something else: delete it"
            if stored is None
            else stored.message
        )
        return Observation(BenchmarkPhase.SUMMARISING, message, pods)

    # -- until everything is ready
    # ----------------------------------------------------------------------------------------------

    def _create_objects(self) -> None:
        """Create the servers' objects.

        Raises NameConflict while those of an earlier benchmark of this name exist.
        """
        self._owned.ensure(SERVICES, manifests.service(self._benchmark, self._context.owner))
        claim = manifests.claim(self._benchmark, self._context.owner)
        if claim:
            self._owned.ensure(CLAIMS, claim)
        servers = manifests.servers(self._benchmark)
        if gang_scheduling.wanted(self._benchmark):
            self._create_gang()
        elif servers:
            self._owned.ensure(JOBS, self._job(servers), before_create=self._owned.create_key)

    def _create_gang(self) -> None:
        """Create all Jobs and the object that admits them together.

        Raises UsageError where the cluster cannot.
        """
        (resource, first), *jobs = gang_scheduling.manifests_of(
            self._benchmark, self._context.owner, self._context.image
        )

        def before_create() -> None:
            gang_scheduling.check(self._benchmark, self._objects, self._context.namespace)
            self._owned.create_key()

        try:
            self._owned.ensure(resource, first, before_create)
        except Busy:
            raise
        except (Missing, Unreachable) as error:
            raise gang_scheduling.absent(self._benchmark, error.message) from error
        for job_resource, job in jobs:
            self._owned.ensure(job_resource, job)

    def _prepare(self, peers: Document, pods: Pods) -> Observation:
        since_s = pod_status.seconds(peers["metadata"]["creationTimestamp"])
        if gang_scheduling.wanted(self._benchmark):
            admission = gang_scheduling.admission(
                self._benchmark, self._objects, self._context.namespace
            )
            if not admission.since_s:
                return self._queued(admission.message, peers, pods)
            if waits := self._context.waits():
                return Observation(BenchmarkPhase.PENDING, waits, pods)
            # the time that it waited for its turn does not count against its parts
            since_s = max(admission.since_s, self._context.since_s)
        for pod in pods:
            if pod["status"].get("phase") in ("Failed", "Succeeded"):
                raise self._finished_by_pod(
                    pod,
                    pods,
                    "a server ended before it was needed",
                    self._owned.log_if_readable(pod),
                )
        self._publish_peers(peers, pods)
        reason = self._reason_to_wait(pods)
        if not reason:
            return self._start_measuring(peers, pods)
        if self._clock() - since_s > manifests.start_s(self._benchmark):
            raise self._finished(
                Failure.TIMED_OUT, f"not all parts started in time; {reason}", pods
            )
        return Observation(BenchmarkPhase.PREPARING, reason, pods)

    def _start_measuring(self, peers: Document, pods: Pods) -> Observation:
        if not gang_scheduling.wanted(self._benchmark):
            kind = self._benchmark.kind
            parts = [
                part for part in kind.layout(self._benchmark.spec) if part.role == kind.measures
            ]
            self._owned.ensure(JOBS, self._job(parts))
        # from here on a Job that is missing was deleted by somebody, and is not created again
        self._owned.patch(
            CONFIG_MAPS,
            peers["metadata"]["name"],
            {"data": {manifests.MEASURING: str(self._clock())}},
        )
        for pod in self._owned.measuring(pods):
            self._notify_kubelet(pod, manifests.MEASURING)
        return Observation(BenchmarkPhase.PREPARING, "the measuring part is being started", pods)

    def _publish_peers(self, peers: Document, pods: Pods) -> None:
        """Write the servers' addresses into the ConfigMap, once all are known."""
        addresses = pod_status.known(self._benchmark, pods)
        are_all = len(addresses) == len(manifests.servers(self._benchmark))
        if not addresses or not are_all or manifests.PEERS in peers["data"]:
            return
        known = json.dumps([asdict(peer) for peer in addresses])
        texts = {manifests.PEERS: known, manifests.HOSTS: manifests.hosts(addresses)}
        self._owned.patch(CONFIG_MAPS, manifests.name_of(self._benchmark, "peers"), {"data": texts})
        for pod in pods:
            self._notify_kubelet(pod, manifests.PEERS)

    def _notify_kubelet(self, pod: Document, key: str) -> None:
        self._owned.patch(PODS, pod_status.name(pod), {"metadata": {"annotations": {WRITTEN: key}}})

    def _reason_to_wait(self, pods: Pods) -> str:
        """Name the first thing that measuring still waits for; "" when nothing is missing."""
        servers = manifests.servers(self._benchmark)
        roles = [part.role for part in servers]
        measuring = self._owned.measuring(pods)
        if gang_scheduling.wanted(self._benchmark) and not measuring:
            roles.append(self._benchmark.kind.measures)
        serving = [pod for pod in pods if pod not in measuring]
        unready = [pod_status.waits(pod) for pod in serving if not pod_status.ready(pod)]
        if len(serving) < len(roles):
            denied = self._denied(self._find_job(roles[-1]), pods)
            return denied or next(iter(unready), "pods are being created")
        if unready:
            return unready[0]
        known = pod_status.known(self._benchmark, pods)
        return "" if len(known) == len(servers) else "pods have no address yet"

    def _queued(self, message: str, peers: Document, pods: Pods) -> Observation:
        """Wait for admission.

        Raises BenchmarkFinished when it takes too long, or was withdrawn after the parts had
        started.
        """
        if manifests.PEERS in peers["data"]:
            message = f"the admission was withdrawn: {message}"
            raise self._finished(Failure.INTERRUPTED, message, pods)
        age_s = self._clock() - pod_status.seconds(peers["metadata"]["creationTimestamp"])
        limit_s = gang_scheduling.admit_s(self._benchmark)
        if age_s > limit_s:
            message = f"not admitted in {limit_s:.0f} s: {message}"
            raise self._finished(Failure.TIMED_OUT, message, pods)
        return Observation(
            BenchmarkPhase.PENDING, message, pods, queued=age_s > gang_scheduling.AT_ONCE_S
        )

    def _job(self, parts: Sequence[Part]) -> Document:
        return manifests.job(self._benchmark, parts, self._context.owner, self._context.image)

    def _find_job(self, role: str) -> Document | None:
        return self._owned.find(JOBS, gang_scheduling.job_name(self._benchmark, role))

    # -- until there is a result
    # ----------------------------------------------------------------------------------------------

    def _measure(self, peers: Document, pods: Pods) -> Observation:
        job = self._find_job(self._benchmark.kind.measures)
        measuring = self._owned.measuring(pods)
        unreadable = self._read_results(measuring, pods)
        if unreadable:
            # a result in the log could still be in time
            self._check_limit(peers, measuring, pods, unreadable)
            return Observation(BenchmarkPhase.RUNNING, unreadable, pods)
        if job is None:
            raise self._finished(
                Failure.INTERRUPTED, "the measuring Job was deleted by somebody", pods
            )
        self._require_active(job, measuring, pods)
        if any(pod["status"].get("phase") == "Running" for pod in measuring):
            self._check_limit(peers, measuring[:1], pods, "")
            return Observation(BenchmarkPhase.RUNNING, "", pods)
        reason = pod_status.why_not(measuring[0]) if measuring else self._denied(job, pods)
        limit_s = manifests.start_s(self._benchmark)
        if self._clock() - measuring_s(peers) > limit_s:
            raise self._finished(
                Failure.TIMED_OUT,
                "; ".join(
                    filter(None, (f"the measuring part did not start in {limit_s:.0f} s", reason))
                ),
                pods,
            )
        return Observation(BenchmarkPhase.PREPARING, reason, pods)

    def _read_results(self, measuring: Sequence[Document], pods: Pods) -> str:
        """Look for a result in each log; returns the reason when a log cannot be read now.

        Raises BenchmarkFinished.
        """
        unreadable = ""
        for pod in measuring:
            if pod["status"].get("phase") in ("Running", "Succeeded", "Failed"):
                try:
                    self._read_result(pod, pods)
                except Busy as error:
                    # its node may be gone for good, and the log with it
                    unreadable = error.message
        return unreadable

    def _read_result(self, pod: Document, pods: Pods) -> None:
        """Raises BenchmarkFinished when the log holds a result, or the pod ended without one."""
        log = self._owned.log(pod)
        ended = unframe(log)
        if ended is not None:
            wrong_network = pod_status.elsewhere(pod, self._benchmark.spec.network_name, ended)
            if wrong_network:
                raise self._finished(Failure.MISMATCH, wrong_network, pods)
            versions = {"kubernetes": self._objects.version()}
            environment = {**ended.environment, **pod_status.places(pods), **versions}
            raise BenchmarkFinished(
                replace(ended, name=self._benchmark.name, environment=environment), pods
            )
        if pod["status"]["phase"] != "Running":
            raise self._finished_by_pod(pod, pods, "the measuring pod ended without a result", log)

    def _require_active(self, job: Document, measuring: Sequence[Document], pods: Pods) -> None:
        """Raises BenchmarkFinished when the measuring Job is over."""
        if pod_status.holds(job, *_JOB_OVER):
            end = "ended without a result" if measuring else "was deleted"
            conditions = pod_status.conditions(job).values()
            lines = [condition.get("message", "") for condition in conditions]
            raise self._finished(Failure.INTERRUPTED, f"the measuring pod {end}", pods, lines)

    def _check_limit(
        self, peers: Document, started: Sequence[Document], pods: Pods, reason: str
    ) -> None:
        """Raises BenchmarkFinished when the measuring pod has run for longer than its limit."""
        limit_s = self._benchmark.limit_s + manifests.SPARE_S
        since_s = max([measuring_s(peers), *map(pod_status.started_s, started)])
        if self._clock() - since_s > limit_s:
            raise self._finished(
                Failure.TIMED_OUT,
                "; ".join(filter(None, (f"there was no result in {limit_s:.0f} s", reason))),
                pods,
            )

    def _denied(self, job: Document | None, pods: Pods) -> str:
        """Return the API server's reason to deny a Job its pods.

        Raises BenchmarkFinished when waiting will not help.
        """
        if job is None:
            return ""
        failure = pod_status.failed(job)
        if failure:
            # a Job has one try, so there will not be another pod
            raise self._finished(
                Failure.INTERRUPTED, "a pod was lost before it was needed", pods, (failure,)
            )
        message = pod_status.denial(self._objects, self._context.namespace, job)
        # a Job that was suspended has not tried before it started
        began = job.get("status", {}).get("startTime") or job["metadata"]["creationTimestamp"]
        if pod_status.final(message, self._clock() - pod_status.seconds(began)):
            raise self._finished(Failure.REFUSED, message, pods)
        return message
