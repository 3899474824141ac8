"""The pods of a Deployment as the workers of a validation.

Its number of replicas and what scales it are always put back at the end.
"""

import logging
import time
from collections.abc import Callable

from scaletest.cluster.changes import Changes, Patch
from scaletest.cluster.connection import Busy
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.model.errors import WaitTimeout

logger = logging.getLogger("scaletest.validation")

LOOK_S = 0.5
PATIENCE_S = 60.0


class KubernetesBackend:
    """Scales a Deployment for a run, and back at the end.

    scalers: who else scales it. ready_s: how long pods may take to be ready.
    """

    def __init__(
        self,
        deployment: Deployment,
        scalers: Autoscalers,
        changes: Changes,
        *,
        ready_s: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deployment, self._scalers, self._changes = deployment, scalers, changes
        self._ready_s = ready_s
        self._clock = clock
        self._wanted = self._ready = 0
        self._asked_at = self._looked_at = self._answered_at = clock()

    def scale(self, workers: int) -> None:
        """Request this many pods."""
        self._wanted = workers
        self._scalers.scale(Patch({"replicas": workers}), self._changes)
        self._asked_at = self._answered_at = self._clock()
        self._looked_at = self._asked_at - LOOK_S
        self._ready = 0

    def ready(self) -> int:
        """Pods that are ready; 0 while there are more pods than requested.

        Raises WaitTimeout with the reason.
        """
        now = self._clock()
        if now - self._looked_at < LOOK_S:
            return self._ready
        self._looked_at = now
        try:
            pods = self._deployment.pods()
        except Busy as error:
            if now - self._answered_at > PATIENCE_S:
                raise
            logger.warning("%s; trying again", error)
            return self._ready
        self._answered_at = now
        wanted = self._wanted
        ready = sum(pod.ready and not pod.going for pod in pods)
        self._ready = ready if len(pods) <= wanted else 0
        if self._ready >= wanted:
            self._asked_at = now  # a pod that ends later has as much time to be replaced
        elif now - self._asked_at > self._ready_s:
            raise WaitTimeout(
                f"{ready} of {wanted} pods of {self._deployment.name} are ready {self._ready_s:.0f}"
                f" s after they were requested\n  {self._deployment.trouble()}",
                hint="give a longer <ready_timeout>, or a smaller <limit>",
            )
        return self._ready

    def close(self) -> None:
        """Put back the number of pods and what scales them. Does nothing the second time."""
        self._changes.close()
