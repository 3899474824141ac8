"""scaletest validate --deployment: checks before a run on Kubernetes, and its parts."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scaletest.model.errors import Unreachable, UsageError, WaitTimeout

if TYPE_CHECKING:
    from scaletest.cluster.connection import Cluster
    from scaletest.cluster.deployment import Deployment
    from scaletest.cluster.proxy import Direct, ServiceProxy
    from scaletest.cluster.rights import Right
    from scaletest.model import Plan
    from scaletest.validation.interfaces import Backend, Load
    from scaletest.validation.runner import ValidationRunner
    from scaletest.validation.samples import ReadSamples

F = TypeVar("F", bound=Callable[..., Any])

# They say where a run takes place, which its plan does not hold: a resumed run needs them again.
NAMES = ("deployment", "namespace", "context", "client", "ready_timeout", "pause_autoscalers")
QUEUE_ANNOTATION = "scaletest/queue"
CLIENT_PORT = "9996"
URLS = ("http://", "https://")


def options(function: F) -> F:
    """What says where on Kubernetes a run takes place."""
    for option in (
        click.option(
            "--pause-autoscalers",
            is_flag=True,
            help="Pause KEDA on the Deployment during the run, instead of refusing to run.",
        ),
        click.option(
            "--ready-timeout",
            type=float,
            default=120.0,
            show_default=True,
            metavar="S",
            help="Most seconds until the pods of a step are ready.",
        ),
        click.option(
            "--client",
            default="",
            metavar="svc/NAME[:PORT]|URL",
            help=(
                "Steer this scaletest client, a Service through the API server's proxy, or a URL. "
                "[default: submit from here, with --redis-url]"
            ),
        ),
        click.option(
            "--context",
            default="",
            metavar="NAME",
            help="Context of the kubeconfig. [default: the pod's cluster, or the current context]",
        ),
        click.option(
            "-n",
            "--namespace",
            default="",
            metavar="NAME",
            help="Namespace of Deployment and client. [default: the current one]",
        ),
        click.option(
            "--deployment",
            default="",
            metavar="NAME",
            help="Scale this Deployment of workers on Kubernetes.",
        ),
    ):
        function = option(function)
    return function


def refuse_local(plan: Plan) -> None:
    """UsageError for what only local workers can do."""
    if plan.per_device:
        raise UsageError(
            "--per-device is for local workers: the pods of a Deployment share devices as its"
            " template says",
            hint=(
                "set extraArguments: [--per-device, K] in the queue's values, validate, and compare"
                " the runs for every K with: scaletest compare"
            ),
        )
    if plan.background or plan.device_glob or plan.preset or plan.command:
        raise UsageError(
            "a command, --device-glob and background queues are for local workers",
            hint=(
                "the Deployment says what its workers run: set it there, in the values of the chart"
            ),
        )


@dataclass(frozen=True, slots=True)
class DeploymentTarget:
    """A Deployment that may be validated, and who loads its queue."""

    cluster: Cluster
    deployment: Deployment
    given: dict[str, Any]
    pause: tuple[str, ...]
    queue: str
    warnings: tuple[str, ...]

    @property
    def patience_s(self) -> float:
        """When pods are not ready after so long, not even the backend knows why."""
        from scaletest.validation.kubernetes import PATIENCE_S

        return float(self.given["ready_timeout"]) + 2 * PATIENCE_S

    def planned(self, plan: Plan) -> Plan:
        """The plan on the Deployment's queue. UsageError for what only local workers can do."""
        refuse_local(plan)
        return replace(plan, queue=self.queue)

    def set_up(
        self, plan: Plan, runner: ValidationRunner, stack: ExitStack
    ) -> tuple[Backend, Load, ReadSamples]:
        """Backend, load, and what reads samples of the nodes; nothing has changed yet.

        Taken down with the stack: first the load, then the pods.
        """
        from scaletest.validation.kubernetes import KubernetesBackend
        from scaletest.validation.remote import RemoteSamples

        backend = KubernetesBackend(
            self.deployment, ready_s=self.given["ready_timeout"], pause=self.pause
        )
        stack.callback(backend.close)
        if not self.given["client"]:
            return backend, *self._own_load(plan, runner, stack)
        load = _remote(self.cluster, self.given["client"], runner.record)
        load.check_limit(plan.limit)
        stack.callback(load.close)
        if not load.wait_idle(1.0):
            load.set_parallel(0)
            if not load.wait_idle(60.0):
                raise WaitTimeout(
                    "the client's requests did not end within 60 s",
                    hint="look whether there are workers",
                )
        return backend, load, RemoteSamples(_http(self.cluster, self.given["client"])).read

    def _own_load(
        self, plan: Plan, runner: ValidationRunner, stack: ExitStack
    ) -> tuple[Load, ReadSamples]:
        from scaletest.broker import Client, connect
        from scaletest.broker.samples import SampleReader
        from scaletest.cli.site import REDIS_PATIENCE_S
        from scaletest.load import ClosedLoop

        redis = connect(self.given["redis_url"])
        stack.callback(redis.close)
        client = stack.enter_context(
            Client(connect(self.given["redis_url"]), patience_s=REDIS_PATIENCE_S)
        )
        load = ClosedLoop(
            client,
            self.queue,
            runner.record,
            arguments=(repr(plan.seconds),),
            time_limit_s=plan.time_limit_s,
        )
        stack.callback(load.close)
        return load, SampleReader(redis, self.queue).read


def target(given: dict[str, Any], limit: int) -> DeploymentTarget:
    """Check rights, autoscalers and room without changes. UsageError, Unreachable if not met."""
    from scaletest.cluster import discovery
    from scaletest.cluster.connection import connect
    from scaletest.cluster.deployment import Deployment
    from scaletest.model import checks

    checks.seconds(given["ready_timeout"], "ready timeout", maximum=86400.0, zero=False)
    if given["local"]:
        raise UsageError("--local and --deployment exclude each other", hint="give one of them")
    if not given["client"] and not given["redis_url"]:
        raise UsageError(
            "nobody would load the queue",
            hint="give --client svc/NAME, or --redis-url URL to submit from here",
        )
    cluster = connect(given["namespace"], given["context"])
    keda = discovery.KEDA in discovery.groups(cluster)
    _check_rights(cluster, given, keda)
    deployment = Deployment(cluster, given["deployment"], keda=keda)
    pause = _autoscalers(deployment, given["pause_autoscalers"])
    queue = _queue(cluster, deployment, given)
    return DeploymentTarget(
        cluster, deployment, given, pause, queue, _room(cluster, deployment, limit)
    )


def _check_rights(cluster: Cluster, given: dict[str, Any], keda: bool) -> None:
    from scaletest.cluster import rights

    wanted = rights.NEEDED
    if given["client"] and not given["client"].startswith(URLS):
        wanted += (rights.PROXY,)
    if keda:
        wanted += (rights.KEDA,)
        if given["pause_autoscalers"]:
            wanted += (rights.PAUSE,)
    lacking = rights.missing(cluster, wanted)
    if lacking:
        raise forbidden(lacking, cluster.namespace)


def forbidden(lacking: list[Right], namespace: str) -> Unreachable:
    """The error of who may not do what must be done."""
    return Unreachable(
        f"we may not {', '.join(map(str, lacking))} in namespace {namespace}",
        hint=(
            "bind the Role of the chart, or of docs/how-to/kubernetes.md, to this user or service"
            " account"
        ),
    )


def _autoscalers(deployment: Deployment, may_pause: bool) -> tuple[str, ...]:
    """ScaledObjects to pause. Two who scale one Deployment would measure each other."""
    from scaletest.cluster.connection import Busy
    from scaletest.model.errors import ScaletestError

    try:
        found = deployment.scalers()
    except Busy:
        raise
    except ScaletestError as error:
        raise UsageError(
            f"whether something scales the Deployment is unknown: {error.message}", hint=error.hint
        ) from error
    running = [one for one in found if one.kind == "ScaledObject" and not one.paused]
    hpas = [one for one in found if one.kind != "ScaledObject" and not one.owner]
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
    return tuple(one.name for one in running)


def _queue(cluster: Cluster, deployment: Deployment, given: dict[str, Any]) -> str:
    said = deployment.annotations.get(QUEUE_ANNOTATION, "")
    if not given["client"]:
        if not said:
            raise UsageError(
                f"which queue {deployment.name} serves is unknown",
                hint=(
                    f"annotate it: kubectl annotate deployment {deployment.name}"
                    f" {QUEUE_ANNOTATION}=NAME"
                ),
            )
        return said
    queue: str = _remote(cluster, given["client"], lambda record: None).queue
    if said and said != queue:
        raise UsageError(
            f"{given['client']} loads queue {queue}, and {deployment.name} serves {said}",
            hint="name the queue's client",
        )
    return queue


def _room(cluster: Cluster, deployment: Deployment, limit: int) -> tuple[str, ...]:
    """Warnings about unknown capacity. UsageError when nodes or quotas cannot take the pods."""
    from scaletest.cluster.headroom import headroom

    have = sum(not one.going and bool(one.node) for one in deployment.pods())
    found = headroom(cluster, deployment.template["spec"], have, f"deployment {deployment.name}")
    if found.room is not None and found.room < limit:
        raise UsageError(
            f"{found.by} can take {found.room} pods of {deployment.name}, fewer than --limit"
            f" {limit}",
            hint=(
                f"give --limit {found.room}, or add nodes or devices"
                if found.room
                else (
                    "look at requests, device resources, node selector and taints: scaletest"
                    " cluster devices"
                )
            ),
        )
    return found.doubts


def _remote(cluster: Cluster, client: str, record: Callable[[Any], None]) -> Any:
    from scaletest.validation.remote import RemoteLoad

    return RemoteLoad(_http(cluster, client), record)


def _http(cluster: Cluster, client: str) -> Direct | ServiceProxy:
    """The way to a client's HTTP. UsageError for what names none."""
    from scaletest.cluster.proxy import Direct, ServiceProxy

    token = os.environ.get("SCALETEST_CLIENT_TOKEN", "")
    if client.startswith(URLS):
        return Direct(client, token)
    kind, slash, name = client.partition("/")
    if not slash or kind not in ("svc", "service", "services") or not name:
        raise UsageError(f"--client is {client!r}", hint="give svc/NAME, svc/NAME:PORT, or a URL")
    name, _, port = name.partition(":")
    return ServiceProxy(cluster, name, port or CLIENT_PORT, token)
