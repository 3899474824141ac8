"""Hold the HPAs and ScaledObjects of a Deployment for a run.

An HPA cannot be paused, but it can be held: while its minimum and maximum are the same number of
replicas, it changes nothing. KEDA's own HPA is held by the pause annotation of its ScaledObject.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from scaletest.cluster import discovery, rights
from scaletest.cluster.api_calls import ApiCalls, Busy, Cluster
from scaletest.cluster.changes import BEFORE, Changes, Patch
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.resources import DEPLOYMENTS, HPAS, SCALED_OBJECTS, Resource
from scaletest.model.errors import UsageError, WaitTimeout

PAUSED = "autoscaling.keda.sh/paused"
# How long KEDA may take to delete the HPA of a paused ScaledObject.
RELEASE_LIMIT_S = 60.0

logger = logging.getLogger("scaletest.cluster")


@dataclass(frozen=True, slots=True)
class Autoscaler:
    """An autoscaler of the Deployment."""

    resource: Resource
    name: str
    owner: str = ""  # the ScaledObject that created an HPA
    paused: bool = False
    note: str | None = None  # our annotation, during a run and after one that was killed

    def __str__(self) -> str:
        return f"{self.resource.kind} {self.name}"


class Autoscalers:
    """The HPAs and ScaledObjects that scale a Deployment, as they are when this is made.

    Needs the rights to list them.
    """

    def __init__(
        self,
        cluster: Cluster,
        deployment: str,
        *,
        resource: Resource = DEPLOYMENTS,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._api, self._namespace = ApiCalls(cluster), cluster.namespace
        self._deployment, self._resource = deployment, resource
        self._clock, self._sleep = clock, sleep
        self.found = self._list(HPAS)
        # without KEDA its objects cannot be listed
        if rights.KEDA.group in discovery.api_groups(cluster):
            self.found += self._list(SCALED_OBJECTS)

    def active(self, *, may_hold: bool) -> list[Autoscaler]:
        """Return those that may change the number of pods, or that a run holds.

        UsageError when there are any and they may not be held: two who scale one Deployment would
        measure each other.
        """
        # the HPA of a ScaledObject is held by pausing that one
        active = [
            scaler
            for scaler in self.found
            if scaler.note is not None or not (scaler.paused or scaler.owner)
        ]
        if active and not may_hold:
            raise UsageError(
                f"{', '.join(map(str, active))} scales {self._deployment}: a run cannot measure a"
                " number of pods that changes",
                hint="add <pause_autoscalers>: it is held for the run and put back",
            )
        return active

    def hold(self, replicas: int, changes: Changes) -> None:
        """Hold those that are active at a number of replicas.

        WaitTimeout when KEDA does not delete the HPA of a paused ScaledObject, which would continue
        to scale.
        """
        held_at = max(1, replicas)  # an HPA has no maximum of 0
        for scaler in self.active(may_hold=True):
            changes.take_over(scaler.resource, scaler.name, scaler.note)
            if scaler.resource == HPAS:
                changes.change(
                    HPAS, scaler.name, Patch({"minReplicas": held_at, "maxReplicas": held_at})
                )
            else:
                changes.change(SCALED_OBJECTS, scaler.name, Patch(annotations={PAUSED: "true"}))
                self._await_release(scaler.name)

    def scale(self, patch: Patch, changes: Changes) -> None:
        """Change the Deployment and its number of pods, and hold the autoscalers at that number.

        Raises as `hold`.
        """
        # noted before an HPA is held at the new number: it would scale to that by itself
        changes.note(self._resource, self._deployment, patch)
        self.hold(patch.spec["replicas"], changes)
        changes.change(self._resource, self._deployment, patch)

    def _await_release(self, scaled_object: str) -> None:
        """Wait until KEDA has deleted the HPA of a paused ScaledObject."""
        deadline = self._clock() + RELEASE_LIMIT_S
        while True:
            try:
                if all(hpa.owner != scaled_object for hpa in self._list(HPAS)):
                    return
            except Busy as error:
                logger.warning("%s; trying again", error)
            if self._clock() >= deadline:
                raise WaitTimeout(
                    f"ScaledObject {scaled_object} was paused {RELEASE_LIMIT_S:.0f} s ago, and its"
                    " HPA is still there",
                    hint=(
                        "check that KEDA's operator runs: it removes the HPA while the ScaledObject"
                        " is paused"
                    ),
                )
            self._sleep(0.5)

    def _list(self, resource: Resource) -> list[Autoscaler]:
        """List the objects of a kind that scale the Deployment."""
        scalers = []
        for scaler in self._api.list_objects(resource.path(self._namespace), resource.plural):
            target = scaler["spec"].get("scaleTargetRef", {})
            is_kind = target.get("kind", DEPLOYMENTS.kind) == self._resource.kind
            if not is_kind or target.get("name") != self._deployment:
                continue
            meta = scaler["metadata"]
            annotations = meta.get("annotations", {})
            owners = (
                reference["name"]
                for reference in meta.get("ownerReferences", [])
                if reference["kind"] == SCALED_OBJECTS.kind
            )
            scalers.append(
                Autoscaler(
                    resource,
                    meta["name"],
                    owner=next(owners, ""),
                    # KEDA may copy the annotation to its HPA, where it pauses nothing
                    paused=resource == SCALED_OBJECTS and annotations.get(PAUSED) == "true",
                    note=annotations.get(BEFORE),
                )
            )
        return scalers


def restore(cluster: Cluster, name: str) -> dict[str, str]:
    """Put back what a killed run left changed on a Deployment and its autoscalers.

    Returns by object what to do where that failed, "" where it did not.
    """
    deployment = Deployment(cluster, name)
    changes = Changes(cluster, deployment)
    # put back last: an autoscaler that is still held would scale it again
    changes.take_over(deployment.resource, deployment.name, deployment.annotations.get(BEFORE))
    for scaler in Autoscalers(cluster, deployment.name, resource=deployment.resource).found:
        changes.take_over(scaler.resource, scaler.name, scaler.note)
    return changes.put_back()
