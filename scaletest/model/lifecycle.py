"""An object's lifecycle from submission to end: stamps, pods, submissions. Pure data.

A stamp says when a milestone was passed, as each source saw it; times are never guessed:

    api    a field of the object: whole seconds of the API server's, scheduler's or kubelet's clock
    watch  the arrival of the first watch event that shows it: this machine's clock, with fractions
    event  the eventTime of an Event: microseconds, best effort
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from scaletest.model import wire
from scaletest.model.errors import InvalidValue

# The end of the year 9999, in seconds since the epoch: no date is later.
LATEST_S = 253402300799
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


class Stamp(NamedTuple):
    """One milestone in seconds since the epoch, by source; None where the source did not see it."""

    api_s: float | None = None
    watch_s: float | None = None
    event_s: float | None = None

    def merged(self, later: Stamp) -> Stamp:
        """Times of this stamp, and of the later one where this one lacks the source."""
        return Stamp(
            self.api_s if self.api_s is not None else later.api_s,
            self.watch_s if self.watch_s is not None else later.watch_s,
            self.event_s if self.event_s is not None else later.event_s,
        )

    def to_dict(self) -> dict[str, float]:
        """Times by source, without the sources that did not see it."""
        return {
            name: time_s
            for name, time_s in zip(self._fields, self, strict=True)
            if time_s is not None
        }

    @classmethod
    def from_dict(cls, data: Any) -> Stamp:
        """Read what `to_dict` wrote; raises InvalidValue."""
        if not isinstance(data, dict):
            raise InvalidValue("a stamp is not a JSON object")
        times = wire.take(data, "a stamp", dict.fromkeys(cls._fields, (int, float)))
        for name, time_s in times.items():
            if not 0 <= time_s <= LATEST_S:
                raise InvalidValue(f"{name} of a stamp is no time: {time_s!r:.40}")
        return cls(**{name: float(time_s) for name, time_s in times.items()})


Stamps = dict[str, Stamp]


@dataclass(slots=True)
class LifecyclePod:
    """A pod of an object. uid, name: its own; node: where it runs. failed: it ended badly.

    gone: it no longer exists.
    """

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
    """A Kubernetes object that was submitted or observed. name, namespace, kind: its own.

    expected: pods that it needs at once; None when that is unknown. failed: it ended badly.
    gone: it no longer exists. reason: why it failed. seen: whether the object was ever seen.
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
        """One JSON line for the object, and one for each of its pods."""
        fields = {name: getattr(self, name) for name in _WORKLOAD} | {"stamps": _plain(self.stamps)}
        yield wire.dump({"schema_version": wire.SCHEMA_VERSION, "record": "workload", **fields})
        for pod in self.pods.values():
            fields = {name: getattr(pod, name) for name in _POD} | {"stamps": _plain(pod.stamps)}
            yield wire.dump({"record": "pod", "workload": self.name, **fields})


_WORKLOAD: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "namespace": str,
    "kind": str,
    "expected": (int, type(None)),
    "seen": bool,
    "failed": bool,
    "gone": bool,
    "reason": str,
}
_POD: Mapping[str, type | tuple[type, ...]] = {
    "uid": str,
    "name": str,
    "node": str,
    "failed": bool,
    "gone": bool,
}


def mark(stamps: Stamps, milestone: str, stamp: Stamp) -> None:
    """Note a milestone; the first time that a source names is kept."""
    known = stamps.get(milestone)
    stamps[milestone] = stamp if known is None else known.merged(stamp)


def read_line(line: str, workloads: dict[str, LifecycleObject]) -> None:
    """Add what one line of `LifecycleObject.lines` says; raises InvalidValue.

    The line of an object comes before the lines of its pods.
    """
    data = wire.load(line, "a record of the lifecycle")
    stored = wire.take(data, "a record of the lifecycle", {"stamps": dict}).get("stamps", {})
    stamps = {key: Stamp.from_dict(stamp) for key, stamp in stored.items()}
    try:
        if data.get("record") == "workload":
            workload = LifecycleObject(**wire.take(data, "a workload", _WORKLOAD), stamps=stamps)
            workloads[workload.name] = workload
            return
        pod = LifecyclePod(**wire.take(data, "a pod", _POD), stamps=stamps)
        workloads[data["workload"]].pods[pod.uid] = pod
    except (KeyError, TypeError) as error:
        raise InvalidValue(f"a record of the lifecycle lacks something: {error}") from error


def _plain(stamps: Stamps) -> dict[str, dict[str, float]]:
    return {name: stamp.to_dict() for name, stamp in stamps.items()}


@dataclass(frozen=True, slots=True)
class Submission:
    """One submission of an object, whether it was accepted or not.

    submitted_s, accepted_s: by this machine's clock, seconds since the epoch; the first is null
    when an interrupted run had sent it and not noted when. name, namespace: of the object;
    project: of Run:ai. accepted: whether the cluster has it.
    reason: why it was refused. status: the HTTP status or exit code that refused it, 0 when
    accepted.
    tries: how often it was sent. throttled: how often the API server asked to send it later.
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
        """One line of JSON."""
        return wire.dump({"schema_version": wire.SCHEMA_VERSION, **asdict(self)})

    @classmethod
    def from_json(cls, line: str) -> Submission:
        """Read what `to_json` wrote; raises InvalidValue."""
        number = (int, float, type(None))
        known: dict[str, type | tuple[type, ...]] = {
            **dict.fromkeys(("name", "namespace", "project", "reason"), str),
            **dict.fromkeys(("submitted_s", "accepted_s"), number),
            **dict.fromkeys(("status", "tries", "throttled"), int),
            "accepted": bool,
        }
        try:
            return cls(**wire.take(wire.load(line, "a submission"), "a submission", known))
        except TypeError as error:
            raise InvalidValue(f"a submission lacks a field: {error}") from error
