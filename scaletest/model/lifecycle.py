"""What is known of a workload's way from its submission to its end: stamps, pods, submissions. Pure data.

A stamp says when a milestone was passed, once for each source that saw it, and never a time that nobody saw:

    api    a field of the object: whole seconds of the API server's, scheduler's or kubelet's clock
    watch  the arrival of the first watch event that shows it: our clock, with fractions
    event  the eventTime of an Event: microseconds, best effort
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from scaletest.model import wire
from scaletest.model.errors import InvalidValue

# A pod's milestones in the order in which a pod passes them.
POD_MILESTONES = (
    "created", "claim_created", "claim_allocated", "scheduled", "ready_to_start", "initialized", "started",
    "containers_ready", "ready", "finished",
)  # fmt: skip
# What a pod may meet besides.
POD_INCIDENTS = ("decided", "evicted", "deleted")
# Milestones of the workload itself and of what belongs to it.
OWN_MILESTONES = (
    "submitted", "accepted", "created", "job_created", "pod_group_created", "pvc_requested", "pvc_bound",
    "evicted", "finished", "deleted", "backend_job_created",
)  # fmt: skip


class TimeSource(StrEnum):
    """Where both ends of a duration come from. MIXED: our clock at one end, the API server's at the other."""

    WATCH = "watch"
    API = "api"
    EVENT = "event"
    MIXED = "mixed"


class Stamp(NamedTuple):
    """One milestone, seconds since the epoch by each source; None where that source did not see it."""

    api_s: float | None = None
    watch_s: float | None = None
    event_s: float | None = None

    def merged(self, later: Stamp) -> Stamp:
        """What is known first counts; a source that was silent may still speak."""
        return Stamp(*(old if old is not None else new for old, new in zip(self, later, strict=True)))

    def to_dict(self) -> dict[str, float]:
        """Without the sources that are silent."""
        return {name: value for name, value in zip(self._fields, self, strict=True) if value is not None}

    @classmethod
    def from_dict(cls, data: Any) -> Stamp:
        """The way back; raises InvalidValue."""
        if not isinstance(data, dict):
            raise InvalidValue("a stamp is no JSON object")
        kept = wire.take(data, "a stamp", dict.fromkeys(cls._fields, (int, float)))
        return cls(**{name: float(value) for name, value in kept.items()})


Stamps = dict[str, Stamp]


@dataclass(slots=True)
class LifecyclePod:
    """A pod of a workload. uid, name: its own; node: where it runs. failed: it ended badly. gone: it exists no more."""

    uid: str
    name: str
    node: str = ""
    failed: bool = False
    gone: bool = False
    stamps: Stamps = field(default_factory=dict)

    def mark(self, milestone: str, stamp: Stamp) -> None:
        """Note a milestone."""
        mark(self.stamps, milestone, stamp)


@dataclass(slots=True)
class LifecycleObject:
    """One submitted, or observed, workload. name, namespace, kind: of its object.

    expected: pods that it needs at once; None when nobody says. failed: it ended badly.
    gone: it exists no more. reason: why it failed. seen: whether its object was ever seen.
    """

    name: str
    namespace: str = ""
    kind: str = ""
    expected: int | None = None
    seen: bool = False
    failed: bool = False
    gone: bool = False
    reason: str = ""
    stamps: Stamps = field(default_factory=dict)
    pods: dict[str, LifecyclePod] = field(default_factory=dict)

    def mark(self, milestone: str, stamp: Stamp) -> None:
        """Note a milestone."""
        mark(self.stamps, milestone, stamp)

    def lines(self) -> Iterator[str]:
        """One JSON line for the workload, and one for each of its pods."""
        row = {name: getattr(self, name) for name in _WORKLOAD} | {"stamps": _plain(self.stamps)}
        yield wire.dump({"schema_version": wire.SCHEMA_VERSION, "record": "workload", **row})
        for pod in self.pods.values():
            row = {name: getattr(pod, name) for name in _POD} | {"stamps": _plain(pod.stamps)}
            yield wire.dump({"record": "pod", "workload": self.name, **row})


_WORKLOAD: Mapping[str, type | tuple[type, ...]] = {
    "name": str, "namespace": str, "kind": str, "expected": (int, type(None)),
    "seen": bool, "failed": bool, "gone": bool, "reason": str,
}  # fmt: skip
_POD: Mapping[str, type | tuple[type, ...]] = {
    "uid": str, "name": str, "node": str, "failed": bool, "gone": bool,
}  # fmt: skip


def mark(stamps: Stamps, milestone: str, stamp: Stamp) -> None:
    """Note a milestone: the first time that a source names stays."""
    known = stamps.get(milestone)
    stamps[milestone] = stamp if known is None else known.merged(stamp)


def read_line(line: str, workloads: dict[str, LifecycleObject]) -> None:
    """Take one line of `Workload.lines` in; a workload's line comes before those of its pods. Raises InvalidValue."""
    data = wire.load(line, "a record of the lifecycle")
    given = wire.take(data, "a record of the lifecycle", {"stamps": dict}).get("stamps", {})
    stamps = {key: Stamp.from_dict(value) for key, value in given.items()}
    try:
        if data.get("record") == "workload":
            one = LifecycleObject(**wire.take(data, "a workload", _WORKLOAD), stamps=stamps)
            workloads[one.name] = one
            return
        pod = LifecyclePod(**wire.take(data, "a pod", _POD), stamps=stamps)
        workloads[data["workload"]].pods[pod.uid] = pod
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"a record of the lifecycle lacks something: {error}") from error


def _plain(stamps: Stamps) -> dict[str, dict[str, float]]:
    return {name: stamp.to_dict() for name, stamp in stamps.items()}


@dataclass(frozen=True, slots=True)
class Submission:
    """One try to submit a workload, whatever became of it. submitted_s, accepted_s: our clock, seconds since the epoch.

    name, namespace: of the workload; project: of Run:ai. accepted: whether it is there; reason: what speaks against it.
    submitted_s is None when an interrupted submit had sent it and nobody noted when. status: the HTTP status or exit
    code that refused it, 0 when accepted. tries: how often it was sent. throttled: how often that was too much.
    """

    name: str
    namespace: str
    project: str
    accepted: bool
    submitted_s: float | None = None
    accepted_s: float | None = None
    status: int = 0
    reason: str = ""
    tries: int = 1
    throttled: int = 0

    def to_json(self) -> str:
        """One line."""
        return wire.dump({"schema_version": wire.SCHEMA_VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, line: str) -> Submission:
        """The way back; raises InvalidValue."""
        number = (int, float, type(None))
        known: dict[str, type | tuple[type, ...]] = {
            "name": str, "namespace": str, "project": str, "accepted": bool, "submitted_s": number,
            "accepted_s": number, "status": int, "reason": str, "tries": int, "throttled": int,
        }  # fmt: skip
        try:
            return cls(**wire.take(wire.load(line, "a submission"), "a submission", known))
        except TypeError as error:
            raise InvalidValue(f"a submission lacks a field: {error}") from error
