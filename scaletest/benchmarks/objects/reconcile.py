"""Reconciles one benchmark in a cluster; the cluster holds the whole state.

The caller may be killed at any point; another process resumes. That works because objects have
fixed names, an object that exists is not created again, and the result is stored before anything is
deleted. So nothing is measured twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from scaletest.benchmarks.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult, unframe
from scaletest.benchmarks.kinds.kind import BenchmarkFailed, Failure
from scaletest.benchmarks.objects import gang_scheduling, manifests, pod_status
from scaletest.benchmarks.objects.manifests import Document
from scaletest.benchmarks.objects.owned_objects import NameConflict, OwnedObjects, measuring_s
from scaletest.cluster.answers import Busy, Missing, Refused
from scaletest.cluster.objects import Documents
from scaletest.cluster.resources import CLAIMS, CONFIG_MAPS, JOBS, PODS, SERVICES
from scaletest.model.errors import Unreachable, UsageError

# Written into a pod as an annotation: a kubelet looks at the ConfigMap at once when its pod
# changes, and else up to a minute later.
WRITTEN = "scaletest.dev/peers-written"
_JOB_OVER = ("Failed", "Complete")
# Lines from the end of a failed pod's log that the result quotes.
LAST_LINES = 8


@dataclass(frozen=True, slots=True)
class Observation:
    """Progress of a benchmark after one reconcile pass.

    message: what the benchmark waits for. pods: its pods with their current status. ended: its
    result. edited: the object was changed after the benchmark began; the change is not measured.
    queued: its parts are not admitted yet, so it may be long before it can use its turn.
    """

    phase: BenchmarkPhase
    message: str = ""
    pods: tuple[Document, ...] = ()
    ended: BenchmarkResult | None = None
    edited: bool = False
    queued: bool = False


@dataclass(frozen=True, slots=True)
class BenchmarkContext:
    """Namespace, owner and turn of a benchmark in a cluster.

    owner: owner reference to the benchmark's object. since_s: when the benchmark was requested, in
    seconds since the epoch. image: the container image, unless the benchmark's spec names one.
    waits: called when all parts are admitted; the reason to wait while another benchmark measures,
    "" when it is this one's turn.
    """

    namespace: str
    owner: Document
    since_s: float
    image: str
    waits: Callable[[], str] = lambda: ""


def reconcile(
    benchmark: Benchmark,
    objects: Documents,
    context: BenchmarkContext,
    clock: Callable[[], float],
) -> Observation:
    """Do what can be done now and return the progress.

    Raises the API server's errors; call it again later.
    """
    return _Reconciliation(
        benchmark,
        objects,
        context,
        clock,
        OwnedObjects(benchmark, objects, context.namespace, context.owner),
    ).run()


def failure_of_pod(pod: Document, message: str, log: str) -> BenchmarkFailed:
    """Build a failure from the framed result of a pod that ended, else from its last log lines."""
    name = pod["metadata"]["name"]
    framed = unframe(log)
    if framed is not None:
        message = f"{name}: {framed.message}"
        return BenchmarkFailed(framed.failure, message, framed.lines, framed.remedy)
    lines = [
        *log.splitlines()[-LAST_LINES + 1 :],
        pod["status"].get("message") or pod["status"].get("reason") or "",
    ]
    return BenchmarkFailed(Failure.EXIT, f"{name}: {message}", lines)


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
    _pods: tuple[Document, ...] = ()

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
        except NameConflict as conflict:
            # the other object may be about to go
            if self._clock() - self._context.since_s <= manifests.start_s(self._benchmark):
                return Observation(BenchmarkPhase.PREPARING, str(conflict))
            # the name of the result may be taken as well, so it is only returned, not stored
            self._owned.delete()
            ended = self._failed(BenchmarkFailed(Failure.REFUSED, str(conflict)))
            return Observation(ended.phase, str(conflict), (), ended)
        except (BenchmarkFailed, UsageError, Refused) as error:
            return self._store(self._failed(error))

    def _advance(self, peers: Document) -> Observation:
        is_measuring = manifests.MEASURING in peers["data"]
        if not is_measuring:
            # a NameConflict while those of an earlier benchmark of this name exist
            self._owned.ensure(SERVICES, manifests.service(self._benchmark, self._context.owner))
            claim = manifests.claim(self._benchmark, self._context.owner)
            if claim:
                self._owned.ensure(CLAIMS, claim)
            servers = manifests.servers(self._benchmark)
            if gang_scheduling.wanted(self._benchmark):
                self._create_gang()
            elif servers:
                self._owned.ensure(JOBS, self._job(servers[0].role), self._owned.create_key)
        self._pods = self._owned.pods()
        return self._measure(peers) if is_measuring else self._prepare(peers)

    # -- results
    # ----------------------------------------------------------------------------------------------

    def _failed(self, error: BenchmarkFailed | UsageError | Refused) -> BenchmarkResult:
        now_s = self._clock()
        ended = self._benchmark.failed_by(error, started_s=now_s, finished_s=now_s)
        return replace(ended, message=ended.message[:1000], remedy=ended.remedy[:1000])

    def _store(self, ended: BenchmarkResult) -> Observation:
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
        return Observation(BenchmarkPhase.SUMMARISING, message, self._pods)

    # -- until everything is ready
    # ----------------------------------------------------------------------------------------------

    def _create_gang(self) -> None:
        """Create the PodGroup, then the Jobs of all parts.

        Raises UsageError where the cluster has no Volcano.
        """
        owner = self._context.owner
        group = gang_scheduling.pod_group(self._benchmark, owner)
        try:
            self._owned.ensure(gang_scheduling.POD_GROUPS, group, self._owned.create_key)
        except Busy:
            raise
        except (Missing, Unreachable) as error:
            raise gang_scheduling.absent(error.message) from error
        for job in gang_scheduling.jobs(self._benchmark, owner, self._context.image):
            self._owned.ensure(JOBS, job)

    def _prepare(self, peers: Document) -> Observation:
        since_s = pod_status.seconds(peers["metadata"]["creationTimestamp"])
        if gang_scheduling.wanted(self._benchmark):
            admission = gang_scheduling.admission(
                self._benchmark, self._objects, self._context.namespace
            )
            if not admission.since_s:
                return self._queued(admission.message, peers)
            if waits := self._context.waits():
                return Observation(BenchmarkPhase.PENDING, waits, self._pods)
            # the time that it waited for its turn does not count against its parts
            since_s = max(admission.since_s, self._context.since_s)
        for pod in self._pods:
            if pod["status"].get("phase") in ("Failed", "Succeeded"):
                log = self._owned.log_if_readable(pod)
                raise failure_of_pod(pod, "a server ended before it was needed", log)
        self._publish_peers(peers)
        reason = self._reason_to_wait()
        if not reason:
            if not gang_scheduling.wanted(self._benchmark):
                self._owned.ensure(JOBS, self._job(self._benchmark.kind.measures))
            # from here on a Job that is missing was deleted by somebody, and is not created again
            self._publish(
                peers, {manifests.MEASURING: str(self._clock())}, self._owned.measuring(self._pods)
            )
            return Observation(
                BenchmarkPhase.PREPARING, "the measuring part is being started", self._pods
            )
        self._require_start(since_s, "not all parts started in time", reason)
        return Observation(BenchmarkPhase.PREPARING, reason, self._pods)

    def _publish_peers(self, peers: Document) -> None:
        """Write the servers' addresses into the ConfigMap, once all are known."""
        addresses = pod_status.known(self._benchmark, self._pods)
        if (
            not addresses
            or len(addresses) != len(manifests.servers(self._benchmark))
            or manifests.PEERS in peers["data"]
        ):
            return
        texts = {
            manifests.PEERS: json.dumps([asdict(peer) for peer in addresses]),
            manifests.HOSTS: manifests.hosts(addresses),
        }
        self._publish(peers, texts, self._pods)

    def _publish(self, peers: Document, texts: Mapping[str, str], pods: Sequence[Document]) -> None:
        """Write texts into the ConfigMap of the peers, and let the kubelets of the pods look at it.

        texts: by their keys; the first one marks the pods.
        """
        namespace, name = self._context.namespace, peers["metadata"]["name"]
        self._objects.patch(CONFIG_MAPS, namespace, name, {"data": texts})
        change = {"metadata": {"annotations": {WRITTEN: next(iter(texts))}}}
        for pod in pods:
            self._objects.patch(PODS, namespace, pod_status.name(pod), change)

    def _reason_to_wait(self) -> str:
        """Name the first thing that measuring still waits for; "" when nothing is missing."""
        servers = manifests.servers(self._benchmark)
        roles = [part.role for part in servers]
        measuring = self._owned.measuring(self._pods)
        if gang_scheduling.wanted(self._benchmark) and not measuring:
            roles.append(self._benchmark.kind.measures)
        serving = [pod for pod in self._pods if pod not in measuring]
        unready = [
            f"{pod_status.name(pod)}: {pod_status.why_not(pod)}"
            for pod in serving
            if not pod_status.holds(pod, "Ready")
        ]
        if len(serving) < len(roles):
            denied = self._denied(self._find_job(roles[-1]))
            return denied or next(iter(unready), "pods are being created")
        if unready:
            return unready[0]
        known = pod_status.known(self._benchmark, self._pods)
        return "" if len(known) == len(servers) else "pods have no address yet"

    def _queued(self, message: str, peers: Document) -> Observation:
        """Wait for admission.

        Raises BenchmarkFailed when it takes too long, or was withdrawn after the parts had started.
        """
        if manifests.PEERS in peers["data"]:
            message = f"the admission was withdrawn: {message}"
            raise BenchmarkFailed(Failure.INTERRUPTED, message)
        age_s = self._clock() - pod_status.seconds(peers["metadata"]["creationTimestamp"])
        limit_s = gang_scheduling.admit_s(self._benchmark)
        if age_s > limit_s:
            message = f"not admitted in {limit_s:.0f} s: {message}"
            raise BenchmarkFailed(Failure.TIMED_OUT, message)
        return Observation(
            BenchmarkPhase.PENDING, message, self._pods, queued=age_s > gang_scheduling.AT_ONCE_S
        )

    def _job(self, role: str) -> Document:
        return manifests.job(self._benchmark, role, self._context.owner, self._context.image)

    def _find_job(self, role: str) -> Document | None:
        name = manifests.name_of(self._benchmark, role)
        return self._objects.find(JOBS, self._context.namespace, name)

    # -- until there is a result
    # ----------------------------------------------------------------------------------------------

    def _measure(self, peers: Document) -> Observation:
        job = self._find_job(self._benchmark.kind.measures)
        measuring = self._owned.measuring(self._pods)
        unreadable = ""
        for pod in measuring:
            try:
                ended = self._result(pod)
            except Busy as error:
                # its node may be gone for good, and the log with it
                unreadable = error.message
                continue
            if ended:
                # outside: an API server that is too busy to store it is asked again
                return self._store(ended)
        if unreadable:
            # a result in the log could still be in time
            self._check_limit(peers, measuring, unreadable)
            return Observation(BenchmarkPhase.RUNNING, unreadable, self._pods)
        if job is None:
            message = "the measuring Job was deleted by somebody"
            raise BenchmarkFailed(Failure.INTERRUPTED, message)
        if pod_status.holds(job, *_JOB_OVER):
            end = "ended without a result" if measuring else "was deleted"
            lines = [
                condition.get("message", "") for condition in pod_status.conditions(job).values()
            ]
            raise BenchmarkFailed(Failure.INTERRUPTED, f"the measuring pod {end}", lines)
        if any(pod["status"].get("phase") == "Running" for pod in measuring):
            self._check_limit(peers, measuring[:1], "")
            return Observation(BenchmarkPhase.RUNNING, "", self._pods)
        reason = pod_status.why_not(measuring[0]) if measuring else self._denied(job)
        limit_s = manifests.start_s(self._benchmark)
        message = f"the measuring part did not start in {limit_s:.0f} s"
        self._require_start(measuring_s(peers), message, reason)
        return Observation(BenchmarkPhase.PREPARING, reason, self._pods)

    def _result(self, pod: Document) -> BenchmarkResult | None:
        """Look for a result in the log of a pod; None while it runs without one.

        Raises BenchmarkFailed when the pod ended without one, and Busy when the log cannot be read
        now.
        """
        phase = pod["status"].get("phase")
        if phase not in ("Running", "Succeeded", "Failed"):
            return None
        log = self._objects.log(self._context.namespace, pod_status.name(pod))
        ended = unframe(log)
        if ended is not None:
            wrong_network = pod_status.elsewhere(pod, self._benchmark.spec.network_name, ended)
            if wrong_network:
                raise BenchmarkFailed(Failure.MISMATCH, wrong_network)
            environment = {
                **ended.environment,
                **pod_status.places(self._pods),
                "kubernetes": self._objects.version(),
            }
            notes = (*ended.notes, *pod_status.crowded(self._benchmark, self._pods))
            name = self._benchmark.name
            return replace(ended, name=name, environment=environment, notes=notes)
        if phase != "Running":
            raise failure_of_pod(pod, "the measuring pod ended without a result", log)
        return None

    def _check_limit(self, peers: Document, started: Sequence[Document], reason: str) -> None:
        """Raises BenchmarkFailed when the measuring pod has run for longer than its limit."""
        limit_s = self._benchmark.limit_s + manifests.SPARE_S
        since_s = max([measuring_s(peers), *map(pod_status.started_s, started)])
        self._require_time(since_s, limit_s, f"there was no result in {limit_s:.0f} s", reason)

    def _require_start(self, since_s: float, message: str, reason: str) -> None:
        """Raises BenchmarkFailed when a part should have started, or no node will ever take it."""
        self._require_time(since_s, manifests.start_s(self._benchmark), message, reason)
        if (
            not self._benchmark.spec.start_limit
            and self._clock() - since_s > manifests.UNSCHEDULABLE_S
            and any(map(pod_status.is_unschedulable, self._pods))
        ):
            raise BenchmarkFailed(
                Failure.TIMED_OUT,
                f"no node could take a part for {manifests.UNSCHEDULABLE_S:.0f} s; {reason}",
                remedy="correct what the scheduler names, or give a startLimit where nodes or"
                " volumes are made on demand",
            )

    def _require_time(self, since_s: float, limit_s: float, message: str, reason: str) -> None:
        """Raises BenchmarkFailed, with the message and a reason, when the limit has passed."""
        if self._clock() - since_s > limit_s:
            raise BenchmarkFailed(Failure.TIMED_OUT, "; ".join(filter(None, (message, reason))))

    def _denied(self, job: Document | None) -> str:
        """Return the API server's reason to deny a Job its pods.

        Raises BenchmarkFailed when waiting will not help.
        """
        if job is None:
            return ""
        failure = pod_status.failed(job)
        if failure:
            # a Job has one try, so there will not be another pod
            message = "a pod was lost before it was needed"
            raise BenchmarkFailed(Failure.INTERRUPTED, message, (failure,))
        message = pod_status.denial(self._objects, self._context.namespace, job)
        created_s = pod_status.seconds(job["metadata"]["creationTimestamp"])
        if pod_status.final(message, self._clock() - created_s):
            raise BenchmarkFailed(Failure.REFUSED, message)
        return message
