"""An object's lifecycle from submission to end: stamps, pods, submissions. Pure data.

A stamp says when a milestone was passed, as each source saw it; times are never guessed:

    api    a field of the object: whole seconds of the API server's, scheduler's or kubelet's clock
    watch  the arrival of the first watch event that shows it: this machine's clock, with fractions
    event  the eventTime of an Event: microseconds, best effort
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, ClassVar

from msgspec import Meta

from scaletest.model import checks, wire
from scaletest.model.declared import INNER, VERSIONED, Count, Seconds, choice
from scaletest.model.document import Document, check, read
from scaletest.model.errors import InvalidValue
from scaletest.model.writing import plain

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
# Further events of a pod, which not every pod meets.
POD_INCIDENTS = ("decided", "evicted", "deleted")
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


class TimeSource(StrEnum):
    """Where both ends of a duration come from.

    MIXED: one end is this machine's clock, the other end the API server's.
    """

    WATCH = "watch"
    API = "api"
    EVENT = "event"
    MIXED = "mixed"


@dataclass(frozen=True, slots=True)
class Stamp(Document):
    """One milestone in seconds since the epoch, by source; None where the source did not see it."""

    document_name = "a stamp"
    always: ClassVar = frozenset()

    api_s: Annotated[_EpochSeconds | None, "by the API, whole seconds"] = None
    watch_s: Annotated[_EpochSeconds | None, "this machine's clock when it was seen"] = None
    event_s: Annotated[_EpochSeconds | None, "by an Event"] = None

    def merged(self, later: Stamp) -> Stamp:
        """Times of this stamp, and of the later one where this one lacks the source."""
        return replace(later, **self.to_dict())


Stamps = dict[str, Stamp]
_PASSED = "when each milestone was passed, seconds since the epoch; never a guess"


@dataclass(slots=True)
class LifecyclePod:
    """A pod of an object."""

    uid: Annotated[str, "its own"]
    name: Annotated[str, "its own"]
    node: Annotated[str, "where it runs."] = ""
    failed: Annotated[bool, "it ended badly."] = False
    gone: Annotated[bool, "it no longer exists."] = False
    stamps: Annotated[
        dict[Annotated[str, choice((*POD_MILESTONES, *POD_INCIDENTS))], Stamp], _PASSED
    ] = field(default_factory=dict)

    def mark(self, milestone: str, stamp: Stamp) -> None:
        """Note a milestone."""
        mark(self.stamps, milestone, stamp)


@dataclass(slots=True)
class LifecycleObject:
    """A Kubernetes object that was submitted."""

    name: Annotated[str, "its own."]
    namespace: Annotated[str, "its own."] = ""
    kind: Annotated[str, "its own."] = ""
    expected: Annotated[int | None, "pods that it needs at once; None when that is unknown."] = None
    seen: Annotated[bool, "whether the object was ever seen."] = False
    failed: Annotated[bool, "it ended badly."] = False
    gone: Annotated[bool, "it no longer exists."] = False
    reason: Annotated[str, "why it failed."] = ""
    stamps: Annotated[dict[Annotated[str, choice(OWN_MILESTONES)], Stamp], _PASSED] = field(
        default_factory=dict
    )
    pods: Annotated[dict[str, LifecyclePod], INNER] = field(default_factory=dict)

    def mark(self, milestone: str, stamp: Stamp) -> None:
        """Note a milestone."""
        mark(self.stamps, milestone, stamp)

    def lines(self) -> Iterator[str]:
        """One JSON line for the object, and one for each of its pods."""
        yield wire.dump({**VERSIONED, "record": "workload", **plain(self)})
        for pod in self.pods.values():
            yield wire.dump({"record": "pod", "workload": self.name, **plain(pod)})


def mark(stamps: Stamps, milestone: str, stamp: Stamp) -> None:
    """Note a milestone; the first time that a source names is kept."""
    known = stamps.get(milestone)
    stamps[milestone] = stamp if known is None else known.merged(stamp)


def read_line(line: str, workloads: dict[str, LifecycleObject]) -> None:
    """Add what one line of `LifecycleObject.lines` says; raises InvalidValue.

    The line of an object comes before the lines of its pods.
    """
    data = wire.load(line, "a record of the lifecycle")
    if data.get("record") == "workload":
        workload = read(LifecycleObject, data, "a workload")
        workloads[workload.name] = workload
        return
    try:
        pods = workloads[str(data["workload"])].pods
    except KeyError as error:
        raise InvalidValue(f"a record of the lifecycle lacks something: {error}") from error
    pod = read(LifecyclePod, data, "a pod")
    pods[pod.uid] = pod


@dataclass(frozen=True, slots=True)
class Submission(Document):
    """One submission of an object, whether it was accepted or not."""

    document_name = "a submission"
    constants = VERSIONED

    name: Annotated[str, "of the object"]
    namespace: Annotated[str, "of the object"]
    project: Annotated[str, "of Run:ai."]
    accepted: Annotated[bool, "whether the cluster has it."]
    submitted_s: Annotated[
        float | None,
        "by this machine's clock, seconds since the epoch; the first is null when an "
        "interrupted run had sent it and not noted when.",
    ] = None
    accepted_s: Annotated[
        float | None,
        "by this machine's clock, seconds since the epoch; the first is null when an "
        "interrupted run had sent it and not noted when.",
    ] = None
    status: Annotated[int, "the HTTP status or exit code that refused it, 0 when accepted."] = 0
    reason: Annotated[str, "why it was refused."] = ""
    tries: Annotated[int, "how often it was sent."] = 1
    throttled: Annotated[int, "how often the API server asked to send it later."] = 0


KIND = "lifecycle"
TOOLS = ("api", "kubectl", "runai")
UNTIL = ("created", "scheduled", "ready_to_start", "started", "ready", "finished")
MOST_WORKLOADS = 1_000_000
RUN_LABEL = "scaletest/run"
_NAMES = 1 << 24
# A duration as `sleep` takes it.
_SLEEP = re.compile(r"infinity|[0-9]{1,9}(\.[0-9]{1,9})?[smhd]?")
# Odd, so that multiplying by it visits every number below 2**24 once before it repeats.
_STEP = 0x9E3779 | 1


@dataclass(frozen=True, slots=True)
class LifecyclePlan(Document):
    """Which objects to submit."""

    document_name = "the plan"
    constants: ClassVar = {**VERSIONED, "kind": KIND}
    # it has none
    steps: ClassVar[tuple[int, ...]] = ()

    run: Annotated[str, "six hex digits, from which names follow"]
    workload_type: Annotated[str, "the name of a template"]
    namespace: Annotated[str, "where the objects are"]
    count: Annotated[
        int, Meta(ge=1, le=MOST_WORKLOADS, title="the number of workloads"), "number of objects."
    ]
    project: Annotated[str, "of Run:ai"] = ""
    processes: Annotated[
        int,
        Meta(ge=1, le=1000, title="the number of processes"),
        "submissions in flight, and the size of a burst.",
    ] = 8
    delay_s: Annotated[Seconds, Meta(title="delay"), "a pause after each burst."] = 0.0
    workers: Annotated[
        int, Meta(ge=1, le=100000, title="the number of workers"), "pods of a distributed object"
    ] = 1
    gpus: Annotated[str, "devices of a pod"] = "1"
    resource: Annotated[str, "the devices' name as a Kubernetes resource"] = "nvidia.com/gpu"
    image: Annotated[str, "of the pods"] = "busybox"
    seconds: Annotated[str, "how long pods run, as `sleep` takes it"] = "60"
    pvc: Annotated[bool, "whether each object has a claim for a volume."] = False
    until: Annotated[str, choice(UNTIL, "milestone"), "the milestone that ends an object"] = (
        "finished"
    )
    tool: Annotated[str, choice(TOOLS, "tool"), "what submits"] = "api"
    context: Annotated[str, "of the kubeconfig; the current one without it."] = ""
    event_times: Annotated[bool, "whether Events are watched too."] = False
    template: Annotated[str, "its text"] = ""
    template_file: Annotated[str, "where it was read"] = ""
    api_version: Annotated[str, "of the object."] = ""
    object_kind: Annotated[str, "of the object."] = ""
    thresholds: Annotated[
        tuple[str, ...], "further conditions of a PASS, as in ready.p99<30s."
    ] = ()
    tolerate_failures: Annotated[
        Count, Meta(title="tolerated failures"), "how many workloads may fail or be rejected."
    ] = 0

    def __post_init__(self) -> None:
        check(self)
        if not _SLEEP.fullmatch(self.seconds):
            raise InvalidValue(
                f"pods cannot run for {checks.cut(self.seconds, 40)} seconds",
                hint="give a number, as in 2.5, or infinity",
            )

    @property
    def label(self) -> str:
        """The label selector of everything that belongs to the run."""
        return f"{RUN_LABEL}={self.run}"

    @property
    def workload(self) -> str:
        """Description of the run, in one line."""
        return (
            f"lifecycle of {self.count} {self.object_kind or self.workload_type}s in namespace"
            f" {self.namespace}"
        )

    def names(self) -> Iterator[str]:
        """Names of all objects in the order of submission: j- and six hex digits, all different.

        They follow from the run's id, so that an interrupted run knows what it may have sent.
        """
        start = int(self.run, 16)
        for index in range(self.count):
            yield f"j-{(start + index * _STEP) % _NAMES:06x}"

    def values(self) -> dict[str, str]:
        """Values of the template's placeholders."""
        return {
            "image": self.image,
            "seconds": self.seconds,
            "resource": self.resource,
            "gpus": self.gpus,
            "workers": str(self.workers),
            "project": self.project,
            "namespace": self.namespace,
            "run": self.run,
        }
