"""One reconcile pass over one benchmark: take the lock, act once, write the status.

The lock of a namespace is a Lease, which names the benchmark that measures, as only one may at a
time. A holder that has ended or was deleted holds nothing, so no lock is left behind.

A phase is written only after what it reports has been done, so a killed operator loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from scaletest.benchmarks import benchmark as benchmark_documents
from scaletest.benchmarks.benchmark import Benchmark, BenchmarkPhase
from scaletest.benchmarks.benchmark_set import BenchmarkPlan
from scaletest.benchmarks.kinds.kind import Kind
from scaletest.benchmarks.kinds.registry import KINDS
from scaletest.benchmarks.measure.operator_executor import resource
from scaletest.benchmarks.objects import gang_scheduling
from scaletest.benchmarks.objects.manifests import SPARE_S, image_of, start_s
from scaletest.benchmarks.objects.owned_objects import Damaged, agreed, forget, owned
from scaletest.benchmarks.objects.pod_status import NAME, refuse
from scaletest.benchmarks.objects.reconcile import BenchmarkContext, Observation
from scaletest.benchmarks.objects.reconcile import reconcile as reconcile_objects
from scaletest.benchmarks.operator import status
from scaletest.benchmarks.operator.status import Document
from scaletest.cluster.answers import Busy, Conflict, Missing
from scaletest.cluster.objects import Documents
from scaletest.cluster.resources import CONFIG_MAPS, LEASES, Resource
from scaletest.model.errors import ScaletestError, Unreachable, UsageError
from scaletest.model.wording import as_options

LEASE = "scaletest-benchmarks"
# Label of benchmarks of a set that share no node, so they do not wait for each other.
TOGETHER = "scaletest.dev/together"
PAUSED = "paused: set spec.paused to false to start it"
# Names no benchmark: with a name in it, all statuses would be written anew at every turn.
WAITING = f"waiting for its turn: the Lease {LEASE} names the benchmark that measures now"
ADMITTED = f"all parts are admitted; {WAITING}"
SendEvent = Callable[[Document, str, str, str], None]


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
        if holder and self._is_measuring(holder):
            return holder.rpartition("/")[0]
        return "" if self._write(self._holder, lease["metadata"]["resourceVersion"]) else "another"

    def give_back(self) -> None:
        """Release the lock if this benchmark holds it."""
        lease = self._objects.find(LEASES, self._namespace, LEASE)
        if lease is not None and lease["spec"].get("holderIdentity") == self._holder:
            self._write("", lease["metadata"]["resourceVersion"])

    def _write(self, holder: str, version: str) -> bool:
        body = {"metadata": {"resourceVersion": version}, "spec": {"holderIdentity": holder}}
        try:
            self._objects.patch(LEASES, self._namespace, LEASE, body)
        except (Conflict, Missing):
            return False
        return True

    def _is_measuring(self, holder: str) -> bool:
        plural, name, uid = (*holder.split("/"), "", "", "")[:3]
        kinds = {kind.plural: kind for kind in KINDS.values()}
        if plural not in kinds:
            return False
        document = self._objects.find(resource(kinds[plural]), self._namespace, name)
        return document is not None and document["metadata"]["uid"] == uid and not ended(document)


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """Settings of the operator, and what it may remember between passes to spare API calls.

    image: for benchmarks that name none. pod_fields: attributes of specs that set none, such as the
    scheduler. send_event: creates an event from object, type, reason and message.
    plans: plans of sets, by the set's uid; they never change. new_children: by a set's uid the
    benchmarks that were created, and may not be in the index yet.
    """

    image: str
    clock: Callable[[], float]
    send_event: SendEvent
    pod_fields: Mapping[str, str] = field(default_factory=dict)
    plans: dict[str, BenchmarkPlan] = field(default_factory=dict)
    new_children: dict[str, dict[str, bool]] = field(default_factory=dict)


def owner_reference(document: Document) -> Document:
    """An owner reference to an object, for the metadata of what belongs to it."""
    meta = document["metadata"]
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def ended(document: Document) -> bool:
    """Whether an object's phase is final."""
    return (document.get("status") or {}).get("phase") in (
        BenchmarkPhase.COMPLETED,
        BenchmarkPhase.FAILED,
    )


def reconcile(
    kind: Kind, objects: Documents, namespace: str, name: str, settings: ReconcileSettings
) -> str:
    """Bring a benchmark forward; its phase if that has changed, else ""."""

    def lock(document: Document) -> Lock:
        return Lock(objects, namespace, kind.plural, name, document["metadata"]["uid"])

    return report(
        resource(kind),
        objects,
        namespace,
        name,
        settings,
        lambda document: _Pass(kind, document, objects, namespace, settings, lock(document)).act(),
        lambda document: lock(document).give_back(),
    )


def report(
    resource: Resource,
    objects: Documents,
    namespace: str,
    name: str,
    settings: ReconcileSettings,
    act: Callable[[Document], tuple[Document, str]],
    free: Callable[[Document], object] = lambda document: None,
) -> str:
    """Act for an object that has not ended, write its status, and send an event for a new phase.

    act: gives the new status, and the message of the event. free: gives back what the object holds
    once its end is written, before anything else can fail. Returns the phase if it has changed,
    else "", also for an object that is gone or is being deleted.
    """
    document = objects.find(resource, namespace, name)
    if document is None or document["metadata"].get("deletionTimestamp"):
        return ""
    before = document.get("status") or {}
    if ended(document):
        if status.changed(document):
            late = status.after_late_edit(document, settings.clock())
            write_status(resource, objects, namespace, document, late, settings)
        return ""
    now, message = act(document)
    is_written = write_status(resource, objects, namespace, document, now, settings)
    phase = str(now["phase"])
    if not is_written or phase == before.get("phase"):
        return ""
    if ended({"status": now}):
        free(document)
    event_type = "Warning" if phase == BenchmarkPhase.FAILED else "Normal"
    settings.send_event(document, event_type, phase, message or phase)
    return phase


def write_status(
    resource: Resource,
    objects: Documents,
    namespace: str,
    document: Document,
    now: Document,
    settings: ReconcileSettings,
) -> bool:
    """Write the status if it differs; False when the object is gone.

    Sends a warning once when the spec was changed too late.
    """
    before = document.get("status") or {}
    if any(before.get(key) != status.as_merged(part) for key, part in now.items()):
        try:
            _patch_status(resource, objects, namespace, document, now)
        except Missing:
            return False
        if message := status.late_edit_message(before, now):
            settings.send_event(document, "Warning", status.EDITED, message)
    return True


def _patch_status(
    resource: Resource, objects: Documents, namespace: str, document: Document, now: Document
) -> None:
    """Write the status. Raises Conflict when another operator has written it since."""
    name = document["metadata"]["name"]
    try:
        objects.patch(
            resource,
            namespace,
            name,
            {
                "metadata": {"resourceVersion": document["metadata"]["resourceVersion"]},
                "status": now,
            },
            "status",
        )
    except Conflict:
        newer = objects.find(resource, namespace, name)
        if newer is None:
            raise Missing(name) from None
        if newer.get("status") != document.get("status"):
            raise
        # kopf's annotations or the spec have changed, not the status
        _patch_status(resource, objects, namespace, newer, now)


def before_deletion(kind: Kind, objects: Documents, namespace: str, document: Document) -> None:
    """Clean up before a benchmark is deleted: delete its objects, release its lock."""
    meta = document["metadata"]
    if NAME.fullmatch(meta["name"]):
        forget(kind, meta["name"], meta["uid"], objects, namespace)
    Lock(objects, namespace, kind.plural, meta["name"], meta["uid"]).give_back()


@dataclass(frozen=True, slots=True)
class _Pass:
    """One reconcile pass: what it acts on, and with what."""

    kind: Kind
    document: Document
    objects: Documents
    namespace: str
    settings: ReconcileSettings
    lock: Lock

    def act(self) -> tuple[Document, str]:
        """Act once; the status then, and what an event says of it."""
        benchmark, observation = self._act()
        now = status.of(
            benchmark,
            observation,
            self._status,
            self.settings.clock(),
            int(self.document["metadata"].get("generation", 0)),
        )
        return now, now.get("summary") or now["message"]

    def _act(self) -> tuple[Benchmark, Observation]:
        """The benchmark as it is measured, and how far it is."""
        try:
            benchmark = self._read()
        except UsageError as error:
            begun = self._begun()
            if begun is None:
                unreadable = Benchmark(
                    self.document["metadata"]["name"], self.kind, self.kind.spec()
                )
                return unreadable, self._refused(unreadable, error)
            # its spec was made invalid after it began: the old one is measured to its end
            return begun, replace(self._reconciled(begun), edited=True)
        return benchmark, self._reconciled(benchmark)

    def _read(self) -> Benchmark:
        """The benchmark of the document. Raises UsageError when it cannot be measured like that."""
        benchmark = benchmark_documents.read(
            {
                key: self.document[key]
                for key in ("apiVersion", "kind", "metadata", "spec")
                if key in self.document
            }
        )
        refuse(benchmark)
        unset: dict[str, Any] = {
            name: setting
            for name, setting in self.settings.pod_fields.items()
            if not getattr(benchmark.spec, name)
        }
        return replace(benchmark, spec=replace(benchmark.spec, **unset))

    @property
    def _status(self) -> Mapping[str, str]:
        return self.document.get("status") or {}

    def _begun(self) -> Benchmark | None:
        """The benchmark as it was when its first object was created; None before that."""
        meta = self.document["metadata"]
        peers = self.objects.find(CONFIG_MAPS, self.namespace, f"{meta['name']}-peers")
        if peers is None or not owned(peers, meta["uid"]):
            return None
        try:
            return agreed(peers)
        except Damaged:
            # the next pass ends it, and says why
            return Benchmark(meta["name"], self.kind, self.kind.spec())

    def _reconciled(self, benchmark: Benchmark) -> Observation:
        """Act once for a benchmark whose spec is valid, if it is its turn."""
        exclusive = TOGETHER not in self.document["metadata"].get("labels", {})
        if reason := self._why_not(benchmark, exclusive):
            return Observation(BenchmarkPhase.PENDING, reason)
        since = self._since()
        place = BenchmarkContext(
            self.namespace,
            owner_reference(self.document),
            since,
            image_of(benchmark.kind, self.settings.image),
            lambda: ADMITTED if exclusive and self.lock.take() else "",
        )
        try:
            observation = reconcile_objects(benchmark, self.objects, place, self.settings.clock)
        except Busy:
            raise
        except Unreachable as error:
            return self._hindered(benchmark, error, since)
        if observation.queued:
            self.lock.give_back()
        return observation

    def _why_not(self, benchmark: Benchmark, exclusive: bool) -> str:
        """Why it may not measure now; "" when it may, and then it holds the lock if exclusive."""
        pending = self._status.get("phase") in (None, str(BenchmarkPhase.PENDING))
        # one that waits in a queue has begun: its parts may be admitted at any moment
        if pending and benchmark.spec.paused and self._begun() is None:
            self.lock.give_back()
            return PAUSED
        # one in a queue needs its turn only when it is admitted, so others may measure meanwhile
        in_queue = pending and gang_scheduling.wanted(benchmark) and self._begun() is not None
        if exclusive and not in_queue and self.lock.take():
            return WAITING
        return ""

    def _since(self) -> float:
        """When it started, in seconds since the epoch; now when it has not started yet."""
        started = self._status.get("startedAt")
        if started:
            return datetime.fromisoformat(started).timestamp()
        created = datetime.fromisoformat(self.document["metadata"]["creationTimestamp"]).timestamp()
        return max(created, self.settings.clock())

    def _hindered(self, benchmark: Benchmark, error: Unreachable, since: float) -> Observation:
        """Wait while a missing right or a quota may be corrected, but not for ever."""
        if self.settings.clock() - since > start_s(benchmark) + benchmark.limit_s + SPARE_S:
            return self._refused(benchmark, error)
        return Observation(BenchmarkPhase.PREPARING, f"{error.message}; {as_options(error.hint)}")

    def _refused(self, benchmark: Benchmark, error: ScaletestError) -> Observation:
        ended = benchmark.failed_by(error)
        return Observation(ended.phase, ended.message, (), ended)
