"""Make a reconcile pass over an object: act for it, write its status, and send an event.

A phase is written only after what it reports has been done, so a killed operator loses nothing.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from scaletest.benchmarks.documents import FINAL_PHASES, BenchmarkPhase
from scaletest.benchmarks.plan import BenchmarkPlan
from scaletest.cluster.api_calls import Conflict, Missing
from scaletest.cluster.objects import Document, ObjectClient
from scaletest.cluster.resources import Resource

# Creates an event from object, type, reason and message.
SendEvent = Callable[[Document, str, str, str], None]


@dataclass(frozen=True, slots=True)
class ReconcileSettings:
    """Settings of the operator, and what it may remember between passes to spare API calls."""

    image: str  # for benchmarks that name none
    clock: Callable[[], float]
    send_event: SendEvent
    # attributes of specs that set none, such as the scheduler
    pod_fields: Mapping[str, str | None] = field(default_factory=dict)
    # plans of sets, by the set's uid; they never change
    plans: dict[str, BenchmarkPlan] = field(default_factory=dict)
    # by a set's uid the benchmarks that were created, and may not be in the index yet
    new_children: dict[str, dict[str, bool]] = field(default_factory=dict)


def owner_reference(document: Document) -> Document:
    """Return an owner reference to an object, for the metadata of what belongs to it."""
    meta = document["metadata"]
    return {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def has_ended(document: Document) -> bool:
    """Check whether an object's phase is final."""
    return (document.get("status") or {}).get("phase") in FINAL_PHASES


@dataclass(frozen=True, slots=True)
class ReconcilePass(ABC):
    """One reconcile pass over one object. A subclass says what to do for its kind."""

    resource: Resource
    objects: ObjectClient
    namespace: str
    settings: ReconcileSettings
    document: Document

    @abstractmethod
    def act(self) -> tuple[Document, str]:
        """Act once; return the status then, and what an event says of it."""

    def report(self) -> str:
        """Act if the object has not ended, write its status, and send an event for a new phase.

        Returns the phase if it has changed, else "".
        """
        old_status = self.document.get("status") or {}
        if has_ended(self.document):
            return ""
        new_status, message = self.act()
        phase = str(new_status["phase"])
        if not self._write(new_status) or phase == old_status.get("phase"):
            return ""
        self.settings.send_event(
            self.document,
            "Warning" if phase == BenchmarkPhase.FAILED else "Normal",
            phase,
            message or phase,
        )
        return phase

    def _write(self, new_status: Document) -> bool:
        """Write the status if it differs; False when the object is gone or has changed since.

        The next pass acts on what it has become.
        """
        meta = self.document["metadata"]
        old_status = self.document.get("status") or {}
        if all(old_status.get(key) == part for key, part in new_status.items()):
            return True
        body = {"metadata": {"resourceVersion": meta["resourceVersion"]}, "status": new_status}
        try:
            self.objects.patch(self.resource, self.namespace, meta["name"], body, "status")
        except (Missing, Conflict):
            return False
        return True


def run_pass(
    resource: Resource,
    objects: ObjectClient,
    namespace: str,
    name: str,
    make_pass: Callable[[Document], ReconcilePass],
) -> str:
    """Make a pass over an object, unless it is gone or is being deleted.

    Returns its phase if that has changed, else "".
    """
    document = objects.find(resource, namespace, name)
    if document is None or document["metadata"].get("deletionTimestamp"):
        return ""
    return make_pass(document).report()
