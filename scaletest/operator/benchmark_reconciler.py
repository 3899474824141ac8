"""One look at one benchmark: the lock, a step, and its status. A phase is written after what it says has been done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from scaletest.benchmarks import gang
from scaletest.benchmarks.kept import Damaged, Reads, agreed, forget, owned
from scaletest.benchmarks.kubernetes import step
from scaletest.benchmarks.manifests import SPARE_S, image_of, start_s
from scaletest.benchmarks.obstacles import NAME, refuse
from scaletest.benchmarks.seen import Place, Seen
from scaletest.cluster.documents import CONFIG_MAPS, Busy, Conflict, Missing, Resource
from scaletest.kinds import benchmark as documents
from scaletest.kinds.benchmark import Benchmark, BenchmarkPhase, BenchmarkResult
from scaletest.kinds.kind import Failure, Kind
from scaletest.kinds.plan import BenchmarkPlan
from scaletest.kinds.registry import API_VERSION
from scaletest.model.errors import ScaletestError, Unreachable, UsageError
from scaletest.operator import accounts, status
from scaletest.operator.lock import NAME as LEASE
from scaletest.operator.lock import Lock
from scaletest.operator.status import Document

# A set whose benchmarks share no node; they do not wait for each other.
TOGETHER = "scaletest.dev/together"
PAUSED = "paused: set spec.paused to false"
# The same for all and at any time, or each would be written anew whenever another measures.
WAITS = f"waits for its turn; the Lease {LEASE} says who measures"
ADMITTED = f"all parts are admitted; {WAITS}"
Tell = Callable[[Document, str, str, str], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """image: of benchmarks that name none; accounts: by kind, of those that need one and name none.

    tell: makes an event of object, type, reason and message.
    plans: those of sets by uid, which never change; only to spare reading them each time.
    fresh: by the uid of a set the benchmarks that were made, and that the watches may not have brought yet.
    """

    image: str
    clock: Callable[[], float]
    tell: Tell
    accounts: Mapping[str, str] = field(default_factory=dict)
    plans: dict[str, BenchmarkPlan] = field(default_factory=dict)
    fresh: dict[str, dict[str, bool]] = field(default_factory=dict)


def resource(kind: Kind) -> Resource:
    """Where the objects of a kind are."""
    return Resource(kind.name, f"/apis/{API_VERSION}", kind.plural, True)


def owner(document: Document) -> Document:
    """The reference of what belongs to an object."""
    meta = document["metadata"]
    return {"apiVersion": document["apiVersion"], "kind": document["kind"], "name": meta["name"], "uid": meta["uid"],
            "controller": True}  # fmt: skip


def ended(document: Document) -> bool:
    """Whether an object's phase is an end."""
    return (document.get("status") or {}).get("phase") in [str(one) for one in BenchmarkPhase if one.ended]


def look(kind: Kind, objects: Reads, namespace: str, name: str, settings: Settings) -> BenchmarkPhase | None:
    """Move a benchmark on; the phase when it has changed."""
    found = objects.find(resource(kind), namespace, name)
    if found is None or found["metadata"].get("deletionTimestamp"):
        return None
    if ended(found):
        if status.changed(found):
            write(resource(kind), objects, namespace, found, status.late(found, settings.clock()), settings)
        return None
    before = found.get("status") or {}
    lock = Lock(objects, namespace, kind.plural, name, found["metadata"]["uid"])
    one, seen = _looked(kind, found, objects, namespace, settings, lock)
    now = status.of(one, seen, before, settings.clock(), int(found["metadata"].get("generation", 0)))
    if not write(resource(kind), objects, namespace, found, now, settings):
        return None
    if seen.phase.ended:
        lock.give_back()
    if now["phase"] == before.get("phase"):
        return None
    settings.tell(found, "Warning" if seen.phase is BenchmarkPhase.FAILED else "Normal", now["phase"],
                  now.get("summary") or now["message"] or now["phase"])  # fmt: skip
    return BenchmarkPhase(now["phase"])


def write(
    what: Resource, objects: Reads, namespace: str, found: Document, now: Document, settings: Settings
) -> bool:  # fmt: skip
    """The status, when it is another; False when the object is gone. Says it when the spec was changed too late."""
    before = found.get("status") or {}
    if any(before.get(key) != status.as_kept(value) for key, value in now.items()):
        try:
            _written(what, objects, namespace, found, now)
        except Missing:
            return False
        if message := status.told(before, now):
            settings.tell(found, "Warning", status.EDITED, message)
    return True


def _written(what: Resource, objects: Reads, namespace: str, found: Document, now: Document) -> None:
    """Write the status. Raises Conflict when somebody has since it was read: another operator's word comes first."""
    name, seen = found["metadata"]["name"], {"resourceVersion": found["metadata"]["resourceVersion"]}
    try:
        objects.patch(what, namespace, name, {"metadata": seen, "status": now}, "status")
    except Conflict:
        other = objects.find(what, namespace, name)
        if other is None:
            raise Missing(name) from None
        if other.get("status") != found.get("status"):
            raise
        _written(what, objects, namespace, other, now)  # kopf's notes, or the spec


def gone(kind: Kind, objects: Reads, namespace: str, document: Document) -> None:
    """What is to be done before a benchmark may go."""
    meta = document["metadata"]
    if NAME.fullmatch(meta["name"]):
        forget(kind, meta["name"], meta["uid"], objects, namespace)
    Lock(objects, namespace, kind.plural, meta["name"], meta["uid"]).give_back()


def _looked(
    kind: Kind, found: Document, objects: Reads, namespace: str, settings: Settings, lock: Lock
) -> tuple[Benchmark, Seen]:
    """The benchmark as it is measured, and how far it is."""
    late = False
    try:
        one = documents.read({key: found[key] for key in ("apiVersion", "kind", "metadata", "spec") if key in found})
        refuse(one)
        one = accounts.with_account(one, settings.accounts)
        if not (found.get("status") or {}).get("startedAt"):
            accounts.check(one, objects, namespace)
    except UsageError as error:
        begun = _begun(kind, found, objects, namespace)
        if begun is None:
            one = Benchmark(found["metadata"]["name"], kind, kind.spec())
            return one, _refused(one, error, settings)
        one, late = begun, True
    seen = _moved(one, found, objects, namespace, settings, lock)
    return one, replace(seen, edited=seen.edited or late)


def _begun(kind: Kind, found: Document, objects: Reads, namespace: str) -> Benchmark | None:
    """What is being measured, when that has begun."""
    meta = found["metadata"]
    peers = objects.find(CONFIG_MAPS, namespace, f"{meta['name']}-peers")
    if peers is None or not owned(peers, meta["uid"]):
        return None
    try:
        return agreed(peers)
    except Damaged:
        return Benchmark(meta["name"], kind, kind.spec())  # its next step ends it, and says why


def _moved(one: Benchmark, found: Document, objects: Reads, namespace: str, settings: Settings, lock: Lock) -> Seen:
    fresh = (found.get("status") or {}).get("phase") in (None, str(BenchmarkPhase.PENDING))
    # one that waits in a queue has begun: its parts may be admitted at any moment
    if fresh and one.spec.paused and _begun(one.kind, found, objects, namespace) is None:
        lock.give_back()
        return Seen(BenchmarkPhase.PENDING, PAUSED)
    alone = TOGETHER not in found["metadata"].get("labels", {})
    # one that is in a queue needs its turn only when it is admitted, so others may measure meanwhile
    queues = fresh and gang.wanted(one) and _begun(one.kind, found, objects, namespace) is not None
    if alone and not queues and lock.take():
        return Seen(BenchmarkPhase.PENDING, WAITS)
    since = datetime.fromisoformat(found["metadata"]["creationTimestamp"]).timestamp()
    started = (found.get("status") or {}).get("startedAt")
    since = datetime.fromisoformat(started).timestamp() if started else max(since, settings.clock())
    try:
        seen = step(
            one, objects,
            Place(namespace, owner(found), since, image_of(one.kind, settings.image),
                  lambda: ADMITTED if alone and lock.take() else ""),
            settings.clock,
        )  # fmt: skip
    except Unreachable as error:
        # a missing right or a quota may be mended, but not for ever
        if isinstance(error, Busy):
            raise
        if settings.clock() - since > start_s(one) + one.limit_s + SPARE_S:
            return _refused(one, error, settings)
        return Seen(BenchmarkPhase.PREPARING, f"{error.message}; {error.hint}")
    if seen.queued:
        lock.give_back()
    return seen


def _refused(one: Benchmark, error: ScaletestError, settings: Settings) -> Seen:
    now = settings.clock()
    why = BenchmarkResult(one.name, BenchmarkPhase.FAILED, failure=Failure.REFUSED, message=error.message, remedy=error.hint,
                started_s=now, finished_s=now)  # fmt: skip
    return Seen(BenchmarkPhase.FAILED, error.message, (), why)


__all__ = ["Settings", "TOGETHER", "ended", "gone", "look", "owner", "resource", "write"]
