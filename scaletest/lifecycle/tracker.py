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

from scaletest.cluster.watch import WatchEvent
from scaletest.lifecycle import joins, kinds, milestones
from scaletest.model.lifecycle import LifecycleObject, LifecyclePod, Stamp, Stamps, mark
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
    """What is known of the workloads. known: the names that count, None for all (observing). bare:
    they are pods.

    foreign: sightings of what belongs to nobody known. events: sightings so far. touched: workloads
    that something became known of; whoever reads it empties it.
    """

    def __init__(
        self,
        known: Container[str] | None = None,
        workloads: Mapping[str, LifecycleObject] | None = None,
        *,
        bare: bool = False,
    ) -> None:
        self._known, self._bare = known, bare
        self.workloads: dict[str, LifecycleObject] = dict(workloads or {})
        self._owners = {uid: name for name, one in self.workloads.items() for uid in one.pods}
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
        self.touched: set[str] = set()
        self._act: dict[str, Callable[[WatchEvent, str], None]] = {
            "workload": self._workload,
            "job": self._job,
            "pod": self._pod,
            "podgroup": self._podgroup,
            "pvc": self._pvc,
            "claim": self._claim,
        }

    def see(self, seen: WatchEvent) -> None:
        """Take one sighting in."""
        self.events += 1
        if seen.kind == "SYNCED":
            self._synced(seen)
            return
        if seen.role == "event":
            self._event(seen)
            return
        name = joins.workload_of(seen.object, self._known)
        if not name:
            self.foreign[seen.role] += 1
            return
        self._act[seen.role](seen, name)

    def submitted(
        self, name: str, namespace: str, submitted_s: float | None, accepted_s: float | None
    ) -> None:
        """A submission was accepted: from now on its workload is expected to be there."""
        one = self._get(name)
        one.namespace = one.namespace or namespace
        for milestone, at_s in (("submitted", submitted_s), ("accepted", accepted_s)):
            if at_s is not None:
                one.mark(milestone, Stamp(watch_s=at_s))

    def _get(self, name: str) -> LifecycleObject:
        self.touched.add(name)
        found = self.workloads.get(name)
        if found is None:
            found = self.workloads[name] = LifecycleObject(name)
        return found

    def _workload(self, seen: WatchEvent, name: str) -> None:
        body, one = seen.object, self._get(name)
        one.seen, one.kind = True, str(body.get("kind") or one.kind)
        one.namespace = body["metadata"].get("namespace", one.namespace)
        one.expected = kinds.expected(body) if one.expected is None else one.expected
        self._uids[body["metadata"]["uid"]] = name
        _passed(one.stamps, "created", milestones.created(body), _arrival(seen))
        self._ended(one, seen)
        if seen.kind == "DELETED":
            self._gone(one, seen)

    def _ended(self, one: LifecycleObject, seen: WatchEvent) -> None:
        found = kinds.ended(seen.object)
        if found is None:
            return
        word, when = found
        _passed(one.stamps, "finished", epoch(when), seen.at_s)
        if word == "failed":
            one.failed, one.reason = True, one.reason or kinds.why_failed(seen.object)

    def _gone(self, one: LifecycleObject, seen: WatchEvent) -> None:
        one.gone = True
        one.mark("deleted", Stamp(watch_s=seen.at_s))

    def _job(self, seen: WatchEvent, name: str) -> None:
        """The child between a workload and its pods: the first one counts."""
        one = self._get(name)
        _passed(one.stamps, "job_created", milestones.created(seen.object), _arrival(seen))
        if one.kind.endswith("Workload"):
            self._ended(one, seen)

    def _pod(self, seen: WatchEvent, name: str) -> None:
        body, one = seen.object, self._get(name)
        metadata = body["metadata"]
        uid = metadata["uid"]
        pod = self._pod_of(one, uid, metadata["name"])
        pod.node = pod.node or (body.get("spec") or {}).get("nodeName", "")
        pod.failed = pod.failed or (body.get("status") or {}).get("phase") == "Failed"
        for milestone, time_s in milestones.of_pod(body).items():
            _passed(
                pod.stamps,
                milestone,
                time_s,
                _arrival(seen) if milestone == "created" else seen.at_s,
            )
        for milestone, event_s in self._early.pop(uid, {}).items():
            pod.mark(milestone, Stamp(event_s=event_s))
        if wanted := milestones.claims(body):
            self._wanted[uid] = wanted
            self._all_allocated(pod)
        if seen.kind == "DELETED":
            pod.gone = True
            pod.mark("deleted", Stamp(watch_s=seen.at_s))
        if metadata["name"] == name and not metadata.get("ownerReferences"):
            self._workload(seen, name)  # a bare pod is its own workload

    def _pod_of(self, one: LifecycleObject, uid: str, name: str) -> LifecyclePod:
        pod = one.pods.get(uid)
        if pod is None:
            pod = one.pods[uid] = LifecyclePod(uid, name)
            self._owners[uid] = one.name
        return pod

    def _claim(self, seen: WatchEvent, name: str) -> None:
        """A claim for devices that was made for a pod, which may not be seen yet. When it got them
        is known by its arrival, and by the API where that has a field for it.
        """
        metadata, status = seen.object["metadata"], seen.object.get("status") or {}
        owner = next(
            (one for one in metadata.get("ownerReferences") or () if one["kind"] == "Pod"), None
        )
        if owner is None:
            return
        pod = self._pod_of(self._get(name), owner["uid"], owner["name"])
        _passed(pod.stamps, "claim_created", milestones.created(seen.object), _arrival(seen))
        if (found := status.get("allocation")) is not None:
            at_s = None if seen.kind == "DELETED" else seen.at_s
            stamp = Stamp(epoch(found.get("allocationTimestamp")), at_s)
            self._allocated.setdefault(pod.uid, {}).setdefault(metadata["uid"], stamp)
            self._all_allocated(pod)

    def _all_allocated(self, pod: LifecyclePod) -> None:
        stamps = self._allocated.get(pod.uid, {}).values()
        if "claim_allocated" not in pod.stamps and 0 < self._wanted.get(pod.uid, 0) <= len(stamps):
            last = (
                max(times) if None not in times else None for times in zip(*stamps, strict=True)
            )
            pod.mark("claim_allocated", Stamp(*last))

    def _podgroup(self, seen: WatchEvent, name: str) -> None:
        _passed(
            self._get(name).stamps,
            "pod_group_created",
            milestones.created(seen.object),
            _arrival(seen),
        )

    def _pvc(self, seen: WatchEvent, name: str) -> None:
        """A claim says when it was made, and that it is bound but not when: that is known by its
        arrival alone.
        """
        one = self._get(name)
        _passed(one.stamps, "pvc_requested", milestones.created(seen.object), _arrival(seen))
        if (seen.object.get("status") or {}).get("phase") == "Bound":
            _passed(one.stamps, "pvc_bound", None, seen.at_s)

    def _event(self, seen: WatchEvent) -> None:
        body = seen.object
        reason, at_s = body.get("reason"), milestones.micros(body)
        own, of_pod = OWN_EVENTS.get(str(reason)), POD_EVENTS.get(str(reason))
        if not own and not of_pod:
            return
        name = joins.of_event(body, self._known, self._owners)
        if not name:
            self.foreign["event"] += 1
            return
        one = self._get(name)
        stamp = Stamp(epoch(body.get("firstTimestamp")), _arrival(seen), at_s)
        if own:
            one.mark(own, stamp)
            return
        uid = str((body.get("involvedObject") or {}).get("uid", ""))
        if not of_pod or at_s is None:
            return
        if pod := one.pods.get(uid):
            pod.mark(of_pod, Stamp(event_s=at_s))
        else:
            # the list of Events may come before that of the pods
            self._early.setdefault(uid, {}).setdefault(of_pod, at_s)

    def _synced(self, seen: WatchEvent) -> None:
        """A list is complete: what we know and it does not hold is gone, since when nobody
        knows.
        """
        uids = seen.object["uids"]
        asked_s = seen.at_s or 0.0
        if seen.role == "pod":
            for one in self.workloads.values():
                for pod in one.pods.values():
                    pod.gone = pod.gone or pod.uid not in uids
        if seen.role == "workload" or (seen.role == "pod" and self._bare):
            there = {self._uids[uid] for uid in uids if uid in self._uids}
            for one in self.workloads.values():
                accepted = one.stamps.get("accepted")
                expected = one.seen or (
                    accepted is not None and (accepted.watch_s or asked_s) < asked_s
                )
                if expected and not one.gone and one.name not in there:
                    one.gone = True
                    self.touched.add(one.name)


def _passed(stamps: Stamps, milestone: str, time_s: float | None, at_s: float | None) -> None:
    """Note a milestone. What is known already may still get the API's time, and no arrival: it was
    there before.
    """
    known = stamps.get(milestone)
    if known is None or known.api_s is None:
        mark(stamps, milestone, Stamp(time_s, at_s if known is None else None))


def _arrival(seen: WatchEvent) -> float | None:
    """When an object first arrived: an event of any other kind than ADDED is not the object's
    beginning.
    """
    return seen.at_s if seen.kind == "ADDED" else None
