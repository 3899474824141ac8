"""The records of a run: its submissions, and its objects with their pods and milestones."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model import wire
from scaletest.model.declared import INNER, VERSIONED, choice
from scaletest.model.document import Document, read_document
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import to_plain

# The end of the year 9999, in seconds since the epoch: no date is later.
_EpochSeconds = Annotated[float, Meta(ge=0, le=253402300799, extra={"unit": "s"})]
# A pod's milestones in the order in which a pod passes them.
POD_MILESTONES = (
    "created",
    "claim_created",
    "claim_allocated",
    "scheduled",
    "ready_to_start",
    "initialized",
    "started",
    "containers_ready",
    "ready",
    "finished",
)
# Milestones of the submitted object itself and of the objects that belong to it.
OWN_MILESTONES = (
    "submitted",
    "accepted",
    "created",
    "job_created",
    "pod_group_created",
    "pvc_requested",
    "pvc_bound",
    "evicted",
    "finished",
    "deleted",
    "backend_job_created",
)
# Descriptions of fields in the schemas.
_STAMPS = "when each milestone was passed, seconds since the epoch; never a guess"
_CLOCK = (
    "by this machine's clock, seconds since the epoch; the first is null when an interrupted run"
    " had sent it and not noted when."
)


class TimeSource(StrEnum):
    """The source of both ends of a duration."""

    WATCH = "watch"  # the arrival of the first event that shows it: this machine's clock
    API = "api"  # a field: whole seconds of the API server's, scheduler's or kubelet's clock
    EVENT = "event"  # the eventTime of an Event: microseconds, best effort
    MIXED = "mixed"  # one end is this machine's clock, the other end the API server's


@dataclass(frozen=True, slots=True)
class Stamp(Document):
    """When a milestone was passed, by source; never guessed, None where a source did not see it."""

    document_name = "a stamp"
    always: ClassVar = frozenset()

    api_s: Annotated[_EpochSeconds | None, "by the API, whole seconds"] = None
    watch_s: Annotated[_EpochSeconds | None, "this machine's clock when it was seen"] = None
    event_s: Annotated[_EpochSeconds | None, "by an Event"] = None


Stamps = dict[str, Stamp]


class Marked:
    """What passes milestones."""

    __slots__ = ()
    stamps: Stamps

    def mark(self, milestone: str, stamp: Stamp) -> None:
        """Note a milestone; of each source the first time is kept."""
        earlier = self.stamps.get(milestone, Stamp())
        # its dictionary holds the times that it has
        self.stamps[milestone] = replace(stamp, **earlier.to_dict())


@dataclass(slots=True)
class LifecyclePod(Marked):
    """A pod of an object."""

    uid: Annotated[str, "of the pod"]
    name: Annotated[str, "of the pod"]
    node: Annotated[str, "where it runs."] = ""
    failed: Annotated[bool, "it ended badly."] = False
    gone: Annotated[bool, "it no longer exists."] = False
    # not every pod passes the last three
    stamps: Annotated[
        dict[Annotated[str, choice((*POD_MILESTONES, "decided", "evicted", "deleted"))], Stamp],
        _STAMPS,
    ] = field(default_factory=dict)


@dataclass(slots=True)
class LifecycleObject(Marked):
    """A Kubernetes object that was submitted."""

    name: Annotated[str, "of the object."]
    namespace: Annotated[str, "of the object."] = ""
    kind: Annotated[str, "of the object."] = ""
    expected: Annotated[int | None, "pods that it needs at once; None when that is unknown."] = None
    seen: Annotated[bool, "whether the object was ever seen."] = False
    failed: Annotated[bool, "it ended badly."] = False
    gone: Annotated[bool, "it no longer exists."] = False
    reason: Annotated[str, "why it failed."] = ""
    stamps: Annotated[dict[Annotated[str, choice(OWN_MILESTONES)], Stamp], _STAMPS] = field(
        default_factory=dict
    )
    pods: Annotated[dict[str, LifecyclePod], INNER] = field(default_factory=dict)

    def lines(self) -> Iterator[str]:
        """Yield one JSON line for the object, and one for each of its pods."""
        yield wire.dump({**VERSIONED, "record": "workload", **to_plain(self)})
        for pod in self.pods.values():
            yield wire.dump({"record": "pod", "workload": self.name, **to_plain(pod)})


def read_line(line: str, workloads: dict[str, LifecycleObject]) -> None:
    """Add what one line of `LifecycleObject.lines` says. Raises InvalidValue.

    The line of an object comes before the lines of its pods.
    """
    data = wire.load(line, "a record of the lifecycle")
    if data.get("record") == "workload":
        workload = read_document(LifecycleObject, data, "a workload")
        workloads[workload.name] = workload
        return
    pod = read_document(LifecyclePod, data, "a pod")
    name = str(data.get("workload"))
    if name not in workloads:
        raise InvalidValue(f"pod {pod.uid} is of no workload on record")
    workloads[name].pods[pod.uid] = pod


@dataclass(frozen=True, slots=True)
class Submission(Document):
    """One submission of an object, whether it was accepted or not."""

    document_name = "a submission"
    constants = VERSIONED

    name: Annotated[str, "of the object"]
    namespace: Annotated[str, "of the object"]
    project: Annotated[str, "of Run:ai."]
    accepted: Annotated[bool, "whether the cluster has it."]
    submitted_s: Annotated[float | None, _CLOCK] = None
    accepted_s: Annotated[float | None, _CLOCK] = None
    status: Annotated[int, "the HTTP status or exit code that refused it, 0 when accepted."] = 0
    reason: Annotated[str, "why it was refused."] = ""
    tries: Annotated[int, "how often it was sent."] = 1
