"""Pod deletion costs, so that a Deployment that shrinks takes idle workers first and loses no running request.

Kubernetes takes away the pods with the lowest `controller.kubernetes.io/pod-deletion-cost`. An idle worker costs 0. A
busy one costs more the longer ago its request began: so the one with the least work to lose goes first, and the number
holds while the request runs and needs not be written again. It is written when a pod's busy state changes, as often as
the rate allows.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from scaletest.cluster.pod_annotations import Busy, Missing, Refused

logger = logging.getLogger("scaletest.cluster")

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
IDLE = 0
# A cost is an int32. From 2020-09-13 on seconds count down from the highest round one: enough until 2080.
_HIGHEST, _EPOCH_S = 2_000_000_000, 1_600_000_000
DEFAULT_PER_S = 10.0
_POD_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class Annotates(Protocol):
    """What is used of api.Pods."""

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Merge annotations into a pod's."""


@dataclass(frozen=True, slots=True)
class PodWorker:
    """A worker in a pod. started_s: when its running request was taken, seconds since the epoch; None when idle."""

    pod: str
    busy: bool
    started_s: float | None = None


def cost(started_s: float | None) -> int:
    """The cost of a busy worker whose request began then."""
    return _HIGHEST - max(0, int((started_s or _EPOCH_S) - _EPOCH_S))


def costs(workers: Iterable[PodWorker]) -> dict[str, int]:
    """The cost of every pod: of its workers the highest."""
    found: dict[str, int] = {}
    for worker in workers:
        if _POD_NAME.fullmatch(worker.pod):
            found[worker.pod] = max(found.get(worker.pod, IDLE), cost(worker.started_s) if worker.busy else IDLE)
    return found


class DeletionCosts:
    """Keeps the costs right. Call `update` with what is, every few seconds.

    left: pods that the last update could not write yet.
    """

    def __init__(
        self, pods: Annotates, per_s: float = DEFAULT_PER_S, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._pods = pods
        self._per_s = per_s
        self._clock = clock
        # a second's worth may be saved up, one at least
        self._most = max(1.0, per_s)
        self._allowed = self._most
        self._at = clock()
        self._busy: dict[str, bool] = {}
        self._late: set[str] = set()
        self.left = 0

    def update(self, wanted: Mapping[str, int]) -> int:
        """Write what changed, busy pods first, as many as the rate allows; the rest comes next time. How many.

        Raises Unreachable when Kubernetes does not let us.
        """
        now = self._clock()
        self._allowed = min(self._most, self._allowed + (now - self._at) * self._per_s)
        self._at = now
        self._busy = {pod: busy for pod, busy in self._busy.items() if pod in wanted}
        changed = [pod for pod, value in wanted.items() if self._busy.get(pod) != (value > IDLE)]
        # those that failed come last, so that one which always does keeps no other waiting
        self._late &= set(changed)
        changed.sort(key=lambda pod: (pod in self._late, -wanted[pod]))
        self.left = len(changed)
        written = 0
        for pod in changed:
            if self._allowed < 1:
                break
            self._allowed -= 1
            try:
                self._pods.annotate(pod, {ANNOTATION: str(wanted[pod])})
                written += 1
            except Missing:
                logger.debug("there is no pod %s", pod)
            except Refused as error:
                logger.warning("%s", error)
            except Busy as error:
                logger.warning("%s; trying again", error)
                self._late.add(pod)
                break
            self._busy[pod] = wanted[pod] > IDLE
            self.left -= 1
        return written
