"""A Service of a cluster as a target: its address, its held autoscalers, its pods under load.

Pods are looked at before and after each step, so that no clock is compared: a pod that was ready
and is not, or has been so only since another time, was not ready meanwhile.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from scaletest.cluster import api_calls
from scaletest.cluster.api_calls import Cluster
from scaletest.cluster.changes import Changes, refuse_changed
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.pods import PodState, PodWarning
from scaletest.cluster.service import Service
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult, NoteProgress
from scaletest.load.service_call import IN_CLUSTER, PROXIED, reach
from scaletest.model.attempt import PodTroubles
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.saturation.measure.target import Target, http_call, http_load
from scaletest.saturation.options import SaturationOptions
from scaletest.saturation.plan import SaturationPlan

logger = logging.getLogger("scaletest.saturation")
MOST_EVENTS = 10
# Pods that a level made unready get this long before the next level begins.
RECOVERY_S, LOOK_S = 60.0, 1.0


def find_service(options: SaturationOptions, plan: SaturationPlan) -> Target:
    """Look at the Service that options name; refuse it while something scales it."""
    cluster = api_calls.connect_cluster(options.namespace, options.context)
    service = Service(cluster, options.service)
    name = service.name
    ready, total = service.endpoints()
    if not ready:
        raise UsageError(f"no pod of service {name} is ready", hint="look at its pods")
    # how requests reach it
    is_inside = IN_CLUSTER.exists() or bool(options.agent_jobs)
    call = reach(service, partial(http_call, options.http, plan), is_inside=is_inside)
    start = http_load(options, plan, call)
    lines = [f"service {name}: {service.url()}, {ready} of {total} addresses are ready"]
    if not is_inside:
        lines.append(PROXIED)
    # what scales its pods
    deployment = service.deployment()
    if deployment is None:
        return Target(tuple(lines), start)
    if not options.tune:  # else this run is one of several that change the Deployment
        refuse_changed(deployment)
    autoscalers, scaler_line = find_autoscalers(
        cluster, deployment, may_hold=options.pause_autoscalers
    )
    replicas = deployment.replicas()
    lines += [f"deployment {deployment.name}: {replicas} replicas", scaler_line]
    changes = Changes(cluster, deployment)

    def start_watched(stack: ExitStack) -> LevelLoad:
        return WatchedPods(start(stack), deployment)

    def hold(stack: ExitStack) -> None:
        # registered first: what was held half-way is put back too
        stack.callback(changes.close)
        autoscalers.hold(replicas, changes)

    return Target(tuple(lines), start_watched, hold, replicas)


def find_autoscalers(
    cluster: Cluster, deployment: Deployment, *, may_hold: bool
) -> tuple[Autoscalers, str]:
    """Return who scales the Deployment, and a line about it. UsageError unless they may be held."""
    autoscalers = Autoscalers(cluster, deployment.name)
    names = ", ".join(map(str, autoscalers.active(may_hold=may_hold)))
    return autoscalers, f"autoscaler: {f'{names}, held for the run' if names else 'none is active'}"


@dataclass(frozen=True, slots=True)
class PodLook:
    """The pods of a Deployment, and warnings about pods of its namespace, at one time."""

    pods: Sequence[PodState]
    warnings: Sequence[PodWarning]

    @property
    def ready(self) -> dict[str, PodState]:
        """Pods that are ready, by name."""
        return {pod.name: pod for pod in self.pods if pod.ready and not pod.going}


def find_troubles(before: PodLook, after: PodLook) -> PodTroubles:
    """Find what befell the pods between two looks."""
    ready_after = after.ready
    unready = [
        name
        for name, pod in before.ready.items()
        if name not in ready_after or ready_after[name].since != pod.since
    ]
    # restarts and warnings are counted from the first look on
    restarts_before = {pod.name: pod.restarts for pod in before.pods}
    counts_before = {warning.uid: warning.count for warning in before.warnings}
    restarts = 0
    for pod in after.pods:
        restarts += max(0, pod.restarts - restarts_before.get(pod.name, 0))
    names = restarts_before.keys() | {pod.name for pod in after.pods}
    events = Counter[str]()
    for warning in after.warnings:
        if warning.pod in names:
            events[warning.text] += max(0, warning.count - counts_before.get(warning.uid, 0))
    return PodTroubles(
        unready=tuple(sorted(unready)),
        restarts=restarts,
        events=tuple(f"{text} ({n}x)" for text, n in events.most_common(MOST_EVENTS) if n),
    )


class WatchedPods:
    """The load, and how the pods of a Deployment fare under it.

    A level begins when as many pods are ready as before the last one, or after a minute: the next
    level shall not be measured with fewer.
    """

    def __init__(
        self,
        load: LevelLoad,
        deployment: Deployment,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._load, self._deployment = load, deployment
        self._clock, self._sleep = clock, sleep
        self._ready = 0  # pods that were ready before the last step
        self._has_warned = False

    def measure(
        self,
        order: LoadOrder,
        stopping: Callable[[], bool],
        note_progress: NoteProgress,
    ) -> LoadResult:
        """Measure one step; see `LevelLoad.measure`."""
        # wait until as many pods are ready as before the last step, for a minute at most
        recovered_at = self._clock() + RECOVERY_S
        before = self._look()
        while before and len(before.ready) < self._ready and self._clock() < recovered_at:
            if stopping():
                break
            self._sleep(LOOK_S)
            before = self._look()
        self._ready = len(before.ready) if before else 0
        result = self._load.measure(order, stopping, note_progress)
        after = before and self._look()
        return replace(result, pods=find_troubles(before, after) if before and after else None)

    def close(self) -> None:
        """End the load."""
        self._load.close()

    def _look(self) -> PodLook | None:
        """Look at the pods; None without the right to, which is told once."""
        try:
            return PodLook(self._deployment.pods(), self._deployment.warnings())
        except ScaletestError as error:
            if not self._has_warned:
                self._has_warned = True
                logger.warning("the state of the pods under load is unknown: %s", error)
            return None
