"""A Deployment that may be validated: what is checked before, its pods, and who loads its queue."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass

from scaletest.broker import Client, connect
from scaletest.broker.samples import SampleReader
from scaletest.cluster import api_calls, rights
from scaletest.cluster.api_calls import Busy, Cluster
from scaletest.cluster.capacity import Supply
from scaletest.cluster.changes import BEFORE, Changes, Patch, refuse_changed
from scaletest.cluster.client_access import Direct, ServiceProxy
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.hold_autoscalers import Autoscalers
from scaletest.cluster.resources import DEPLOYMENTS
from scaletest.load import ClosedLoop
from scaletest.model import checks
from scaletest.model.errors import UsageError, WaitTimeout
from scaletest.validation.measure.interfaces import Backend, Load
from scaletest.validation.measure.local import REDIS_PATIENCE_S
from scaletest.validation.measure.remote import RemoteLoad, RemoteSamples
from scaletest.validation.measure.runner import ValidationRunner
from scaletest.validation.measure.samples import ReadSamples
from scaletest.validation.options import DeploymentOptions
from scaletest.validation.plan import Plan

logger = logging.getLogger("scaletest.validation")
LOOK_S = 0.5
PATIENCE_S = 60.0
QUEUE_ANNOTATION = "scaletest/queue"
CLIENT_PORT = "9996"
URLS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class DeploymentTarget:
    """A Deployment that may be validated, and who loads its queue."""

    cluster: Cluster
    deployment: Deployment
    options: DeploymentOptions
    scalers: Autoscalers  # who else scales it
    redis_url: str  # where requests are submitted from here
    queue: str
    warnings: tuple[str, ...]

    @property
    def patience_s(self) -> float:
        """How long a run waits for pods; the backend ends the wait before, with the reason."""
        return self.options.ready_timeout + 2 * PATIENCE_S

    def set_up(
        self, plan: Plan, runner: ValidationRunner, stack: ExitStack
    ) -> tuple[Backend, Load, ReadSamples]:
        """Return backend, load, and what reads samples of the nodes; nothing has changed yet.

        Taken down with the stack: first the load, then the pods.
        """
        changes = Changes(self.cluster, self.deployment)
        changes.take_over(
            DEPLOYMENTS, self.deployment.name, self.deployment.annotations.get(BEFORE)
        )
        backend = KubernetesBackend(
            self.deployment, self.scalers, changes, ready_s=self.options.ready_timeout
        )
        stack.callback(backend.close)
        if not self.options.client:
            redis = stack.enter_context(closing(connect(self.redis_url)))
            client = Client(connect(self.redis_url), patience_s=REDIS_PATIENCE_S)
            loop = ClosedLoop(
                stack.enter_context(client),
                self.queue,
                runner.record,
                arguments=(repr(plan.seconds),),
                time_limit_s=plan.time_limit_s,
            )
            stack.enter_context(closing(loop))
            return backend, loop, SampleReader(redis, self.queue).read
        load = RemoteLoad(_connect_client(self.cluster, self.options.client), runner.record)
        load.check_limit(plan.limit)
        stack.callback(load.close)
        # what the client had in flight before ends first
        if not load.wait_idle(1.0):
            load.set_parallel(0)
            if not load.wait_idle(60.0):
                raise WaitTimeout(
                    "the client's requests did not end within 60 s",
                    hint="check that there are workers",
                )
        # by a connection of its own, since a thread of its own reads them
        samples = RemoteSamples(_connect_client(self.cluster, self.options.client))
        return backend, load, samples.read


def find_target(options: DeploymentOptions, redis_url: str, limit: int) -> DeploymentTarget:
    """Return the Deployment, checked without changes: rights, autoscalers, its queue, and room.

    UsageError or Unreachable for what is not met.
    """
    checks.seconds(options.ready_timeout, "ready timeout", maximum=86400.0, zero=False)
    client, may_hold = options.client, options.pause_autoscalers
    if not client and not redis_url:
        raise UsageError(
            "nothing would load the queue",
            hint="give <client> svc/NAME, or <redis_url> URL to submit from here",
        )
    # the rights that the run needs
    cluster = api_calls.connect_cluster(options.namespace, options.context)
    wanted = rights.NEEDED
    if client and not client.startswith(URLS):
        wanted += (rights.PROXY,)
    rights.require(cluster, wanted, may_hold=may_hold)
    # the Deployment, and what else scales it
    deployment = Deployment(cluster, options.deployment)
    # a number of pods that a killed run left is put back by this one, which changes nothing else
    refuse_changed(deployment, own={"replicas"})
    scalers = Autoscalers(cluster, deployment.name)
    scalers.active(may_hold=may_hold)
    return DeploymentTarget(
        cluster=cluster,
        deployment=deployment,
        options=options,
        scalers=scalers,
        redis_url=redis_url,
        queue=_find_queue(cluster, deployment, client),
        warnings=_check_room(cluster, deployment, limit),
    )


def _find_queue(cluster: Cluster, deployment: Deployment, client: str) -> str:
    """Return the queue of the Deployment by its annotation, or by its client."""
    annotated = deployment.annotations.get(QUEUE_ANNOTATION, "")
    if not client:
        if not annotated:
            raise UsageError(
                f"which queue {deployment.name} serves is unknown",
                hint=(
                    f"annotate it: kubectl annotate deployment {deployment.name}"
                    f" {QUEUE_ANNOTATION}=NAME"
                ),
            )
        return annotated
    queue = RemoteLoad(_connect_client(cluster, client), lambda record: None).queue
    if annotated and annotated != queue:
        raise UsageError(
            f"{client} loads queue {queue}, and {deployment.name} serves {annotated}",
            hint="name the queue's client",
        )
    return queue


def _check_room(cluster: Cluster, deployment: Deployment, limit: int) -> tuple[str, ...]:
    """Return warnings about unknown capacity; UsageError when the pods do not fit.

    Nodes and quotas are what limits them.
    """
    spec = deployment.template["spec"]
    supply = Supply.read(cluster)
    headroom = supply.headroom(spec, deployment.placed())
    room = headroom.room
    if room is None or room >= limit:
        return tuple(filter(None, [*supply.unknown, headroom.doubt]))
    hint = "look at requests, device resources, node selector and taints: scaletest cluster check"
    if room:
        hint = f"give <limit> {room}, or add nodes or devices"
    raise UsageError(
        f"{headroom.limited_by} can take {room} pods of {deployment.name}, fewer than <limit>"
        f" {limit}",
        hint=hint,
    )


def _connect_client(cluster: Cluster, client: str) -> Direct | ServiceProxy:
    """Return access to a client by HTTP; UsageError for what names none."""
    token = os.environ.get("SCALETEST_CLIENT_TOKEN", "")
    if client.startswith(URLS):
        return Direct(client, token)
    kind, slash, name = client.partition("/")
    if not slash or kind not in ("svc", "service", "services") or not name:
        raise UsageError(f"<client> is {client!r}", hint="give svc/NAME, svc/NAME:PORT, or a URL")
    name, _, port = name.partition(":")
    return ServiceProxy(cluster, name, port or CLIENT_PORT, token)


class KubernetesBackend:
    """The pods of a Deployment as workers; their number is always put back at the end.

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
        self._wanted = self._ready = 0  # pods
        # when pods were requested, when they were counted last, and when the API server answered
        self._asked_at = self._looked_at = self._answered_at = clock()

    def scale(self, workers: int) -> None:
        """Request this many pods."""
        self._wanted = workers
        self._scalers.scale(Patch({"replicas": workers}), self._changes)
        self._asked_at = self._answered_at = self._clock()
        self._looked_at = self._asked_at - LOOK_S
        self._ready = 0

    def ready(self) -> int:
        """Return how many pods are ready; 0 while there are more pods than requested.

        WaitTimeout, with the reason, when they take too long.
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
