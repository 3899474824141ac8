"""The replicas of a service on Kubernetes: any object with /scale behind a Service."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from scaletest.cluster import api_calls, rights
from scaletest.cluster.api_calls import ApiCalls, Cluster
from scaletest.cluster.cadvisor import LimitPeriods, read_limit_periods
from scaletest.cluster.changes import BEFORE, Changes, refuse_changed
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.service import Service
from scaletest.load.http_call import HttpCall
from scaletest.load.service_call import IN_CLUSTER, PROXIED, reach
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.validation.measure.deployment_target import KubernetesBackend
from scaletest.validation.options import DeploymentOptions
from scaletest.validation.service.replicas import PodLook, Replicas

# Between two looks whether the pods are ready.
LOOK_S = 0.5


@dataclass(frozen=True, slots=True)
class FoundService:
    """A service whose replicas may be doubled; nothing has changed yet."""

    replicas: Replicas
    call: HttpCall
    lines: tuple[str, ...]  # what was found


def find_service(
    reference: str, options: DeploymentOptions, make_call: Callable[[str], HttpCall]
) -> FoundService:
    """Check rights and autoscalers without changes. UsageError or Unreachable if not met."""
    cluster = api_calls.connect_cluster(options.namespace, options.context)
    service = Service(cluster, reference)
    named = options.deployment
    deployment = Deployment(cluster, named) if named else service.deployment()
    if deployment is None:
        raise UsageError(
            f"which object scales the pods of service {service.name} is unknown",
            hint="name it with <deployment>, e.g. statefulset/NAME",
        )
    is_inside = IN_CLUSTER.exists()
    wanted = rights.service_rights(deployment.resource)
    if not is_inside:
        wanted += (rights.CALL_BY_PROXY,)
    rights.require(cluster, wanted, may_hold=options.pause_autoscalers)
    refuse_changed(deployment, own={"replicas"})
    scalers = Autoscalers(cluster, deployment.name, resource=deployment.resource)
    scalers.active(may_hold=options.pause_autoscalers)
    call = reach(service, make_call, is_inside=is_inside)
    lines = [
        f"service {service.name}: {call.url}",
        f"{deployment.resource.kind.lower()} {deployment.name}: {deployment.replicas()} replicas",
        *([] if is_inside else [PROXIED]),
    ]
    replicas = KubernetesReplicas(
        cluster, service, deployment, scalers, ready_s=options.ready_timeout, is_inside=is_inside
    )
    return FoundService(replicas, call, tuple(lines))


class KubernetesReplicas:
    """Pods of the object; they count when the Service sends requests to all of them."""

    def __init__(
        self,
        cluster: Cluster,
        service: Service,
        deployment: Deployment,
        scalers: Autoscalers,
        *,
        ready_s: float,
        is_inside: bool,
    ) -> None:
        self._cluster, self._service, self._deployment = cluster, service, deployment
        self._scalers, self._ready_s, self._is_inside = scalers, ready_s, is_inside
        self._api = ApiCalls(cluster)
        self._backend: KubernetesBackend | None = None  # None before anything is changed

    def scale(self, count: int) -> None:
        """Set the number, and wait until so many pods are ready and no others are left."""
        deployment = self._deployment
        if self._backend is None:
            changes = Changes(self._cluster, deployment)
            # a number of pods that a killed run left is put back by this one
            changes.take_over(
                deployment.resource, deployment.name, deployment.annotations.get(BEFORE)
            )
            self._backend = KubernetesBackend(
                deployment, self._scalers, changes, ready_s=self._ready_s
            )
        self._backend.scale(count)
        deadline = time.monotonic() + self._ready_s
        while self._backend.ready() < count:
            time.sleep(LOOK_S)
        # a pod that is ready gets requests when its address is listed, and one that ends until then
        while (listed := self._service.endpoints()[0]) != count:
            if time.monotonic() > deadline:
                raise WaitTimeout(
                    f"{count} pods are ready, and service {self._service.name} has"
                    f" {listed} addresses",
                    hint="check that its selector fits the pods of this object and no others",
                )
            time.sleep(LOOK_S)

    def addresses(self) -> dict[str, str]:
        """Return the address of each pod to which the Service sends requests."""
        return self._service.pod_urls(is_inside=self._is_inside)

    def pods(self) -> dict[str, PodLook]:
        """Return how each pod fares; its throttling where we may read the metrics of nodes."""
        states = [pod for pod in self._deployment.pods() if not pod.going]
        nodes = {pod.node for pod in states}
        limits = read_limit_periods(self._api, self._cluster.namespace, nodes)
        return {pod.name: PodLook(pod, limits.get(pod.name, LimitPeriods())) for pod in states}

    def close(self) -> None:
        """Put back the number of pods and what scales them. Does nothing the second time."""
        if self._backend is not None:
            self._backend.close()
