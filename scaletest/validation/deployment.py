"""A Deployment as what is validated: checks before a run on Kubernetes, and its parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from scaletest.broker import Client, connect
from scaletest.broker.samples import SampleReader
from scaletest.cluster import connection, discovery, rights
from scaletest.cluster.connection import Busy, Cluster
from scaletest.cluster.deployment import Deployment
from scaletest.cluster.headroom import headroom
from scaletest.cluster.proxy import Direct, ServiceProxy
from scaletest.load import ClosedLoop
from scaletest.model import Plan, Record, checks
from scaletest.model.errors import ScaletestError, UsageError, WaitTimeout
from scaletest.validation.interfaces import Backend, Load
from scaletest.validation.kubernetes import PATIENCE_S, KubernetesBackend
from scaletest.validation.remote import RemoteLoad, RemoteSamples
from scaletest.validation.runner import ValidationRunner
from scaletest.validation.samples import ReadSamples
from scaletest.validation.site import REDIS_PATIENCE_S

QUEUE_ANNOTATION = "scaletest/queue"
CLIENT_PORT = "9996"
URLS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class DeploymentTarget:
    """A Deployment that may be validated, and who loads its queue.

    client: svc/NAME[:PORT] or a URL; "" submits from here to `redis_url`. ready_s: so long may the
    pods of a step take to be ready. pause: ScaledObjects that are paused for the run.
    """

    cluster: Cluster
    deployment: Deployment
    client: str
    redis_url: str
    ready_s: float
    pause: tuple[str, ...]
    queue: str
    warnings: tuple[str, ...]

    @property
    def patience_s(self) -> float:
        """When pods are not ready after so long, not even the backend knows why."""

        return self.ready_s + 2 * PATIENCE_S

    def set_up(
        self, plan: Plan, runner: ValidationRunner, stack: ExitStack
    ) -> tuple[Backend, Load, ReadSamples]:
        """Backend, load, and what reads samples of the nodes; nothing has changed yet.

        Taken down with the stack: first the load, then the pods.
        """

        backend = KubernetesBackend(self.deployment, ready_s=self.ready_s, pause=self.pause)
        stack.callback(backend.close)
        if not self.client:
            return backend, *self._own_load(plan, runner, stack)
        load = _remote(self.cluster, self.client, runner.record)
        load.check_limit(plan.limit)
        stack.callback(load.close)
        if not load.wait_idle(1.0):
            load.set_parallel(0)
            if not load.wait_idle(60.0):
                raise WaitTimeout(
                    "the client's requests did not end within 60 s",
                    hint="look whether there are workers",
                )
        return backend, load, RemoteSamples(_http(self.cluster, self.client)).read

    def _own_load(
        self, plan: Plan, runner: ValidationRunner, stack: ExitStack
    ) -> tuple[Load, ReadSamples]:

        redis = connect(self.redis_url)
        stack.callback(redis.close)
        client = stack.enter_context(Client(connect(self.redis_url), patience_s=REDIS_PATIENCE_S))
        load = ClosedLoop(
            client,
            self.queue,
            runner.record,
            arguments=(repr(plan.seconds),),
            time_limit_s=plan.time_limit_s,
        )
        stack.callback(load.close)
        return load, SampleReader(redis, self.queue).read


def find_target(
    name: str,
    *,
    namespace: str,
    context: str,
    client: str,
    redis_url: str,
    ready_s: float,
    may_pause: bool,
    limit: int,
) -> DeploymentTarget:
    """Check rights, autoscalers and room without changes. UsageError, Unreachable if not met."""

    checks.seconds(ready_s, "ready timeout", maximum=86400.0, zero=False)
    if not client and not redis_url:
        raise UsageError(
            "nobody would load the queue",
            hint="give --client svc/NAME, or --redis-url URL to submit from here",
        )
    cluster = connection.connect(namespace, context)
    keda = discovery.KEDA in discovery.groups(cluster)
    _check_rights(cluster, client, may_pause, keda)
    deployment = Deployment(cluster, name, keda=keda)
    pause = _autoscalers(deployment, may_pause)
    queue = _queue(cluster, deployment, client)
    doubts = _room(cluster, deployment, limit)
    return DeploymentTarget(cluster, deployment, client, redis_url, ready_s, pause, queue, doubts)


def _check_rights(cluster: Cluster, client: str, may_pause: bool, keda: bool) -> None:

    wanted = rights.NEEDED
    if client and not client.startswith(URLS):
        wanted += (rights.PROXY,)
    if keda:
        wanted += (rights.KEDA,)
        if may_pause:
            wanted += (rights.PAUSE,)
    lacking = rights.missing(cluster, wanted)
    if lacking:
        raise rights.refusal(lacking, cluster.namespace)


def _autoscalers(deployment: Deployment, may_pause: bool) -> tuple[str, ...]:
    """ScaledObjects to pause. Two who scale one Deployment would measure each other."""

    try:
        scalers = deployment.scalers()
    except Busy:
        raise
    except ScaletestError as error:
        raise UsageError(
            f"whether something scales the Deployment is unknown: {error.message}", hint=error.hint
        ) from error
    running = [scaler for scaler in scalers if scaler.kind == "ScaledObject" and not scaler.paused]
    hpas = [scaler for scaler in scalers if scaler.kind != "ScaledObject" and not scaler.owner]
    if hpas:
        raise UsageError(
            f"HorizontalPodAutoscaler {hpas[0].name} scales {deployment.name}",
            hint="an HPA cannot be paused: delete it, or validate a Deployment without one",
        )
    if running and not may_pause:
        raise UsageError(
            f"ScaledObject {running[0].name} scales {deployment.name}",
            hint="add --pause-autoscalers: it is paused for the run, and goes on afterwards",
        )
    return tuple(scaler.name for scaler in running)


def _queue(cluster: Cluster, deployment: Deployment, client: str) -> str:
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
    queue = _remote(cluster, client, lambda record: None).queue
    if annotated and annotated != queue:
        raise UsageError(
            f"{client} loads queue {queue}, and {deployment.name} serves {annotated}",
            hint="name the queue's client",
        )
    return queue


def _room(cluster: Cluster, deployment: Deployment, limit: int) -> tuple[str, ...]:
    """Warnings about unknown capacity. UsageError when nodes or quotas cannot take the pods."""

    placed = sum(not pod.going and bool(pod.node) for pod in deployment.pods())
    room = headroom(cluster, deployment.template["spec"], placed, f"deployment {deployment.name}")
    if room.room is None or room.room >= limit:
        return room.doubts
    hint = "look at requests, device resources, node selector and taints: scaletest cluster devices"
    if room.room:
        hint = f"give --limit {room.room}, or add nodes or devices"
    raise UsageError(
        f"{room.by} can take {room.room} pods of {deployment.name}, fewer than --limit {limit}",
        hint=hint,
    )


def _remote(cluster: Cluster, client: str, record: Callable[[Record], None]) -> RemoteLoad:

    return RemoteLoad(_http(cluster, client), record)


def _http(cluster: Cluster, client: str) -> Direct | ServiceProxy:
    """The way to a client's HTTP. UsageError for what names none."""

    token = os.environ.get("SCALETEST_CLIENT_TOKEN", "")
    if client.startswith(URLS):
        return Direct(client, token)
    kind, slash, name = client.partition("/")
    if not slash or kind not in ("svc", "service", "services") or not name:
        raise UsageError(f"--client is {client!r}", hint="give svc/NAME, svc/NAME:PORT, or a URL")
    name, _, port = name.partition(":")
    return ServiceProxy(cluster, name, port or CLIENT_PORT, token)
