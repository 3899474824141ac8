"""Track workloads from the events of a watch. Uses the times in the events, never the clock.

A milestone gets the object's own time and the arrival of the event that first showed it; later ones
change nothing, nor do those of a second object of the kind. What a list shows gets no arrival: it
may have been so for long. What is gone without having ended is kept, marked as gone.
"""

from collections.abc import Container, Mapping
from dataclasses import astuple
from itertools import chain

from scaletest.cluster.watch import WatchEvent
from scaletest.lifecycle import kinds
from scaletest.lifecycle.measure import milestones
from scaletest.lifecycle.records import (
    LifecycleObject,
    LifecyclePod,
    Marked,
    Stamp,
    Submission,
)
from scaletest.model.times import parse_time

# Reason of an Event -> milestone of the pod.
POD_EVENTS = {"Scheduled": "scheduled", "Started": "started"}
# Reason of an Event -> milestone of the workload.
OWN_EVENTS = {
    "Evict": "evicted",
    "Preempted": "evicted",
    "ExternalProvisioning": "pvc_requested",
    "ProvisioningSucceeded": "pvc_bound",
}
# Role of an object -> the milestone of the workload that its creation is.
CREATED = {"job": "job_created", "podgroup": "pod_group_created", "pvc": "pvc_requested"}


class Tracker:
    """Knows the workloads of a run. bare: each is a pod, and that is its only one."""

    def __init__(
        self,
        tracked_names: Container[str],
        workloads: Mapping[str, LifecycleObject] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        self._tracked_names, self._bare = tracked_names, bare
        self.workloads: dict[str, LifecycleObject] = dict(workloads or {})
        # workloads that changed; the reader empties it
        self.changed_names: set[str] = set(self.workloads)
        self._uids: dict[str, str] = {}  # of the workloads' own objects, with their names
        self._pod_owners: dict[str, str] = {}  # names of workloads by the uids of their pods
        for name, workload in self.workloads.items():
            self._pod_owners |= dict.fromkeys(workload.pods, name)
        # by the uid of a pod: the milestones that Events told before the pod was seen
        self._early_milestones: dict[str, dict[str, float]] = {}
        # by the uid of a pod: how many claims for devices it has, and which have them
        self._claims_needed: dict[str, int] = {}
        self._claims_allocated: dict[str, dict[str, Stamp]] = {}

    def see(self, event: WatchEvent) -> None:
        """Take one event in; those of no tracked workload are left alone."""
        if event.kind == "SYNCED":
            self._mark_missing(event.role, event.object["uids"], event.at_s or 0.0)
            return
        if event.role == "event":
            self._see_event(event)
            return
        name = milestones.workload_of(event.object, self._tracked_names)
        if not name:
            return
        if event.role == "pod":
            self._see_pod(event, name)
        elif event.role == "claim":
            self._see_claim(event, name)
        elif event.role == "workload":
            self._see_workload(event, name)
        else:
            self._see_child(event, name)

    def _see_child(self, event: WatchEvent, name: str) -> None:
        """Take in what is between a workload and its pods, a pod group or a volume claim.

        The first of each counts.
        """
        workload = self._touch(name)
        _note_created(workload, CREATED[event.role], event)
        # a workload of Run:ai ends when its child does
        if event.role == "job" and workload.kind.endswith("Workload"):
            self._note_end(workload, event)
        # a volume claim says that it is bound but not when: that is known by its arrival alone
        phase = (event.object.get("status") or {}).get("phase")
        if event.role == "pvc" and phase == "Bound":
            _note_passed(workload, "pvc_bound", None, event.at_s)

    def note_submission(self, submission: Submission) -> None:
        """Note an accepted submission: from now on its workload is expected to be there."""
        workload = self._touch(submission.name)
        workload.namespace = workload.namespace or submission.namespace
        if submission.submitted_s is not None:
            workload.mark("submitted", Stamp(watch_s=submission.submitted_s))
        if submission.accepted_s is not None:
            workload.mark("accepted", Stamp(watch_s=submission.accepted_s))

    def _touch(self, name: str) -> LifecycleObject:
        """Return a workload that is about to change, a new one when it was not seen yet."""
        self.changed_names.add(name)
        return self.workloads.setdefault(name, LifecycleObject(name))

    def _see_workload(self, event: WatchEvent, name: str) -> None:
        body, workload = event.object, self._touch(name)
        workload.seen = True
        workload.kind = str(body.get("kind") or workload.kind)
        workload.namespace = body["metadata"].get("namespace", workload.namespace)
        if workload.expected is None:
            workload.expected = kinds.pods_needed(body)
        self._uids[body["metadata"]["uid"]] = name
        _note_created(workload, "created", event)
        self._note_end(workload, event)
        if event.kind == "DELETED":
            workload.gone = True
            workload.mark("deleted", Stamp(watch_s=event.at_s))

    def _note_end(self, workload: LifecycleObject, event: WatchEvent) -> None:
        end = kinds.find_end(event.object)
        if end is None:
            return
        _note_passed(workload, "finished", parse_time(end.at), event.at_s)
        if end.failed:
            workload.failed = True
            workload.reason = workload.reason or end.reason

    def _see_pod(self, event: WatchEvent, name: str) -> None:
        body, metadata = event.object, event.object["metadata"]
        uid, spec = metadata["uid"], body.get("spec") or {}
        pod = self._pod_of(self._touch(name), uid, metadata["name"])
        pod.node = pod.node or spec.get("nodeName", "")
        pod.failed = pod.failed or (body.get("status") or {}).get("phase") == "Failed"
        for milestone, time_s in milestones.pod_milestones(body).items():
            at_s = _arrival(event) if milestone == "created" else event.at_s
            _note_passed(pod, milestone, time_s, at_s)
        for milestone, event_s in self._early_milestones.pop(uid, {}).items():
            pod.mark(milestone, Stamp(event_s=event_s))
        # claims for devices that are made for this pod alone
        claims = spec.get("resourceClaims") or ()
        self._claims_needed[uid] = sum("resourceClaimTemplateName" in claim for claim in claims)
        self._note_allocation(pod)
        if event.kind == "DELETED":
            pod.gone = True
            pod.mark("deleted", Stamp(watch_s=event.at_s))
        if metadata["name"] == name and not metadata.get("ownerReferences"):
            self._see_workload(event, name)  # a bare pod is its own workload

    def _pod_of(self, workload: LifecycleObject, uid: str, name: str) -> LifecyclePod:
        """Return the pod of a workload, a new one when it was not seen yet."""
        self._pod_owners[uid] = workload.name
        return workload.pods.setdefault(uid, LifecyclePod(uid, name))

    def _see_claim(self, event: WatchEvent, name: str) -> None:
        """Take in a claim for devices that was made for a pod, which may not be seen yet."""
        metadata, status = event.object["metadata"], event.object.get("status") or {}
        owner = next(
            (row for row in metadata.get("ownerReferences") or () if row["kind"] == "Pod"), None
        )
        if owner is None:
            return
        pod = self._pod_of(self._touch(name), owner["uid"], owner["name"])
        _note_created(pod, "claim_created", event)
        allocation = status.get("allocation")
        if allocation is not None:
            # not every version of the API has a field for the time
            at_s = None if event.kind == "DELETED" else event.at_s
            stamp = Stamp(parse_time(allocation.get("allocationTimestamp")), at_s)
            self._claims_allocated.setdefault(pod.uid, {}).setdefault(metadata["uid"], stamp)
            self._note_allocation(pod)

    def _note_allocation(self, pod: LifecyclePod) -> None:
        """Note when the last claim of a pod got its devices, once all have them."""
        stamps = self._claims_allocated.get(pod.uid, {}).values()
        needed = self._claims_needed.get(pod.uid, 0)
        if "claim_allocated" not in pod.stamps and 0 < needed <= len(stamps):
            latest = map(milestones.latest_time, zip(*map(astuple, stamps), strict=True))
            pod.mark("claim_allocated", Stamp(*latest))

    def _see_event(self, event: WatchEvent) -> None:
        body = event.object
        own_milestone = OWN_EVENTS.get(str(body.get("reason")))
        pod_milestone = POD_EVENTS.get(str(body.get("reason")))
        if not own_milestone and not pod_milestone:
            return
        name = milestones.workload_of_event(body, self._tracked_names, self._pod_owners)
        if not name:
            return
        workload, event_s = self._touch(name), parse_time(body.get("eventTime"))
        if own_milestone:
            first_s = parse_time(body.get("firstTimestamp"))
            workload.mark(own_milestone, Stamp(first_s, _arrival(event), event_s))
        elif pod_milestone and event_s is not None:
            uid = str((body.get("involvedObject") or {}).get("uid", ""))
            pod = workload.pods.get(uid)
            if pod is not None:
                pod.mark(pod_milestone, Stamp(event_s=event_s))
            else:
                # the list of Events may come before that of the pods
                self._early_milestones.setdefault(uid, {}).setdefault(pod_milestone, event_s)

    def _mark_missing(self, role: str, uids: Container[str], asked_s: float) -> None:
        """Mark what a complete list does not hold as gone, since an unknown time."""
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


def _note_passed(marked: Marked, milestone: str, time_s: float | None, at_s: float | None) -> None:
    """Note that a milestone was passed. time_s: by the API; at_s: when that arrived."""
    noted = marked.stamps.get(milestone)
    if noted is None:
        marked.mark(milestone, Stamp(time_s, at_s))
    elif noted.api_s is None:
        # the API may tell the time later; it arrived before
        marked.mark(milestone, Stamp(time_s))


def _note_created(marked: Marked, milestone: str, event: WatchEvent) -> None:
    """Note when the object of an event was created."""
    _note_passed(marked, milestone, milestones.creation_time(event.object), _arrival(event))


def _arrival(event: WatchEvent) -> float | None:
    """Return when an object was made, by its arrival; an event of another kind comes later."""
    return event.at_s if event.kind == "ADDED" else None
