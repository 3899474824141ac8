"""Reconcile a benchmark's object: take its namespace's lock, act once, give the status."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from scaletest.benchmarks.documents import Benchmark, BenchmarkPhase, read_benchmark
from scaletest.benchmarks.kinds import Kind, registry
from scaletest.benchmarks.measure.operator_executor import resource_of
from scaletest.benchmarks.objects import (
    config_maps,
    manifests,
    owned_objects,
    pod_status,
)
from scaletest.benchmarks.objects.reconcile import Observation, Reconciliation
from scaletest.benchmarks.operator import reporting, status
from scaletest.cluster.api_calls import Busy, Conflict, Missing
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import CONFIG_MAPS, LEASES
from scaletest.model import errors, wording

LEASE = "scaletest-benchmarks"
# Label of benchmarks of a set that share no node, so they do not wait for each other.
TOGETHER = "scaletest.dev/together"
PAUSED = "paused: set spec.paused to false to start it"
# Names no benchmark: with a name in it, all statuses would be rewritten at every turn.
WAITING = f"waiting for its turn: the Lease {LEASE} names the benchmark that measures now"


def take_lock(objects: ObjectClient, namespace: str, holder: str) -> bool:
    """Take the lock of a namespace, or keep it; False while another benchmark has it.

    It is a Lease that names the benchmark that measures, as PLURAL/NAME/UID. Nobody gives it back:
    a holder that has ended, was deleted or is paused holds nothing, so no lock is left behind.
    """
    lease = objects.find(LEASES, namespace, LEASE)
    body: Document = {"metadata": {"name": LEASE}, "spec": {"holderIdentity": holder}}
    if lease is None:
        return objects.create(LEASES, namespace, body) is not None
    current_holder = lease["spec"].get("holderIdentity") or ""
    if current_holder == holder:
        return True
    if _is_measured(objects, namespace, current_holder):
        return False
    body["metadata"]["resourceVersion"] = lease["metadata"]["resourceVersion"]
    try:
        objects.patch(LEASES, namespace, LEASE, body)
    except (Conflict, Missing):
        # another one was faster
        return False
    return True


def _is_measured(objects: ObjectClient, namespace: str, holder: str) -> bool:
    """Check whether the benchmark that a lease names exists, has not ended and is not paused."""
    plural, name, uid = (*holder.split("/"), "", "", "")[:3]
    kinds = {kind.plural: kind for kind in registry.KINDS.values()}
    if plural not in kinds:
        return False
    document = objects.find(resource_of(kinds[plural]), namespace, name)
    if document is None or document["metadata"]["uid"] != uid:
        return False
    is_paused = (document.get("status") or {}).get("message") == PAUSED
    return not is_paused and not reporting.has_ended(document)


def reconcile(
    kind: Kind,
    objects: ObjectClient,
    namespace: str,
    name: str,
    settings: reporting.ReconcileSettings,
) -> str:
    """Bring a benchmark forward; return its phase if that has changed, else ""."""
    resource = resource_of(kind)
    return reporting.run_pass(
        resource,
        objects,
        namespace,
        name,
        lambda document: _BenchmarkPass(
            resource,
            objects,
            namespace,
            settings,
            document,
            kind,
        ),
    )


def clean_up(kind: Kind, objects: ObjectClient, namespace: str, document: Document) -> None:
    """Delete the objects of a benchmark, which is refused or about to be deleted."""
    meta = document["metadata"]
    if manifests.NAME.fullmatch(meta["name"]):
        owned_objects.delete_objects(kind, meta["name"], meta["uid"], objects, namespace)


@dataclass(frozen=True, slots=True)
class _BenchmarkPass(reporting.ReconcilePass):
    """One reconcile pass over a benchmark."""

    kind: Kind

    def act(self) -> tuple[Document, str]:
        """Act once; return the status then, and what an event says of it."""
        try:
            benchmark = read_benchmark(self.document)
            manifests.require_runnable(benchmark)
        except errors.UsageError as error:
            # a spec that was made invalid later ends what had begun
            clean_up(self.kind, self.objects, self.namespace, self.document)
            name = self.document["metadata"]["name"]
            benchmark = Benchmark(name, self.kind, self.kind.spec())
            observation = _refused_observation(benchmark, error)
        else:
            # what the spec leaves open is as the operator was told
            unset: dict[str, Any] = {
                name: setting
                for name, setting in self.settings.pod_fields.items()
                if not getattr(benchmark.spec, name)
            }
            benchmark = replace(benchmark, spec=replace(benchmark.spec, **unset))
            observation = self._advance(benchmark)
        new_status = status.status_of(
            benchmark,
            observation,
            self._status,
            self.settings.clock(),
        )
        return new_status, new_status.get("summary") or new_status["message"]

    @property
    def _status(self) -> Mapping[str, str]:
        return self.document.get("status") or {}

    def _advance(self, benchmark: Benchmark) -> Observation:
        """Act once for a benchmark whose spec is valid, if it is its turn."""
        meta = self.document["metadata"]
        exclusive = TOGETHER not in meta.get("labels", {})
        if reason := self._reason_to_wait(benchmark, exclusive=exclusive):
            return Observation(BenchmarkPhase.PENDING, reason)
        # limits count from its start, which is now when it has not started yet
        since_s = max(pod_status.parse_time_s(meta["creationTimestamp"]), self.settings.clock())
        if "startedAt" in self._status:
            since_s = pod_status.parse_time_s(self._status["startedAt"])
        try:
            return Reconciliation(
                benchmark,
                self.objects,
                self.namespace,
                owner=reporting.owner_reference(self.document),
                requested_s=since_s,
                image=manifests.image_of(benchmark.kind, self.settings.image),
                clock=self.settings.clock,
            ).run()
        except Busy:
            raise
        except errors.Unreachable as error:
            # a missing right or a quota may be corrected, but not for ever
            if (
                self.settings.clock() - since_s
                > manifests.start_limit_s(benchmark) + benchmark.limit_s + manifests.LIMIT_SLACK_S
            ):
                return _refused_observation(benchmark, error)
            return Observation(
                BenchmarkPhase.PREPARING, f"{error.message}; {wording.as_options(error.hint)}"
            )

    def _reason_to_wait(self, benchmark: Benchmark, *, exclusive: bool) -> str:
        """Say why it may not measure now; "" when it may, and holds the lock if exclusive."""
        is_pending = self._status.get("phase") in (None, str(BenchmarkPhase.PENDING))
        meta = self.document["metadata"]
        if is_pending and benchmark.spec.paused and not self._has_begun():
            return PAUSED
        holder = f"{self.kind.plural}/{meta['name']}/{meta['uid']}"
        if exclusive and not take_lock(self.objects, self.namespace, holder):
            return WAITING
        return ""

    def _has_begun(self) -> bool:
        """Check for what an earlier pass made, whose status was not written."""
        meta = self.document["metadata"]
        peers = self.objects.find(CONFIG_MAPS, self.namespace, f"{meta['name']}-peers")
        return peers is not None and config_maps.is_owned(peers, meta["uid"])


def _refused_observation(benchmark: Benchmark, error: errors.ScaletestError) -> Observation:
    result = benchmark.failed_by(error)
    return Observation(result.phase, result.message, (), result)
