"""Follow the workloads of a run: list, watch, and note what was seen, as often as is worth it.

A single pass only lists. Either way what earlier samples saw is kept: an object that is gone by now
does not vanish from the result. Submissions are read from the file in which the submitter notes
them, so it may be another process.
"""

import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from scaletest.cluster.api_calls import ApiCalls
from scaletest.cluster.api_errors import Missing
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.watch import Collection, Feeds
from scaletest.lifecycle import kinds
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.books import Fate, LifecycleProgress, fate_of, only_end_missing
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.judging.verdict import ENDLESS
from scaletest.lifecycle.measure.tracker import Tracker
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Stamp, Submission
from scaletest.model.run_progress import WORKLOAD
from scaletest.runs.folder import SAMPLING, SUBMISSIONS
from scaletest.runs.progress import Progress

PODGROUPS = (
    ("scheduling.run.ai/v1", "PodGroup"),
    ("scheduling.run.ai/v2alpha2", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
)
# Of these versions the first that the cluster has.
CLAIMS = tuple(
    (f"resource.k8s.io/{each}", "ResourceClaim") for each in ("v1", "v1beta2", "v1beta1")
)

LOOK_S = 0.2
# When nothing changes for so long and all that is pending runs, it is said what that may mean.
ENDLESS_S = 120.0
KEEP_EVERY_S = 10.0
# Writing may take this part of the time at most.
KEEP_SHARE = 0.05
# After the last workload was done, so long for what belongs to it and is still on its way.
SETTLE_S = 2.0


class Sampler:
    """Follows one run. clock: seconds since the epoch, steady.

    watching: set when what happens is seen when it happens.
    """

    def __init__(
        self,
        plan: LifecyclePlan,
        store: LifecycleFolder,
        api: ApiCalls,
        clock: Callable[[], float],
        stopping: Callable[[], bool] = bool,
        backend: dict[str, float] | None = None,
    ) -> None:
        self._plan, self._store, self._api, self._clock = plan, store, api, clock
        self._stopping = stopping
        self._backend = backend or {}
        self.tracker = Tracker(set(plan.names()), store.workloads(), bare=plan.object_kind == "Pod")
        self._submissions = _NewSubmissions(store)
        # whether the workload of that name was accepted
        self._answered: dict[str, bool] = {}
        self._fates: dict[str, Fate] = {}
        self._running: set[str] = set()
        self._before = store.read(SAMPLING)
        self._course: list[tuple[float, int]] = []
        self._began_s = clock()
        self.watching = threading.Event()

    def follow(
        self,
        timeout_s: float,
        tell: Callable[[LifecycleProgress], None] = lambda progress: None,
        *,
        once: bool = False,
        submitting: Callable[[], bool] = lambda: True,
    ) -> bool:
        """Until every workload is done (once: until the lists are complete); whether that was so
        within the time.

        submitting: whether somebody may still submit; when nobody does, the run ends with what
        there is.
        """
        watched = collections_of(self._plan, Objects(self._api))
        feeds = Feeds(self._api, watched, self._clock)
        missing = {collection.role for collection in watched}
        until, done_since = time.monotonic() + timeout_s, 0.0
        written_s, every_s = time.monotonic(), KEEP_EVERY_S
        try:
            while not self._stopping() and time.monotonic() < until:
                # take in what has come, until it is time to write
                for event in feeds.events(LOOK_S):
                    self.tracker.see(event)
                    if event.kind == "SYNCED":  # the list of this role is complete
                        missing.discard(event.role)
                    if time.monotonic() > written_s + every_s:
                        break
                tell(self._judge_changes())
                if not missing:
                    if once:
                        return True
                    if feeds.watching:
                        self.watching.set()
                    is_submitting = submitting() and len(self._answered) < self._plan.count
                    done = not is_submitting and all(
                        self._fates.get(name, Fate.PENDING) is not Fate.PENDING
                        for name, accepted in self._answered.items()
                        if accepted
                    )
                    done_since = (done_since or time.monotonic()) if done else 0.0
                    if done and time.monotonic() - done_since > SETTLE_S:
                        return True
                if time.monotonic() - written_s > every_s:
                    began_s = time.monotonic()
                    self.keep(feeds)
                    written_s = time.monotonic()
                    every_s = max(KEEP_EVERY_S, (written_s - began_s) / KEEP_SHARE)
            return False
        finally:
            feeds.close()
            self._judge_changes()
            self.keep(feeds)

    def _judge_changes(self) -> LifecycleProgress:
        """Take new submissions in, and judge again what changed."""
        for row in self._submissions.rows():
            self._answered[row.name] = row.accepted
            if row.accepted:
                self.tracker.submitted(row.name, row.namespace, row.submitted_s, row.accepted_s)
        for name in self.tracker.changed_names:
            workload = self.tracker.workloads.get(name)
            if not workload or self._fates.get(name) not in (None, Fate.PENDING, Fate.LOST):
                continue
            if name in self._backend:
                workload.mark("backend_job_created", Stamp(api_s=self._backend[name]))
            far = timeline_of(workload)
            self._fates[name] = fate_of(far, self._plan.until)
            self._running.discard(name)
            if (
                self._fates[name] is Fate.PENDING
                and self._answered.get(name)
                and only_end_missing(far, self._plan.until)
            ):
                self._running.add(name)
        self.tracker.changed_names.clear()
        counted = [name for name in self.tracker.workloads if self._answered.get(name)]
        fates = Counter(self._fates.get(name, Fate.PENDING) for name in counted)
        return LifecycleProgress(
            self._plan.count,
            len(counted),
            list(self._answered.values()).count(False),
            dict(fates),
            sum(len(workload.pods) for workload in self.tracker.workloads.values()),
            len(self._running),
        )

    def keep(self, feeds: Feeds) -> None:
        """Write everything down."""
        self._course.append((round(self._clock() - self._began_s, 1), feeds.api.sent))
        sample = {
            "began_s": self._began_s,
            "ended_s": self._clock(),
            "requests": feeds.api.sent,
            "sightings": self.tracker.events,
            "foreign": dict(self.tracker.untracked_events),
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "course": self._course,
        }
        earlier = self._before.get("samples", [])[-99:]
        self._store.keep(
            self.tracker.workloads,
            {"schema_version": 1, "samples": [*earlier, sample]},
            project=self._plan.project,
        )


class ProgressReport:
    """Tells how far a run is.

    When nothing changes for long and all that is pending runs, it says once what that may mean.
    """

    def __init__(self, progress: Progress, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress, self._clock = progress, clock
        self._last: LifecycleProgress | None = None
        self._changed_s = clock()
        self._is_hinted = False

    def tell(self, far: LifecycleProgress) -> None:
        """Take in where the run is."""
        if far != self._last:
            self._last, self._changed_s = far, self._clock()
        over = sum(count for state, count in far.fates.items() if state is not Fate.PENDING)
        self._progress.at(over + far.rejected, far.planned, unit=WORKLOAD)
        self._progress.note(str(far))
        idle_s = self._clock() - self._changed_s
        endless = 0 < far.running == far.fates.get(Fate.PENDING)
        if endless and idle_s >= ENDLESS_S and not self._is_hinted:
            self._is_hinted = True
            self._progress.message(
                f"for {idle_s:.0f} s nothing changed, and the pods of all {far.running} pending"
                f" workloads run: if they do not end by themselves, {ENDLESS}"
            )


class _NewSubmissions:
    """New lines of submissions.jsonl, each once."""

    def __init__(self, store: LifecycleFolder) -> None:
        self._store = store
        self._path = store.path / SUBMISSIONS
        self._offset = 0
        self._first = True

    def rows(self) -> Iterator[Submission]:
        """Yield those that were written since the last call."""
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


def steady_clock() -> Callable[[], float]:
    """Return a clock of epoch seconds that corrections of the system's clock do not change."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


def collections_of(plan: LifecyclePlan, objects: Objects) -> list[Collection]:
    """Return what to watch. Raises Missing when the cluster lacks the kind of workload."""

    def path(api_version: str, name: str) -> str:
        return objects.resource(api_version, name).path(plan.namespace)

    def present(role: str, candidates: Iterable[tuple[str, str]]) -> list[Collection]:
        """Return what the cluster has of these kinds, which carry no labels of ours."""
        watched = []
        for candidate in candidates:
            with suppress(Missing):
                watched.append(Collection(role, path(*candidate)))
        return watched

    kind = kinds.KINDS.get(plan.workload_type)
    # the Run:ai command line takes no labels of ours
    own_label = plan.label if plan.tool != "runai" else ""
    label = own_label if kind is None or kind.labelled else ""
    watched = [Collection("pod", path("v1", "Pod"), label)]
    if plan.object_kind != "Pod":
        watched.append(Collection("workload", path(plan.api_version, plan.object_kind), own_label))
    if kind and kind.child:
        watched += present("job", [kind.child])
    watched += present("podgroup", PODGROUPS)
    if plan.pvc or "volumeClaimTemplate" in plan.template:
        watched.append(Collection("pvc", path("v1", "PersistentVolumeClaim"), label))
    if "resourceClaimTemplateName" in plan.template:
        watched += present("claim", CLAIMS)[:1]
    if plan.event_times:
        watched.append(Collection("event", path("v1", "Event")))
    return watched
