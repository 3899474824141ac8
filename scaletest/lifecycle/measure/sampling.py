"""Follow the workloads of a run: list and watch them, and write down what was seen.

What earlier samples saw is kept: an object that is gone by now does not vanish from the result.
Submissions are read from the file in which the submitter notes them, so it may be another process.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from scaletest.cluster.api_calls import ApiCalls, Missing
from scaletest.cluster.bulk_objects import Objects
from scaletest.cluster.watch import Collection, Feeds
from scaletest.lifecycle import kinds
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.books import Fate, LifecycleProgress, fate_of
from scaletest.lifecycle.judging.timeline import timeline_of
from scaletest.lifecycle.measure.tracker import Tracker
from scaletest.lifecycle.plan import LifecyclePlan
from scaletest.lifecycle.records import Stamp, Submission
from scaletest.model.run_progress import WORKLOAD
from scaletest.runs.folder import SUBMISSIONS
from scaletest.runs.progress import Progress

PODGROUPS = (
    ("scheduling.run.ai/v1", "PodGroup"),
    ("scheduling.run.ai/v2alpha2", "PodGroup"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"),
)
# Of these versions the first that the cluster has.
CLAIMS = tuple(
    (f"resource.k8s.io/{version}", "ResourceClaim") for version in ("v1", "v1beta2", "v1beta1")
)
# How long events are waited for until the progress is shown.
LOOK_S = 0.2
# When all is done, what belongs to it and is on its way has so long to come.
QUIET_S = 2.0
# How often what was seen is written; less often where that takes more than this share of the time.
KEEP_EVERY_S = 10.0
MOST_WRITING_SHARE = 0.05


class Sampler:
    """Follows the workloads of one run.

    clock: seconds since the epoch, steady. backend: further times by the name of the workload.
    """

    def __init__(
        self,
        plan: LifecyclePlan,
        store: LifecycleFolder,
        api: ApiCalls,
        clock: Callable[[], float],
        *,
        stopping: Callable[[], bool] = bool,
        backend: dict[str, float] | None = None,
    ) -> None:
        self._plan, self._store, self._api, self._clock = plan, store, api, clock
        self._stopping = stopping
        self._backend = backend or {}
        self._tracker = Tracker(
            set(plan.names()), store.workloads(), bare=plan.object_kind == "Pod"
        )
        self._submissions = _NewSubmissions(store.path / SUBMISSIONS)
        self._accepted: dict[str, bool] = {}  # by the names of all that was submitted
        self._fates: dict[str, Fate] = {}
        self.watching = threading.Event()  # set when events are seen as they happen

    def follow(
        self,
        timeout_s: float,
        show: Callable[[LifecycleProgress], None],
        *,
        once: bool = False,
        submitting: Callable[[], bool] = lambda: True,
    ) -> None:
        """Follow until every workload is done, or the time is up. once: list, and do not watch.

        show: is told the progress. submitting: whether objects may still be submitted; when none
        is, the run ends with what there is.
        """
        collections = collections_of(self._plan, Objects(self._api))
        feeds = Feeds(self._api, collections, self._clock)
        unlisted_roles = {collection.role for collection in collections}
        began_s = written_s = last_busy_s = time.monotonic()
        keep_every_s = KEEP_EVERY_S
        try:
            while not self._stopping() and time.monotonic() < began_s + timeout_s:
                # take in what has come, until it is time to show the progress, or to write
                for event in feeds.events(LOOK_S):
                    self._tracker.see(event)
                    if event.kind == "SYNCED":  # the list of this role is complete
                        unlisted_roles.discard(event.role)
                    if time.monotonic() > written_s + keep_every_s:
                        break
                show(self._judge_changes())
                if not unlisted_roles and once:
                    return
                if not unlisted_roles and feeds.watching:
                    self.watching.set()
                # end when all is done
                if unlisted_roles or self._is_work_left(submitting()):
                    last_busy_s = time.monotonic()
                elif time.monotonic() - last_busy_s > QUIET_S:
                    return
                if time.monotonic() > written_s + keep_every_s:
                    writing_s = time.monotonic()
                    self._keep()
                    written_s = time.monotonic()
                    keep_every_s = max(KEEP_EVERY_S, (written_s - writing_s) / MOST_WRITING_SHARE)
        finally:
            feeds.close()
            self._judge_changes()
            self._keep()

    def _is_work_left(self, may_come: bool) -> bool:
        """Return whether a workload is pending. may_come: whether more may be submitted."""
        if may_come and len(self._accepted) < self._plan.count:
            return True
        return any(
            accepted and self._fates.get(name, Fate.PENDING) is Fate.PENDING
            for name, accepted in self._accepted.items()
        )

    def _judge_changes(self) -> LifecycleProgress:
        """Take new submissions in, and judge again what changed."""
        for row in self._submissions.read():
            self._accepted[row.name] = row.accepted
            if row.accepted:
                self._tracker.note_submission(row)
        for name in self._tracker.changed_names:
            workload = self._tracker.workloads.get(name)
            # a lost one may come back: its list was older than its submission
            if not workload or self._fates.get(name) not in (None, Fate.PENDING, Fate.LOST):
                continue
            if name in self._backend:
                workload.mark("backend_job_created", Stamp(api_s=self._backend[name]))
            self._fates[name] = fate_of(timeline_of(workload), self._plan.until)
        self._tracker.changed_names.clear()
        workloads = self._tracker.workloads
        submitted = [name for name in workloads if self._accepted.get(name)]
        return LifecycleProgress(
            planned=self._plan.count,
            submitted=len(submitted),
            rejected=list(self._accepted.values()).count(False),
            fates=Counter(self._fates.get(name, Fate.PENDING) for name in submitted),
            pods=sum(len(workload.pods) for workload in workloads.values()),
        )

    def _keep(self) -> None:
        self._store.keep(self._tracker.workloads, project=self._plan.project)


def show_progress(progress: Progress, state: LifecycleProgress) -> None:
    """Show how many of all workloads need no more attention, and what became of each."""
    pending = state.fates.get(Fate.PENDING, 0)
    over = sum(state.fates.values()) - pending + state.rejected
    progress.at(over, state.planned, unit=WORKLOAD)
    progress.note(str(state))


class _NewSubmissions:
    """Reads each line of submissions.jsonl once, while another process writes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def read(self) -> Iterator[Submission]:
        """Yield the submissions that were written since the last call."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break  # it is being written
                self._offset += len(line)
                yield Submission.from_json(line.decode("utf-8", "replace"))


def steady_clock() -> Callable[[], float]:
    """Return a clock of epoch seconds that corrections of the system's clock do not change."""
    offset = time.time() - time.monotonic()
    return lambda: time.monotonic() + offset


def collections_of(plan: LifecyclePlan, objects: Objects) -> list[Collection]:
    """Return what to watch. Raises Missing when the cluster lacks the kind of workload."""

    def path(api_version: str, kind: str) -> str:
        return objects.resource(api_version, kind).path(plan.namespace)

    def present(role: str, candidates: Iterable[tuple[str, str]]) -> list[Collection]:
        """Return what the cluster has of these kinds, which carry no labels of ours."""
        collections = []
        for candidate in candidates:
            with suppress(Missing):
                collections.append(Collection(role, path(*candidate)))
        return collections

    kind = kinds.KINDS.get(plan.workload_type)
    # the Run:ai command line takes no labels of ours
    own_label = plan.label if plan.tool != "runai" else ""
    pod_label = own_label if kind is None or not kind.runai else ""
    collections = [Collection("pod", path("v1", "Pod"), pod_label)]
    if plan.object_kind != "Pod":
        collections.append(
            Collection("workload", path(plan.api_version, plan.object_kind), own_label)
        )
    if kind and kind.child:
        collections += present("job", [kind.child])
    collections += present("podgroup", PODGROUPS)
    if plan.pvc or "volumeClaimTemplate" in plan.template:
        collections.append(Collection("pvc", path("v1", "PersistentVolumeClaim"), pod_label))
    if "resourceClaimTemplateName" in plan.template:
        collections += present("claim", CLAIMS)[:1]
    if plan.event_times:
        collections.append(Collection("event", path("v1", "Event")))
    return collections
