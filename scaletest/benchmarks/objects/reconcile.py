"""Reconcile one benchmark in a cluster, which holds the whole state.

The caller may be killed at any point, and another process resumes. That works because objects have
fixed names, an object that exists is not created again, and the result is stored before anything is
deleted. So nothing is measured twice.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from scaletest.benchmarks.documents import (
    Benchmark,
    BenchmarkPhase,
    BenchmarkResult,
    read_framed_result,
)
from scaletest.benchmarks.kinds import BenchmarkFailed, Failure, PartAddress, fail_if
from scaletest.benchmarks.objects import (
    config_maps,
    manifests,
    owned_objects,
    pod_status,
)
from scaletest.cluster.api_calls import Busy, Refused
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import CLAIMS, CONFIG_MAPS, EVENTS, JOBS, PODS
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural


@dataclass(frozen=True, slots=True)
class Observation:
    """Progress of a benchmark after one reconcile pass."""

    phase: BenchmarkPhase
    message: str = ""  # what it waits for
    pods: tuple[Document, ...] = ()  # its pods with their current status
    result: BenchmarkResult | None = None


def failure_of_pod(pod: Document, message: str, log: str) -> BenchmarkFailed:
    """Build a failure from the framed result of a pod that ended, else from its last log lines."""
    name = pod["metadata"]["name"]
    framed = read_framed_result(log)
    if framed is not None:
        return BenchmarkFailed(
            framed.failure, f"{name}: {framed.message}", framed.lines, framed.remedy
        )
    # the end of the log; the kubelet's reason comes last, as in an eviction
    lines = [
        *log.splitlines()[-7:],
        pod["status"].get("message") or pod["status"].get("reason") or "",
    ]
    return BenchmarkFailed(Failure.EXIT, f"{name}: {message}", lines)


@dataclass(slots=True)
class Reconciliation:
    """One reconcile pass over the objects of one benchmark."""

    benchmark: Benchmark
    objects: ObjectClient
    namespace: str
    owner: Document  # owner reference to the benchmark's object
    requested_s: float  # since the epoch
    image: str  # the container image, unless the benchmark's spec names one
    clock: Callable[[], float]
    owned: owned_objects.OwnedObjects = field(init=False)
    pods: tuple[Document, ...] = ()

    def __post_init__(self) -> None:
        self.owned = owned_objects.OwnedObjects(
            self.benchmark, self.objects, self.namespace, self.owner
        )

    def run(self) -> Observation:
        """Do what can be done now and return the progress; repeat it until the phase is final.

        Raises the API server's errors.
        """
        try:
            # the last pass: everything else is deleted once the result is stored
            result = self.owned.find_result()
            if result is not None:
                self.owned.delete_all()
                return Observation(result.phase, result.message, (), result)
            peers = self.owned.ensure(CONFIG_MAPS, manifests.peers_map(self.benchmark, self.owner))
            # measure what was agreed at the first pass, whatever the object says now
            self.benchmark = config_maps.read_agreed(peers, self.benchmark.kind)
            is_measuring = manifests.MEASURING in peers["data"]
            if not is_measuring:
                self._create_objects()
            self.pods = self.owned.list_pods()
            return self._find_outcome() if is_measuring else self._prepare(peers)
        except owned_objects.NameConflict as conflict:
            # the other object may be about to go
            if self.clock() - self.requested_s <= manifests.start_limit_s(self.benchmark):
                return Observation(BenchmarkPhase.PREPARING, str(conflict))
            # the name of the result may be taken as well, so it is only returned, not stored
            self.owned.delete_all()
            result = self._failed_result(BenchmarkFailed(Failure.REFUSED, str(conflict)))
            return Observation(result.phase, str(conflict), (), result)
        except (BenchmarkFailed, UsageError, Refused) as error:
            return self._store(self._failed_result(error))

    def _failed_result(self, error: BenchmarkFailed | UsageError | Refused) -> BenchmarkResult:
        now_s = self.clock()
        return self.benchmark.failed_by(error, started_s=now_s, finished_s=now_s)

    def _store(self, result: BenchmarkResult) -> Observation:
        """Store the result.

        Objects are deleted by the next pass only, so a crash between the two loses nothing.
        """
        self.owned.store_result(result)
        return Observation(BenchmarkPhase.SUMMARISING, result.message, self.pods)

    # -- until everything is ready
    # ----------------------------------------------------------------------------------------------

    def _create_objects(self) -> None:
        """Create what does not exist, up to the servers.

        Raises NameConflict while objects of an earlier benchmark of this name exist.
        """
        if claim := manifests.claim(self.benchmark, self.owner):
            self.owned.ensure(CLAIMS, claim)
        if servers := manifests.server_parts(self.benchmark):
            job = manifests.job(self.benchmark, servers[0].role, self.owner, self.image)
            self.owned.ensure(JOBS, job, self.owned.create_key)

    def _prepare(self, peers: Document) -> Observation:
        """Wait until all parts are ready, then create the part that measures."""
        starting_since_s = pod_status.parse_time_s(peers["metadata"]["creationTimestamp"])
        # a server that has ended will serve no client
        for pod in self.pods:
            if pod["status"].get("phase") in ("Failed", "Succeeded"):
                log = ""
                with suppress(Busy):  # its node may be gone for good, and the log with it
                    log = self.objects.log(self.namespace, pod["metadata"]["name"])
                raise failure_of_pod(pod, "a server ended before it was needed", log)
        # tell the parts who their peers are, once all are known
        addresses = self._server_addresses()
        is_complete = len(addresses) == len(manifests.server_parts(self.benchmark))
        if addresses and is_complete and manifests.PEERS not in peers["data"]:
            self._publish(peers, addresses)
        reason = self._reason_to_wait()
        if not reason and not is_complete:
            reason = "pods have no address yet"
        if reason:
            self._require_start(starting_since_s, "not all parts started in time", reason)
            return Observation(BenchmarkPhase.PREPARING, reason, self.pods)
        # let the measurement begin
        role = self.benchmark.kind.measures
        self.owned.ensure(JOBS, manifests.job(self.benchmark, role, self.owner, self.image))
        # from here on a Job that is missing was deleted by a user, and is not created again
        name = peers["metadata"]["name"]
        is_measuring = {"data": {manifests.MEASURING: "true"}}
        self.objects.patch(CONFIG_MAPS, self.namespace, name, is_measuring)
        return Observation(
            BenchmarkPhase.PREPARING, "the measuring part is being started", self.pods
        )

    def _server_addresses(self) -> list[PartAddress]:
        """Return the addresses of servers that have one, on the network that is measured."""
        spec, addresses = self.benchmark.spec, list[PartAddress]()
        for pod in self.pods:
            role = pod["metadata"]["labels"][manifests.ROLE]
            index = int((pod["metadata"].get("annotations") or {}).get(manifests.INDEX, 0))
            # it may have an address of each family
            is_ipv6 = spec.ip_family == "IPv6"
            ips = [
                ip
                for ip in pod_status.pod_addresses(pod, spec.network_name)
                if (":" in ip) == is_ipv6
            ]
            if role != self.benchmark.kind.measures and ips:
                host = manifests.name_of(self.benchmark, f"{role}-{index}")
                addresses.append(PartAddress(role, index, host, ips[0]))
        return sorted(addresses, key=lambda server: (server.role, server.index))

    def _publish(self, peers: Document, addresses: Sequence[PartAddress]) -> None:
        """Write the addresses into the ConfigMap of the peers, and let the kubelets look at it."""
        namespace, name = self.namespace, peers["metadata"]["name"]
        texts = {
            manifests.PEERS: json.dumps([asdict(peer) for peer in addresses]),
            manifests.HOSTS: manifests.hosts_file(addresses),
        }
        self.objects.patch(CONFIG_MAPS, namespace, name, {"data": texts})
        # a kubelet looks at the ConfigMap at once when its pod changes, and else up to a minute
        # later
        mark = {"metadata": {"annotations": {"scaletest.dev/peers-written": "true"}}}
        for pod in self.pods:
            self.objects.patch(PODS, namespace, pod["metadata"]["name"], mark)

    def _reason_to_wait(self) -> str:
        """Name the first pod that measuring still waits for; "" when none is missing."""
        servers = manifests.server_parts(self.benchmark)
        measuring = self.owned.measuring_pods(self.pods)
        serving = [pod for pod in self.pods if pod not in measuring]
        are_missing = len(serving) < len(servers)
        if are_missing and (denial := self._denial(self._find_job(servers[0].role))):
            return denial
        for pod in serving:
            if not pod_status.has_condition(pod, "Ready"):
                return f"{pod['metadata']['name']}: {pod_status.reason_not_running(pod)}"
        return "pods are being created" if are_missing else ""

    def _find_job(self, role: str) -> Document | None:
        return self.objects.find(JOBS, self.namespace, manifests.name_of(self.benchmark, role))

    # -- until there is a result
    # ----------------------------------------------------------------------------------------------

    def _find_outcome(self) -> Observation:
        """Look for the result of the measuring part, or for the reason why there is none."""
        job = self._find_job(self.benchmark.kind.measures)
        measuring = self.owned.measuring_pods(self.pods)
        unreadable = ""
        for pod in measuring:
            try:
                result = self._read_result(pod)
            except Busy as error:
                # its node may be gone for good, and the log with it
                unreadable = error.message
                continue
            if result:
                # not within the `try`: an API server that is too busy to store it is asked again
                return self._store(result)
        if unreadable:
            # there may be a result in a log, which can be read later
            self._check_limit(measuring, unreadable)
            return Observation(BenchmarkPhase.RUNNING, unreadable, self.pods)
        if job is None:
            raise BenchmarkFailed(Failure.INTERRUPTED, "the measuring Job was deleted by somebody")
        fail_if(
            pod_status.has_condition(job, "Failed", "Complete"),
            f"the measuring pod {'ended without a result' if measuring else 'was deleted'}",
            [
                condition.get("message", "")
                for condition in pod_status.conditions_by_type(job).values()
            ],
            failure=Failure.INTERRUPTED,
        )
        # no result yet: it runs, or has not started
        if any(pod["status"].get("phase") == "Running" for pod in measuring):
            self._check_limit(measuring, "")
            return Observation(BenchmarkPhase.RUNNING, "", self.pods)
        reason = pod_status.reason_not_running(measuring[0]) if measuring else self._denial(job)
        limit_s = manifests.start_limit_s(self.benchmark)
        self._require_start(
            pod_status.parse_time_s(job["metadata"]["creationTimestamp"]),
            f"the measuring part did not start within {limit_s:.0f} s",
            reason,
        )
        return Observation(BenchmarkPhase.PREPARING, reason, self.pods)

    def _read_result(self, pod: Document) -> BenchmarkResult | None:
        """Look for a result in the log of a pod; None while it runs without one.

        Raises BenchmarkFailed when the pod ended without one, and Busy when the log cannot be read
        now.
        """
        phase = pod["status"].get("phase")
        if phase not in ("Running", "Succeeded", "Failed"):
            return None
        log = self.objects.log(self.namespace, pod["metadata"]["name"])
        result = read_framed_result(log)
        if result is None:
            if phase == "Running":
                return None
            raise failure_of_pod(pod, "the measuring pod ended without a result", log)
        # the peer was reached by the network of the spec
        spec, used = self.benchmark.spec, result.network
        expected = pod_status.pod_addresses(pod, spec.network_name)
        fail_if(
            spec.network_name and result.ok and str(used.get("address", "")) not in expected,
            f"the peer was reached from {used.get('address') or 'nowhere'} by"
            f" {used.get('interface', 'no interface')}, and the pod's address on"
            f" {spec.network_name} is {', '.join(expected) or 'unknown'}",
            failure=Failure.MISMATCH,
        )
        # only the operator sees all pods: the nodes of the first ones, the digests of the images
        # that really ran, and whether they shared a node
        places: Document = {"nodes": {}, "images": {}}
        for placed in self.pods[:32]:
            (container, *_) = placed["status"].get("containerStatuses") or [{}]
            name = placed["metadata"]["name"]
            places["nodes"][name] = placed["spec"].get("nodeName", "")
            places["images"][name] = container.get("imageID", "")
        node_count = len({part.node for part in self.benchmark.kind.layout(spec)})
        used_nodes = {placed["spec"].get("nodeName", "") for placed in self.pods}
        notes = result.notes
        if not spec.nodes and len(used_nodes) < min(node_count, len(self.pods)):
            notes += (
                f"the parts ran on {plural(len(used_nodes), 'node')} instead of {node_count}, and"
                " what those of one node send each other crosses no network; with placement:"
                " differentNodes they wait for nodes of their own",
            )
        return replace(
            result,
            name=self.benchmark.name,
            environment={
                **result.environment,
                **places,
                "kubernetes": self.objects.version(),
            },
            notes=notes,
        )

    def _check_limit(self, pods: Sequence[Document], reason: str) -> None:
        """Raise BenchmarkFailed when the measuring pods have run for longer than their limit."""
        limit_s = self.benchmark.limit_s + manifests.LIMIT_SLACK_S
        since_s = max(map(pod_status.started_s, pods))
        message = f"no result came within {limit_s:.0f} s"
        fail_if(
            self.clock() - since_s > limit_s,
            f"{message}; {reason}" if reason else message,
            failure=Failure.TIMED_OUT,
        )

    def _require_start(self, since_s: float, message: str, reason: str) -> None:
        """Raise BenchmarkFailed when a part should have started by now."""
        fail_if(
            self.clock() - since_s > manifests.start_limit_s(self.benchmark),
            f"{message}; {reason}" if reason else message,
            failure=Failure.TIMED_OUT,
        )

    def _denial(self, job: Document | None) -> str:
        """Return the API server's reason to deny a Job its pods; "" without one.

        Raises BenchmarkFailed when waiting will not help.
        """
        if job is None:
            return ""
        # a Job has one try, so there will not be another pod
        reason = pod_status.conditions_by_type(job).get("Failed", {}).get("message")
        fail_if(
            pod_status.has_condition(job, "Failed"),
            "a pod was lost before it was needed",
            [str(reason or "the Job has failed")],
            failure=Failure.INTERRUPTED,
        )

        def event_time(event: Document) -> str:
            # which of these times an event has depends on who wrote it
            created = event["metadata"].get("creationTimestamp")
            return str(event.get("lastTimestamp") or event.get("eventTime") or created or "")

        # the last denial is in the Job's events; its status does not tell it
        events = self.objects.list(
            EVENTS,
            self.namespace,
            fields=f"involvedObject.uid={job['metadata']['uid']},reason=FailedCreate",
        )
        message = str(max(events, key=event_time, default={}).get("message", ""))
        age_s = self.clock() - pod_status.parse_time_s(job["metadata"]["creationTimestamp"])
        fail_if(pod_status.is_final_denial(message, age_s), message, failure=Failure.REFUSED)
        return message
