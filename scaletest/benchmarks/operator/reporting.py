"""Act for an object, write its status, and send an event: what all reconcilers share.

A phase is written only after what it reports has been done, so a killed operator loses nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scaletest.benchmarks.documents import BenchmarkPhase
from scaletest.benchmarks.operator import status
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.cluster.connection import Conflict, Missing
from scaletest.cluster.objects import ObjectClient, Resource

# Creates an event from object, type, reason and message.
SendEvent = Callable[[status.Document, str, str, str], None]


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """Settings of the operator, and what it may remember between passes to spare API calls."""

    image: str  # for benchmarks that name none
    clock: Callable[[], float]
    send_event: SendEvent
    # attributes of specs that set none, such as the scheduler
    pod_fields: Mapping[str, str] = field(default_factory=dict)
    # plans of sets, by the set's uid; they never change
    plans: dict[str, BenchmarkPlan] = field(default_factory=dict)
    # by a set's uid the benchmarks that were created, and may not be in the index yet
    new_children: dict[str, dict[str, bool]] = field(default_factory=dict)


def owner_reference(document: status.Document) -> status.Document:
    """Return an owner reference to an object, for the metadata of what belongs to it."""
    meta = document["metadata"]
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def has_ended(document: status.Document) -> bool:
    """Check whether an object's phase is final."""
    return (document.get("status") or {}).get("phase") in (
        BenchmarkPhase.COMPLETED,
        BenchmarkPhase.FAILED,
    )


def report(
    resource: Resource,
    objects: ObjectClient,
    namespace: str,
    name: str,
    settings: ReconcileSettings,
    act: Callable[[status.Document], tuple[status.Document, str]],
    free: Callable[[status.Document], object] = lambda document: None,
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
    if has_ended(document):
        if status.is_edited(document):
            # the part of the status that changes when the spec of an ended object is changed
            conditions = [
                condition
                for condition in before.get("conditions") or ()
                if condition["type"] != status.EDITED
            ]
            late = {
                "observedGeneration": document["metadata"]["generation"],
                "conditions": [
                    *conditions,
                    *status.edited_conditions(before, True, settings.clock()),
                ],
            }
            _write_status(resource, objects, namespace, document, late, settings)
        return ""
    now, message = act(document)
    is_written = _write_status(resource, objects, namespace, document, now, settings)
    phase = str(now["phase"])
    if not is_written or phase == before.get("phase"):
        return ""
    if has_ended({"status": now}):
        free(document)
    event_type = "Warning" if phase == BenchmarkPhase.FAILED else "Normal"
    settings.send_event(document, event_type, phase, message or phase)
    return phase


def _write_status(
    resource: Resource,
    objects: ObjectClient,
    namespace: str,
    document: status.Document,
    now: status.Document,
    settings: ReconcileSettings,
) -> bool:
    """Write the status if it differs; False when the object is gone.

    Sends a warning once when the spec was changed too late. Raises Conflict when another operator
    has written the status since.
    """
    before, meta = document.get("status") or {}, document["metadata"]
    if all(before.get(key) == status.drop_nulls(part) for key, part in now.items()):
        return True
    newest = document
    while True:
        version = newest["metadata"]["resourceVersion"]
        body = {"metadata": {"resourceVersion": version}, "status": now}
        try:
            objects.patch(resource, namespace, meta["name"], body, "status")
            break
        except Missing:
            return False
        except Conflict:
            found = objects.find(resource, namespace, meta["name"])
            if found is None:
                return False
            if found.get("status") != document.get("status"):
                raise
            # kopf's annotations or the spec have changed, not the status
            newest = found
    messages = {
        condition["type"]: condition["message"] for condition in now.get("conditions") or ()
    }
    if messages.get(status.EDITED) and not status.edited_conditions(before, False, 0.0):
        settings.send_event(document, "Warning", status.EDITED, messages[status.EDITED])
    return True
