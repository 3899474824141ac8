"""Track workloads from the events of a watch. Uses the times in the events, never the clock.

A milestone gets the object's own time and the arrival of the event that first showed it; later ones
change nothing, nor do those of a second object of the kind. What a list shows gets no arrival: it
may have been so for long. What is gone without having ended is kept, marked as gone; nothing is
dropped.
"""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import astuple
from itertools import chain

from scaletest.cluster.watch import WatchEvent
from scaletest.lifecycle import kinds
from scaletest.lifecycle.measure import milestones
from scaletest.lifecycle.records import LifecycleObject, LifecyclePod, Stamp, Stamps, mark
from scaletest.model.times import parse_time

# Reasons of events and whose milestone they are.
POD_EVENTS = {"Scheduled": "scheduled", "Started": "started"}
OWN_EVENTS = {
    "Evict": "evicted",
    "Preempted": "evicted",
    "ExternalProvisioning": "pvc_requested",
    "ProvisioningSucceeded": "pvc_bound",
}
# The milestone that the creation of an object in this role is.
CREATED = {"job": "job_created", "podgroup": "pod_group_created", "pvc": "pvc_requested"}


class Tracker:
    """Knows the workloads. known: the names that count. bare: they are pods.

    untracked_events: those of what belongs to nobody known. events: how many so far. changed_names:
    workloads that something became known of; whoever reads it empties it.
    """

    def __init__(
        self,
        known: Container[str],
        workloads: Mapping[str, LifecycleObject] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        self._tracked_names, self._bare = known, bare
        self.workloads: dict[str, LifecycleObject] = dict(workloads or {})
        self._owners: dict[str, str] = {}
        for name, workload in self.workloads.items():
            self._owners |= dict.fromkeys(workload.pods, name)
        self._uids: dict[str, str] = {}  # of workloads' own objects
        # Events of pods that were not seen yet, by uid
        self._early: dict[str, dict[str, float]] = {}
        # claims for devices of a pod, by its uid
        self._wanted: dict[str, int] = {}
        # those that have their devices, by uid of the pod and theirs
        self._allocated: dict[str, dict[str, Stamp]] = {}
        self.untracked_events: Counter[str] = Counter()
        self.events = 0
        self.changed_names: set[str] = set(self.workloads)

    def see(self, event: WatchEvent) -> None:
        """Take one sighting in."""
        self.events += 1
        if event.kind == "SYNCED":
            self._mark_missing(event.role, event.object["uids"], event.at_s or 0.0)
        elif event.role == "event":
            self._see_event(event)
        elif not (name := milestones.workload_of(event.object, self._tracked_names)):
            self.untracked_events[event.role] += 1
        elif event.role == "pod":
            self._see_pod(event, name)
        elif event.role == "claim":
            self._see_claim(event, name)
        elif event.role == "workload":
            self._see_workload(event, name)
        else:
            # a child between a workload and its pods, a pod group or a volume claim: the first of
            # each counts
            workload = self._get(name)
            _note_passed(
                workload.stamps,
                CREATED[event.role],
                milestones.creation_time(event.object),
                _arrival(event),
            )
            if event.role == "job" and workload.kind.endswith("Workload"):
                self._note_end(workload, event)
            # a volume claim says that it is bound but not when: that is known by its arrival alone
            phase = (event.object.get("status") or {}).get("phase")
            if event.role == "pvc" and phase == "Bound":
                _note_passed(workload.stamps, "pvc_bound", None, event.at_s)

    def submitted(
        self, name: str, namespace: str, submitted_s: float | None, accepted_s: float | None
    ) -> None:
        """Note that a submission was accepted: from now on its workload is expected to be there."""
        workload = self._get(name)
        workload.namespace = workload.namespace or namespace
        for milestone, at_s in (("submitted", submitted_s), ("accepted", accepted_s)):
            if at_s is not None:
                workload.mark(milestone, Stamp(watch_s=at_s))

    def _get(self, name: str) -> LifecycleObject:
        self.changed_names.add(name)
        return self.workloads.setdefault(name, LifecycleObject(name))

    def _see_workload(self, event: WatchEvent, name: str) -> None:
        body, workload = event.object, self._get(name)
        workload.seen, workload.kind = True, str(body.get("kind") or workload.kind)
        workload.namespace = body["metadata"].get("namespace", workload.namespace)
        workload.expected = (
            kinds.pods_needed(body) if workload.expected is None else workload.expected
        )
        self._uids[body["metadata"]["uid"]] = name
        _note_passed(workload.stamps, "created", milestones.creation_time(body), _arrival(event))
        self._note_end(workload, event)
        if event.kind == "DELETED":
            workload.gone = True
            workload.mark("deleted", Stamp(watch_s=event.at_s))

    def _note_end(self, workload: LifecycleObject, event: WatchEvent) -> None:
        end = kinds.find_end(event.object)
        if end is None:
            return
        _note_passed(workload.stamps, "finished", parse_time(end.at), event.at_s)
        if end.failed:
            workload.failed = True
            workload.reason = workload.reason or end.reason

    def _see_pod(self, event: WatchEvent, name: str) -> None:
        body, workload = event.object, self._get(name)
        metadata = body["metadata"]
        uid = metadata["uid"]
        pod = self._pod_of(workload, uid, metadata["name"])
        pod.node = pod.node or (body.get("spec") or {}).get("nodeName", "")
        pod.failed = pod.failed or (body.get("status") or {}).get("phase") == "Failed"
        for milestone, time_s in milestones.pod_milestones(body).items():
            _note_passed(
                pod.stamps,
                milestone,
                time_s,
                _arrival(event) if milestone == "created" else event.at_s,
            )
        for milestone, event_s in self._early.pop(uid, {}).items():
            pod.mark(milestone, Stamp(event_s=event_s))
        # claims for devices that are made for this pod alone
        claims = (body.get("spec") or {}).get("resourceClaims") or ()
        if wanted := sum("resourceClaimTemplateName" in claim for claim in claims):
            self._wanted[uid] = wanted
            self._note_allocation(pod)
        if event.kind == "DELETED":
            pod.gone = True
            pod.mark("deleted", Stamp(watch_s=event.at_s))
        if metadata["name"] == name and not metadata.get("ownerReferences"):
            self._see_workload(event, name)  # a bare pod is its own workload

    def _pod_of(self, workload: LifecycleObject, uid: str, name: str) -> LifecyclePod:
        pod = workload.pods.get(uid)
        if pod is None:
            pod = workload.pods[uid] = LifecyclePod(uid, name)
            self._owners[uid] = workload.name
        return pod

    def _see_claim(self, event: WatchEvent, name: str) -> None:
        """Take in a claim for devices that was made for a pod, which may not be seen yet. When it
        got them is known by its arrival, and by the API where that has a field for it.
        """
        metadata, status = event.object["metadata"], event.object.get("status") or {}
        owner = next(
            (row for row in metadata.get("ownerReferences") or () if row["kind"] == "Pod"), None
        )
        if owner is None:
            return
        pod = self._pod_of(self._get(name), owner["uid"], owner["name"])
        _note_passed(
            pod.stamps, "claim_created", milestones.creation_time(event.object), _arrival(event)
        )
        if (allocation := status.get("allocation")) is not None:
            at_s = None if event.kind == "DELETED" else event.at_s
            stamp = Stamp(parse_time(allocation.get("allocationTimestamp")), at_s)
            self._allocated.setdefault(pod.uid, {}).setdefault(metadata["uid"], stamp)
            self._note_allocation(pod)

    def _note_allocation(self, pod: LifecyclePod) -> None:
        stamps = self._allocated.get(pod.uid, {}).values()
        if "claim_allocated" not in pod.stamps and 0 < self._wanted.get(pod.uid, 0) <= len(stamps):
            pod.mark(
                "claim_allocated",
                Stamp(*map(milestones.latest_time, zip(*map(astuple, stamps), strict=True))),
            )

    def _see_event(self, event: WatchEvent) -> None:
        body = event.object
        reason, at_s = body.get("reason"), milestones.event_time(body)
        own, of_pod = OWN_EVENTS.get(str(reason)), POD_EVENTS.get(str(reason))
        if not own and not of_pod:
            return
        name = milestones.workload_of_event(body, self._tracked_names, self._owners)
        if not name:
            self.untracked_events["event"] += 1
            return
        workload = self._get(name)
        stamp = Stamp(parse_time(body.get("firstTimestamp")), _arrival(event), at_s)
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

    def _mark_missing(self, role: str, uids: Container[str], asked_s: float) -> None:
        """Mark what a complete list does not hold as gone, since when nobody knows."""
        if role == "pod":
            for pod in chain.from_iterable(row.pods.values() for row in self.workloads.values()):
                pod.gone = pod.gone or pod.uid not in uids
        # only the list of the workloads' own objects tells about them
        if role != ("pod" if self._bare else "workload"):
            return
        present = {name for uid, name in self._uids.items() if uid in uids}
        for workload in self.workloads.values():
            accepted = workload.stamps.get("accepted")
            # a list that was asked for before the workload was accepted need not hold it
            is_expected = workload.seen or (
                accepted is not None and (accepted.watch_s or asked_s) < asked_s
            )
            if is_expected and workload.name not in present and not workload.gone:
                workload.gone = True
                self.changed_names.add(workload.name)


def _note_passed(stamps: Stamps, milestone: str, time_s: float | None, at_s: float | None) -> None:
    """Note a milestone. What is known already may still get the API's time, and no arrival: it was
    there before.
    """
    known = stamps.get(milestone)
    if known is None or known.api_s is None:
        mark(stamps, milestone, Stamp(time_s, at_s if known is None else None))


def _arrival(event: WatchEvent) -> float | None:
    """Return when an object first arrived: an event of any other kind than ADDED is not the
    object's beginning.
    """
    return event.at_s if event.kind == "ADDED" else None
