"""Sightings in, workloads with stamps out. Pure but for its own memory: the clock is in the
sightings.

A milestone gets the object's own time and the arrival of the event that first showed it; later ones
change nothing, nor do those of a second object of the kind. What a list shows gets no arrival: it
may have been so for long. What is gone without having ended is kept, marked as gone; nothing is
dropped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import astuple
from itertools import chain

from scaletest.cluster.watch import WatchEvent
from scaletest.lifecycle import kinds
from scaletest.lifecycle.measure import milestones
from scaletest.lifecycle.stamps import LifecycleObject, LifecyclePod, Stamp, Stamps, mark
from scaletest.model.times import epoch

# Reasons of events and whose milestone they are.
POD_EVENTS = {"Scheduled": "scheduled", "Started": "started"}
OWN_EVENTS = {
    "Evict": "evicted",
    "Preempted": "evicted",
    "ExternalProvisioning": "pvc_requested",
    "ProvisioningSucceeded": "pvc_bound",
}


class Tracker:
    """Knows the workloads. known: the names that count. bare: they are pods.

    foreign: sightings of what belongs to nobody known. events: sightings so far. touched: workloads
    that something became known of; whoever reads it empties it.
    """

    def __init__(
        self,
        known: Container[str],
        workloads: Mapping[str, LifecycleObject] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        self._known, self._bare = known, bare
        self.workloads: dict[str, LifecycleObject] = dict(workloads or {})
        self._owners: dict[str, str] = {}
        for name, workload in self.workloads.items():
            self._owners |= dict.fromkeys(workload.pods, name)
        self._uids: dict[str, str] = {}  # of workloads' own objects
        self._early: dict[
            str, dict[str, float]
        ] = {}  # Events of pods that were not seen yet, by uid
        self._wanted: dict[str, int] = {}  # claims for devices of a pod, by its uid
        self._allocated: dict[
            str, dict[str, Stamp]
        ] = {}  # those that have their devices, by uid of the pod and theirs
        self.foreign: Counter[str] = Counter()
        self.events = 0
        self.touched: set[str] = set(self.workloads)
        self._act: dict[str, Callable[[WatchEvent, str], None]] = {
            "workload": self._workload,
            "job": self._job,
            "pod": self._pod,
            "podgroup": self._podgroup,
            "pvc": self._pvc,
            "claim": self._claim,
        }

    def see(self, event: WatchEvent) -> None:
        """Take one sighting in."""
        self.events += 1
        if event.kind == "SYNCED":
            # a list is complete: what we know and it does not hold is gone, since when nobody knows
            uids = event.object["uids"]
            asked_s = event.at_s or 0.0
            if event.role == "pod":
                for pod in chain.from_iterable(
                    row.pods.values() for row in self.workloads.values()
                ):
                    pod.gone = pod.gone or pod.uid not in uids
                if self._bare:
                    self._lacking(uids, asked_s)
            elif event.role == "workload":
                self._lacking(uids, asked_s)
            return
        if event.role == "event":
            self._event(event)
            return
        name = milestones.workload_of(event.object, self._known)
        if not name:
            self.foreign[event.role] += 1
            return
        self._act[event.role](event, name)

    def submitted(
        self, name: str, namespace: str, submitted_s: float | None, accepted_s: float | None
    ) -> None:
        """A submission was accepted: from now on its workload is expected to be there."""
        workload = self._get(name)
        workload.namespace = workload.namespace or namespace
        for milestone, at_s in (("submitted", submitted_s), ("accepted", accepted_s)):
            if at_s is not None:
                workload.mark(milestone, Stamp(watch_s=at_s))

    def _get(self, name: str) -> LifecycleObject:
        self.touched.add(name)
        return self.workloads.setdefault(name, LifecycleObject(name))

    def _workload(self, event: WatchEvent, name: str) -> None:
        body, workload = event.object, self._get(name)
        workload.seen, workload.kind = True, str(body.get("kind") or workload.kind)
        workload.namespace = body["metadata"].get("namespace", workload.namespace)
        workload.expected = kinds.expected(body) if workload.expected is None else workload.expected
        self._uids[body["metadata"]["uid"]] = name
        _passed(workload.stamps, "created", milestones.created(body), _arrival(event))
        self._ended(workload, event)
        if event.kind == "DELETED":
            workload.gone = True
            workload.mark("deleted", Stamp(watch_s=event.at_s))

    def _ended(self, workload: LifecycleObject, event: WatchEvent) -> None:
        end = kinds.ended(event.object)
        if end is None:
            return
        _passed(workload.stamps, "finished", epoch(end.at), event.at_s)
        if end.failed:
            workload.failed = True
            workload.reason = workload.reason or end.reason

    def _job(self, event: WatchEvent, name: str) -> None:
        """The child between a workload and its pods: the first one counts."""
        workload = self._get(name)
        _passed(workload.stamps, "job_created", milestones.created(event.object), _arrival(event))
        if workload.kind.endswith("Workload"):
            self._ended(workload, event)

    def _pod(self, event: WatchEvent, name: str) -> None:
        body, workload = event.object, self._get(name)
        metadata = body["metadata"]
        uid = metadata["uid"]
        pod = self._pod_of(workload, uid, metadata["name"])
        pod.node = pod.node or (body.get("spec") or {}).get("nodeName", "")
        pod.failed = pod.failed or (body.get("status") or {}).get("phase") == "Failed"
        for milestone, time_s in milestones.of_pod(body).items():
            _passed(
                pod.stamps,
                milestone,
                time_s,
                _arrival(event) if milestone == "created" else event.at_s,
            )
        for milestone, event_s in self._early.pop(uid, {}).items():
            pod.mark(milestone, Stamp(event_s=event_s))
        if wanted := milestones.claims(body):
            self._wanted[uid] = wanted
            self._all_allocated(pod)
        if event.kind == "DELETED":
            pod.gone = True
            pod.mark("deleted", Stamp(watch_s=event.at_s))
        if metadata["name"] == name and not metadata.get("ownerReferences"):
            self._workload(event, name)  # a bare pod is its own workload

    def _pod_of(self, workload: LifecycleObject, uid: str, name: str) -> LifecyclePod:
        pod = workload.pods.get(uid)
        if pod is None:
            pod = workload.pods[uid] = LifecyclePod(uid, name)
            self._owners[uid] = workload.name
        return pod

    def _claim(self, event: WatchEvent, name: str) -> None:
        """A claim for devices that was made for a pod, which may not be seen yet. When it got them
        is known by its arrival, and by the API where that has a field for it.
        """
        metadata, status = event.object["metadata"], event.object.get("status") or {}
        owner = next(
            (each for each in metadata.get("ownerReferences") or () if each["kind"] == "Pod"), None
        )
        if owner is None:
            return
        pod = self._pod_of(self._get(name), owner["uid"], owner["name"])
        _passed(pod.stamps, "claim_created", milestones.created(event.object), _arrival(event))
        if (allocation := status.get("allocation")) is not None:
            at_s = None if event.kind == "DELETED" else event.at_s
            stamp = Stamp(epoch(allocation.get("allocationTimestamp")), at_s)
            self._allocated.setdefault(pod.uid, {}).setdefault(metadata["uid"], stamp)
            self._all_allocated(pod)

    def _all_allocated(self, pod: LifecyclePod) -> None:
        stamps = self._allocated.get(pod.uid, {}).values()
        if "claim_allocated" not in pod.stamps and 0 < self._wanted.get(pod.uid, 0) <= len(stamps):
            pod.mark(
                "claim_allocated",
                Stamp(*map(milestones.latest, zip(*map(astuple, stamps), strict=True))),
            )

    def _podgroup(self, event: WatchEvent, name: str) -> None:
        _passed(
            self._get(name).stamps,
            "pod_group_created",
            milestones.created(event.object),
            _arrival(event),
        )

    def _pvc(self, event: WatchEvent, name: str) -> None:
        """A claim says when it was made, and that it is bound but not when: that is known by its
        arrival alone.
        """
        workload = self._get(name)
        _passed(workload.stamps, "pvc_requested", milestones.created(event.object), _arrival(event))
        if (event.object.get("status") or {}).get("phase") == "Bound":
            _passed(workload.stamps, "pvc_bound", None, event.at_s)

    def _event(self, event: WatchEvent) -> None:
        body = event.object
        reason, at_s = body.get("reason"), milestones.micros(body)
        own, of_pod = OWN_EVENTS.get(str(reason)), POD_EVENTS.get(str(reason))
        if not own and not of_pod:
            return
        name = milestones.of_event(body, self._known, self._owners)
        if not name:
            self.foreign["event"] += 1
            return
        workload = self._get(name)
        stamp = Stamp(epoch(body.get("firstTimestamp")), _arrival(event), at_s)
        if own:
            workload.mark(own, stamp)
            return
        uid = str((body.get("involvedObject") or {}).get("uid", ""))
        if not of_pod or at_s is None:
            return
        if pod := workload.pods.get(uid):
            pod.mark(of_pod, Stamp(event_s=at_s))
        else:
            # the list of Events may come before that of the pods
            self._early.setdefault(uid, {}).setdefault(of_pod, at_s)

    def _lacking(self, uids: Container[str], asked_s: float) -> None:
        """Mark the workloads as gone whose objects a complete list does not hold."""
        present = {name for uid, name in self._uids.items() if uid in uids}
        for workload in self.workloads.values():
            accepted = workload.stamps.get("accepted")
            # a list that was asked for before the workload was accepted need not hold it
            is_expected = workload.seen or (
                accepted is not None and (accepted.watch_s or asked_s) < asked_s
            )
            if is_expected and workload.name not in present and not workload.gone:
                workload.gone = True
                self.touched.add(workload.name)


def _passed(stamps: Stamps, milestone: str, time_s: float | None, at_s: float | None) -> None:
    """Note a milestone. What is known already may still get the API's time, and no arrival: it was
    there before.
    """
    known = stamps.get(milestone)
    if known is None or known.api_s is None:
        mark(stamps, milestone, Stamp(time_s, at_s if known is None else None))


def _arrival(event: WatchEvent) -> float | None:
    """When an object first arrived: an event of any other kind than ADDED is not the object's
    beginning.
    """
    return event.at_s if event.kind == "ADDED" else None
