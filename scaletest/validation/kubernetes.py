"""Workers as pods of a Deployment, whose number of replicas is always restored at the end."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from scaletest.cluster.connection import Busy
from scaletest.cluster.pod_state import PodState
from scaletest.model.errors import ScaletestError, WaitTimeout

logger = logging.getLogger("scaletest.validation")

LOOK_S = 0.5
PATIENCE_S = 60.0
RELEASE_S = 30.0
RESTORE_TRIES = 10


class ScalableDeployment(Protocol):
    """A Deployment that can be scaled."""

    name: str

    def replicas(self) -> int:
        """The requested number of pods."""

    def scale(self, replicas: int) -> None:
        """Request this number of pods."""

    def pods(self) -> list[PodState]:
        """Its pods."""

    def pause(self, scaled_object: str, paused: bool) -> None:
        """Set or remove KEDA's pause mark."""

    def released(self, scaled_object: str) -> bool:
        """Whether KEDA no longer scales it."""

    def trouble(self) -> str:
        """Why it is not ready."""


class KubernetesBackend:
    """Scales a Deployment for a run, and back at the end.

    ready_s: how long pods may take to be ready. pause: ScaledObjects to pause during the run.
    """

    def __init__(
        self,
        deployment: ScalableDeployment,
        *,
        ready_s: float = 120.0,
        pause: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._deployment = deployment
        self._ready_s = ready_s
        self._clock, self._sleep = clock, sleep
        self._pause = pause
        self._paused: list[str] = []
        # Changes run one after the other: when a signal ends the wait for a change, that change
        # still ends before it is undone. The thread starts here: a signal while it starts would
        # leave a thread that the pool does not know.
        self._hand = ThreadPoolExecutor(1, "scale")
        self._before = self._hand.submit(deployment.replicas).result()
        self._wanted: int | None = None
        self._asked_at = self._looked_at = self._answered_at = clock()
        self._ready = 0

    def scale(self, workers: int) -> None:
        """Request this many pods."""
        for name in self._pause[len(self._paused) :]:
            # noted first, so that it is undone even when no answer came
            self._paused.append(name)
            self._insist(lambda name=name: self._deployment.pause(name, True))  # type: ignore[misc]
            self._wait_released(name)
        self._wanted = workers
        self._insist(lambda: self._deployment.scale(workers))
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
        wanted = self._wanted or 0
        ready = sum(pod.ready and not pod.going for pod in pods)
        self._ready = ready if len(pods) <= wanted else 0
        if self._ready >= wanted:
            self._asked_at = now  # a pod that ends later has as much time to be replaced
        elif now - self._asked_at > self._ready_s:
            raise WaitTimeout(
                f"{ready} of {wanted} pods of {self._deployment.name} are ready {self._ready_s:.0f}"
                f" s after they were requested\n  {self._deployment.trouble()}",
                hint="give a longer --ready-timeout, or a smaller --limit",
            )
        return self._ready

    def close(self) -> None:
        """Restore the number of pods, and let KEDA continue. Does nothing the second time."""
        if self._wanted is None and not self._paused:
            return
        self._restore(lambda: self._deployment.scale(self._before), f"--replicas={self._before}")
        self._wanted = None
        while self._paused:
            name = self._paused[-1]
            self._restore(lambda: self._deployment.pause(name, False), f"ScaledObject {name}")  # noqa: B023
            self._paused.pop()

    def _wait_released(self, scaled_object: str) -> None:
        """Wait until KEDA's HPA is gone, which would scale the pods too. Raises WaitTimeout."""
        deadline = self._clock() + RELEASE_S
        while True:
            try:
                if self._deployment.released(scaled_object):
                    return
            except Busy as error:
                logger.warning("%s; trying again", error)
            if self._clock() >= deadline:
                raise WaitTimeout(
                    f"ScaledObject {scaled_object} was paused {RELEASE_S:.0f} s ago, and its HPA is"
                    " still there",
                    hint=(
                        "check that KEDA's operator runs: it removes the HPA while the ScaledObject"
                        " is paused"
                    ),
                )
            self._sleep(LOOK_S)

    def _insist(self, act: Callable[[], None]) -> None:
        """Make a change, with retries: an API server refuses for seconds while it restarts."""
        for left in range(RESTORE_TRIES, -1, -1):
            try:
                self._hand.submit(act).result()
                return
            except Busy as error:
                if not left:
                    raise
                logger.warning("%s; trying again", error)
                self._sleep(1.0)

    def _restore(self, act: Callable[[], None], setting: str) -> None:
        try:
            self._insist(act)
        except ScaletestError as error:
            logger.error(
                "could not restore deployment %s: restore %s yourself (%s)",
                self._deployment.name,
                setting,
                error,
            )
