"""The pods behind a service while it is loaded: which did not stay ready, restarts, and warnings.

They are looked at before and after each step, so that no clock is compared: a pod that was ready
and is not, or has been so only since another time, was not ready meanwhile.
"""

import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from scaletest.cluster.deployment import Deployment
from scaletest.cluster.pods import PodState, PodWarning
from scaletest.load.level_load import LevelLoad, LoadOrder, LoadResult
from scaletest.model.attempt import PodTroubles
from scaletest.model.errors import ScaletestError

logger = logging.getLogger("scaletest.saturation")
MOST_EVENTS = 10
# Pods that a level made unready get this long before the next level begins.
RECOVERY_S, LOOK_S = 60.0, 1.0


@dataclass(frozen=True, slots=True)
class PodLook:
    """The pods of a Deployment, and warnings about pods of its namespace, at one time."""

    pods: Sequence[PodState]
    warnings: Sequence[PodWarning]

    @property
    def ready(self) -> dict[str, PodState]:
        """Pods that are ready, by name."""
        return {pod.name: pod for pod in self.pods if pod.ready and not pod.going}


def troubles(before: PodLook, after: PodLook) -> PodTroubles:
    """What befell the pods between two looks."""
    still, known = after.ready, {pod.name: pod.restarts for pod in before.pods}
    unready = [
        name
        for name, pod in before.ready.items()
        if name not in still or still[name].since != pod.since
    ]
    counts = {warning.uid: warning.count for warning in before.warnings}
    names = known.keys() | {pod.name for pod in after.pods}
    events = Counter[str]()
    for warning in after.warnings:
        if warning.pod in names:
            events[warning.text] += max(0, warning.count - counts.get(warning.uid, 0))
    return PodTroubles(
        unready=tuple(sorted(unready)),
        restarts=sum(max(0, pod.restarts - known.get(pod.name, 0)) for pod in after.pods),
        events=tuple(f"{text} ({n}x)" for text, n in events.most_common(MOST_EVENTS) if n),
    )


class WatchedPods:
    """The load, and how the pods of a Deployment fare under it.

    A level begins when as many pods are ready as before the last one, or after a minute: the next
    level shall not be measured with fewer. Without the rights to list pods and events nothing is
    recorded, which is told once.
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
        self._ready, self._told = 0, False

    def measure(
        self, order: LoadOrder, stopping: Callable[[], bool], tell: Callable[[int, int], None]
    ) -> LoadResult:
        """As LevelLoad says."""
        # until the pods are ready again, or may not be waited for any longer
        ends = self._clock() + RECOVERY_S
        before = self._look()
        while (
            before and len(before.ready) < self._ready and self._clock() < ends and not stopping()
        ):
            self._sleep(LOOK_S)
            before = self._look()
        self._ready = len(before.ready) if before else 0
        result = self._load.measure(order, stopping, tell)
        after = before and self._look()
        return replace(result, pods=troubles(before, after) if before and after else None)

    def close(self) -> None:
        """End the load."""
        self._load.close()

    def _look(self) -> PodLook | None:
        try:
            return PodLook(self._deployment.pods(), self._deployment.warnings())
        except ScaletestError as error:
            if not self._told:
                self._told = True
                logger.warning("how the pods fare under load is not known: %s", error)
            return None
