"""Follows the workloads of a run: lists, watches, and writes down what was seen, as often as is
worth it.

A single pass only lists. Either way what earlier samples saw is kept: an object that is gone by now
does not vanish from the result. Submissions are read from the file in which the submitter notes
them, so it may be another process.
"""

from __future__ import annotations

import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from scaletest.analysis.lifecycle.books import Fate, LifecycleProgress, fate, runs
from scaletest.analysis.lifecycle.phases import timeline
from scaletest.cluster.connection import Missing
from scaletest.cluster.objects import Objects
from scaletest.cluster.raw import Raw
from scaletest.cluster.watch import Collection, Feeds
from scaletest.lifecycle import kinds
from scaletest.lifecycle.folder import SUBMISSIONS, LifecycleFolder
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.tracker import Tracker
from scaletest.model.lifecycle import Stamp, Submission

PODGROUPS = (
    ("scheduling.run.ai/v1", "PodGroup"),
    ("scheduling.run.ai/v2alpha2", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
)
LOOK_S = 0.2
KEEP_EVERY_S = 10.0
# Writing may take this part of the time at most.
KEEP_SHARE = 0.05
# After the last workload was done, so long for what belongs to it and is still on its way.
SETTLE_S = 2.0


def collections(plan: LifecyclePlan, objects: Objects) -> list[Collection]:
    """What to watch. Raises Missing when the cluster lacks the kind of workload."""
    kind = kinds.KINDS.get(plan.kind)
    labelled = bool(plan.selector) or kind is None or kind.labelled
    # the Run:ai command line takes no labels of ours
    label = plan.label if labelled and plan.tool != "runai" else ""
    found = [Collection("pod", objects.resource("v1", "Pod").path(plan.namespace), label)]
    if plan.object_kind and plan.object_kind != "Pod":
        path = objects.resource(plan.api_version, plan.object_kind).path(plan.namespace)
        found.append(Collection("workload", path, plan.label if plan.tool != "runai" else ""))
    optional = [("job", kind.child)] if kind and kind.child else []
    optional += [("podgroup", one) for one in PODGROUPS]
    for role, (api_version, name) in optional:
        try:
            found.append(Collection(role, objects.resource(api_version, name).path(plan.namespace)))
        except Missing:
            continue
    if plan.pvc:
        found.append(
            Collection(
                "pvc", objects.resource("v1", "PersistentVolumeClaim").path(plan.namespace), label
            )
        )
    if plan.claim_template or "resourceClaimTemplateName" in plan.template:
        found += _claims(plan, objects)
    if plan.event_times:
        found.append(Collection("event", objects.resource("v1", "Event").path(plan.namespace)))
    return found


def _claims(plan: LifecyclePlan, objects: Objects) -> list[Collection]:
    """Claims for devices of the namespace; they have their template's labels, not ours."""
    for version in ("v1", "v1beta2", "v1beta1"):
        try:
            path = objects.resource(f"resource.k8s.io/{version}", "ResourceClaim").path(
                plan.namespace
            )
        except Missing:
            continue
        return [Collection("claim", path)]
    return []


class Sampler:
    """Follows one run. clock: seconds since the epoch, steady.

    watching: set when what happens is seen when it happens.
    """

    def __init__(
        self,
        plan: LifecyclePlan,
        store: LifecycleFolder,
        raw: Raw,
        clock: Callable[[], float],
        stop: threading.Event | None = None,
        backend: dict[str, float] | None = None,
    ) -> None:
        self._plan, self._store, self._raw, self._clock = plan, store, raw, clock
        self._stop = stop or threading.Event()
        self._backend = backend or {}
        self._known = None if plan.selector else set(plan.names())
        self.tracker = Tracker(self._known, store.workloads(), bare=plan.object_kind == "Pod")
        self._submissions = _NewSubmissions(store)
        self._accepted: set[str] = set()
        self._rejected: set[str] = set()
        self._fates: dict[str, Fate] = {}
        self._running: set[str] = set()
        self._touched: set[str] = set(self.tracker.workloads)
        self._before = store.sampling()
        self._course: list[tuple[float, int]] = []
        self._began_s = clock()
        self.watching = threading.Event()

    def follow(
        self,
        timeout_s: float,
        told: Callable[[LifecycleProgress], None] = lambda one: None,
        *,
        once: bool = False,
        submitting: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Until every workload is done (once: until the lists are complete); whether that was so
        within the time.

        submitting: whether somebody may still submit; when nobody does, the run ends with what
        there is.
        """
        wanted = collections(self._plan, Objects(self._raw))
        feeds = Feeds(self._raw, wanted, self._clock)
        synced: set[str] = set()
        until, done_since, kept = time.monotonic() + timeout_s, 0.0, time.monotonic()
        every = KEEP_EVERY_S
        try:
            while not self._stop.is_set() and time.monotonic() < until:
                for seen in feeds.events(LOOK_S):
                    self.tracker.see(seen)
                    if seen.kind == "SYNCED":
                        synced.add(seen.role)
                    if time.monotonic() - kept > every:
                        break
                told(self._look())
                if len(synced) == len({one.role for one in wanted}):
                    if once:
                        return True
                    if feeds.watching:
                        self.watching.set()
                    done = self._all_done(submitting())
                    done_since = (done_since or time.monotonic()) if done else 0.0
                    if done and time.monotonic() - done_since > SETTLE_S:
                        return True
                if time.monotonic() - kept > every:
                    began = time.monotonic()
                    self.keep(feeds)
                    kept = time.monotonic()
                    every = max(KEEP_EVERY_S, (kept - began) / KEEP_SHARE)
            return False
        finally:
            feeds.close()
            self._look()
            self.keep(feeds)

    def _look(self) -> LifecycleProgress:
        """Take new submissions in, and judge again what changed."""
        for row in self._submissions.rows():
            (self._accepted if row.accepted else self._rejected).add(row.name)
            (self._rejected if row.accepted else self._accepted).discard(row.name)
            if row.accepted:
                self.tracker.submitted(row.name, row.namespace, row.submitted_s, row.accepted_s)
                self._touched.add(row.name)
        for name in self._touched | self.tracker.touched:
            one = self.tracker.workloads.get(name)
            if one is not None and self._fates.get(name) in (None, Fate.PENDING, Fate.LOST):
                if name in self._backend:
                    one.mark("backend_job_created", Stamp(api_s=self._backend[name]))
                far = timeline(one)
                found = self._fates[name] = fate(far, self._plan.until)
                pending = found is Fate.PENDING and name in self._counted
                (
                    self._running.add
                    if pending and runs(far, self._plan.until)
                    else self._running.discard
                )(name)
        self._touched.clear()
        self.tracker.touched.clear()
        fates = Counter(self._fates.get(name, Fate.PENDING) for name in self._counted)
        pods = sum(len(one.pods) for one in self.tracker.workloads.values())
        return LifecycleProgress(
            self._plan.count,
            len(self._counted),
            len(self._rejected),
            dict(fates),
            pods,
            len(self._running),
        )

    @property
    def _counted(self) -> set[str]:
        return set(self.tracker.workloads) if self._plan.selector else self._accepted

    def _all_done(self, submitting: bool) -> bool:
        settled = len(self._accepted) + len(self._rejected)
        if self._plan.selector or (submitting and settled < self._plan.count):
            return False
        return all(
            self._fates.get(name, Fate.PENDING) is not Fate.PENDING for name in self._accepted
        )

    def keep(self, feeds: Feeds) -> None:
        """Write everything down."""
        self._course.append((round(self._clock() - self._began_s, 1), feeds.requests))
        mine = {
            "began_s": self._began_s,
            "ended_s": self._clock(),
            "requests": feeds.requests,
            "sightings": self.tracker.events,
            "foreign": dict(self.tracker.foreign),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "course": self._course,
        }
        earlier: Sequence[Any] = self._before.get("samples", [])
        self._store.keep(
            self.tracker.workloads,
            {"schema_version": 1, "samples": [*earlier[-99:], mine]},
            project=self._plan.project,
        )


class _NewSubmissions:
    """New lines of submissions.jsonl, each once."""

    def __init__(self, store: LifecycleFolder) -> None:
        self._store = store
        self._path = store.path / SUBMISSIONS
        self._offset = 0
        self._first = True

    def rows(self) -> Iterator[Submission]:
        """Those that were written since the last call."""
        if not self._path.exists():
            if self._first:
                yield from self._store.submissions()
                self._first = False
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                yield Submission.from_json(line.decode("utf-8", "replace"))


def steady() -> Callable[[], float]:
    """A clock of epoch seconds that corrections of the system's clock do not change."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset
