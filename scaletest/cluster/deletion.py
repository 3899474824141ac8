"""Pod deletion costs: scaling down a Deployment deletes idle workers before busy ones.

Kubernetes deletes the pods with the lowest `controller.kubernetes.io/pod-deletion-cost` first. An
idle worker costs 0. A busy one costs more the longer ago its request began, so the pod with the
least work to lose goes first, and the cost need not be renewed while the request runs. It is
written when a pod becomes busy or idle, as often as the rate allows.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from scaletest.cluster.connection import Busy, Missing, Raw, Refused, connect
from scaletest.cluster.objects import PODS

logger = logging.getLogger("scaletest.cluster")

ANNOTATION = "controller.kubernetes.io/pod-deletion-cost"
IDLE = 0
# A cost is an int32: seconds since 2020-09-13 are subtracted from 2e9, which lasts until 2080.
_HIGHEST, _EPOCH_S = 2_000_000_000, 1_600_000_000
DEFAULT_PER_S = 10.0
_POD_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")


class PodAnnotations:
    """Writes annotations of pods in one namespace. Needs the right to patch pods there."""

    def __init__(self, namespace: str = "", context: str = "") -> None:
        cluster = connect(namespace, context)
        self.namespace = cluster.namespace
        self._raw = Raw(cluster)

    def annotate(self, name: str, annotations: dict[str, str]) -> None:
        """Merge annotations into a pod's.

        Raises Missing, Refused, Busy, and Unreachable without the right.
        """
        self._raw.write(
            "PATCH",
            PODS.path(self.namespace, name),
            {"metadata": {"annotations": annotations}},
            f"patch pod {name} in namespace {self.namespace}",
            "patch pods",
        )


class PodWorker(Protocol):
    """A worker in a pod.

    started_s: start of its running request, seconds since the epoch; None when idle.
    """

    @property
    def pod(self) -> str:
        """The pod's name, "" outside of one."""

    @property
    def busy(self) -> bool:
        """Whether a request runs."""

    @property
    def started_s(self) -> float | None:
        """When that began."""


def cost(started_s: float | None) -> int:
    """The cost of a busy worker, by the start of its request in seconds since the epoch."""
    return _HIGHEST - max(0, int((started_s or _EPOCH_S) - _EPOCH_S))


def costs(workers: Iterable[PodWorker]) -> dict[str, int]:
    """The cost of each pod, which is the highest of its workers."""
    by_pod: dict[str, int] = {}
    for worker in workers:
        if _POD_NAME.fullmatch(worker.pod):
            by_pod[worker.pod] = max(
                by_pod.get(worker.pod, IDLE), cost(worker.started_s) if worker.busy else IDLE
            )
    return by_pod


class DeletionCosts:
    """Keeps the annotations up to date. Call `update` every few seconds.

    left: pods that the last update could not write yet.
    """

    def __init__(
        self,
        annotate: Callable[[str, dict[str, str]], None],
        per_s: float = DEFAULT_PER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """annotate: merges annotations into those of the pod of a name."""
        self._annotate = annotate
        self._per_s = per_s
        self._clock = clock
        # a token bucket that holds the writes of one second, one at least
        self._most = self._allowed = max(1.0, per_s)
        self._at = clock()
        self._busy: dict[str, bool] = {}
        self._late: set[str] = set()
        self.left = 0

    def update(self, wanted: Mapping[str, int]) -> int:
        """Write changed costs, busy pods first, as many as the rate allows; the others next time.

        wanted: cost by pod. Returns the number of pods written. Raises Unreachable without
        the right.
        """
        now = self._clock()
        self._allowed = min(self._most, self._allowed + (now - self._at) * self._per_s)
        self._at = now
        self._busy = {pod: busy for pod, busy in self._busy.items() if pod in wanted}
        changed = [pod for pod, own in wanted.items() if self._busy.get(pod) != (own > IDLE)]
        # pods that failed before come last, so one that always fails does not block the others
        self._late &= set(changed)
        changed.sort(key=lambda pod: (pod in self._late, -wanted[pod]))
        self.left = len(changed)
        written = 0
        for pod in changed:
            if self._allowed < 1:
                break
            self._allowed -= 1
            try:
                self._annotate(pod, {ANNOTATION: str(wanted[pod])})
                written += 1
            except Missing:
                logger.debug("pod %s does not exist", pod)
            except Refused as error:
                logger.warning("%s", error)
            except Busy as error:
                logger.warning("%s; trying again", error)
                self._late.add(pod)
                break
            self._busy[pod] = wanted[pod] > IDLE
            self.left -= 1
        return written
