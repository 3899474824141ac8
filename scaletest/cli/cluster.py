"""scaletest cluster: what a cluster allows, which devices it has, and which workers go first."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain

import click
import cloup

from scaletest.broker.connection import connect as connect_redis
from scaletest.broker.connection import explained
from scaletest.broker.snapshot import snapshot
from scaletest.cli import options as shared
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, echo
from scaletest.cluster import autoscalers, inventory, rights
from scaletest.cluster.capacity import quantity
from scaletest.cluster.connection import connect
from scaletest.cluster.deletion import DeletionCosts, PodAnnotations, costs
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, Unreachable, UsageError
from scaletest.render.text import clean
from scaletest.system.wake import Wake

FITS, FITS_NOT, UNKNOWN = 0, 3, 4


@cloup.group("cluster")
def command() -> None:
    """Work with a Kubernetes cluster."""


@command.command("check")
@heading("Kubernetes")
@shared.namespace("Check the workers of this namespace. [default: the current one]")
@shared.context
@heading("Target")
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help="Check this Deployment. [default: all, if they may be listed]",
)
@heading("Output")
@shared.output()
def check(namespace: str, context: str, deployment: str, output: Output) -> int:
    """Check what a validation may do here, and what stands in the way.

    Also shows what the cluster has for autoscaling.

    \b
    scaletest cluster check -n scaletest

    Changes nothing. Exit code 7 when a right is missing without which nothing can be validated.
    """
    allowance = inventory.allowance(connect(namespace, context), deployment)
    output.show(allowance.to_dict(), _allowance_lines(allowance))
    if allowance.lacking:
        raise rights.refusal(allowance.lacking, allowance.namespace)
    return 0


@command.command("restore")
@heading("Kubernetes")
@shared.namespace("Look for the Deployment in this namespace. [default: the current one]")
@shared.context
@heading("Target")
@click.option(
    "--deployment",
    required=True,
    metavar="NAME",
    help="Put back this Deployment and what scales it.",
)
def restore(namespace: str, context: str, deployment: str) -> None:
    """Put back what a run that was killed left changed.

    \b
    scaletest cluster restore -n scaletest --deployment scaletest-sleep-worker

    That is the number of pods, settings of saturate --tune, and autoscalers that are held. Each of
    these objects says in an annotation what it was. Not for a run that still goes on: it puts back
    everything itself.
    """
    remedies = autoscalers.restore(connect(namespace, context), deployment)
    if not remedies:
        echo(f"deployment {deployment} and what scales it: there is nothing to put back")
    for title, remedy in remedies.items():
        echo(clean(f"{title}: {remedy or 'put back'}"))
    if any(remedies.values()):
        raise Unreachable("not everything could be put back", hint="see above")


def _allowance_lines(allowance: inventory.ClusterAllowance) -> Iterator[str]:
    yield f"Kubernetes {allowance.version}, namespace {allowance.namespace}"
    yield "\nrights"
    width = max(len(row.right) for row in allowance.rights)
    for row in allowance.rights:
        missing = "MISSING" if row.needed else "no"
        state = "yes" if row.allowed else missing
        yield f"  {state:8} {row.right:{width}}  {row.why}"
    yield "\nautoscaling and devices"
    for api in allowance.apis:
        yield f"  {api.state:9} {api.group:26} {api.why}"
    allocation = allowance.dynamic_resource_allocation
    others = {"keda.sh": allowance.keda, f"resource.k8s.io {allocation}": allocation}
    for name, is_there in others.items():
        yield f"  {'available' if is_there else 'absent':9} {name}"
    if allowance.quotas is None:
        yield "\nquotas: unknown, we may not list resourcequotas"
    for quota in allowance.quotas or ():
        yield "\nquota {quota}: {resource} {used} of {hard}".format_map(quota)
    yield from cause_lines(allowance.causes)
    for line in allowance.warnings:
        yield f"\nwarning: {clean(line)}"


def cause_lines(nodes: list[inventory.NodeRow] | None) -> Iterator[str]:
    """What the nodes show of causes."""
    if nodes is None:
        yield "\ncauses: unknown what the nodes show, we may not list pods or get pods/log"
    elif not nodes:
        yield (
            "\ncauses: unknown what the nodes show, since no worker runs; start one and look again"
        )
    for node in nodes or ():
        where = clean(f"causes: node {node.node}")
        if node.known:
            yield f"\n{where}: all can be read{' but' if node.gaps else ''}"
        else:
            yield (
                f"\n{where}: the log of {clean(node.pod)} does not say what it shows; start its"
                " pod again"
            )
        for gap in node.gaps:
            yield clean("  {missing}: {effect}; {remedy}".format_map(gap))


@command.command("devices")
@heading("Kubernetes")
@shared.namespace("Count the quotas of this namespace. [default: the current one]")
@shared.context
@heading("Pods")
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help="Plan with workers like the pods of this Deployment.",
)
@click.option(
    "--resource",
    multiple=True,
    metavar="NAME=N",
    help=("Plan with workers that ask for N of this resource each; the option may be repeated."),
)
@click.option(
    "--cpu",
    default="",
    metavar="QUANTITY",
    help="Plan with workers that ask for this much CPU, as in 500m.",
)
@click.option(
    "--memory",
    default="",
    metavar="QUANTITY",
    help="Plan with workers that ask for this much memory, as in 1Gi.",
)
@heading("Verdict")
@click.option("--limit", type=int, default=0, metavar="N", help="Say whether N workers fit.")
@heading("Output")
@shared.output()
def list_devices(
    namespace: str,
    context: str,
    deployment: str,
    resource: tuple[str, ...],
    cpu: str,
    memory: str,
    limit: int,
    output: Output,
) -> int:
    """List the devices, of device plugins and of dynamic resource allocation, and say how many
    workers fit.

    \b
    scaletest cluster devices
    scaletest cluster devices --resource nvidia.com/gpu=1 --cpu 1 --memory 1Gi \\
      --limit 16
    scaletest cluster devices -n scaletest --deployment scaletest-media --limit 16

    Without the right to list nodes and pods in the whole cluster capacity is unknown. Exit code
    with --limit: 0 when so many fit, 3 when not, 4 when it is unknown.
    """
    checks.count(limit, "limit")
    wanted = _wanted(cpu, memory, resource)
    if wanted and deployment:
        raise UsageError(
            "--deployment says what a worker needs", hint="leave out --resource, --cpu and --memory"
        )
    if limit and not wanted and not deployment:
        raise UsageError(
            "what a worker needs is unknown", hint="give --deployment NAME, or --resource NAME=N"
        )
    cluster = connect(namespace, context)
    devices = inventory.inventory(cluster)
    if not wanted and not deployment:
        output.show(devices.to_dict(), _device_lines(devices))
        return FITS
    plan = inventory.room(cluster, wanted, deployment, limit)
    lines = chain(_device_lines(devices), _room_lines(plan))
    output.show({**devices.to_dict(), "plan": asdict(plan)}, lines)
    return {True: FITS, False: FITS_NOT, None: UNKNOWN}[plan.fits]


def _wanted(cpu: str, memory: str, resources: tuple[str, ...]) -> dict[str, str]:
    """What a worker asks for, {} where the options do not say. InvalidValue for what is none."""
    wanted = {"cpu": cpu, "memory": memory}
    for text in resources:
        name, equals, value = text.partition("=")
        if not equals or "/" not in name:
            raise InvalidValue(
                f"--resource is {text!r}", hint="give NAME=N, as in nvidia.com/gpu=1"
            )
        wanted[name] = value
    wanted = {name: value for name, value in wanted.items() if value}
    for name, value in wanted.items():
        if quantity(value) <= 0:
            raise InvalidValue(
                f"{name} is {value!r}",
                hint="give a Kubernetes quantity above 0, as in 1, 500m or 1Gi",
            )
    return wanted


def _device_lines(devices: inventory.Inventory) -> Iterator[str]:
    for node in devices.nodes or ():
        state = "" if node.usable else ", takes no pods"
        yield (
            f"{node.node}: {node.free} of {node.allocatable} {node.resource} free{state} "
            f" {node.product}"
        )
    if devices.nodes == []:
        yield "no node has devices of a device plugin"
    for pool in devices.slices or ():
        yield (
            f"{pool.node or 'no single node'}: {pool.devices} devices of driver {pool.driver},"
            f" pool {pool.pool}  {pool.product}"
        )
    for device_class in devices.classes or ():
        also = f", also asked for as {device_class.resource}" if device_class.resource else ""
        yield f"device class {device_class.name}{also}"
    yield from (f"unknown: {clean(line)}" for line in devices.unknown)


def _room_lines(plan: inventory.Room) -> Iterator[str]:
    amounts = [f"{name} {_short(amount)}" for name, amount in plan.requests.items()]
    yield f"\na worker asks for {', '.join(amounts) or 'nothing'}"
    yield from (f"warning: {clean(line)}" for line in plan.warnings)
    if plan.room is None:
        yield "how many fit is unknown; a validation goes on with --ready-timeout"
        return
    placed = f", {plan.placed} of them placed already" if plan.placed else ""
    yield f"{plan.room} workers fit{placed}; then there is no more of {plan.limited_by}"
    if plan.limit:
        yield f"--limit {plan.limit} {'fits' if plan.fits else 'does not fit'}"


def _short(value: str) -> str:
    """A number of bytes as one writes it, as in 512Mi; any other number as it is."""
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2)):
        if value.isdigit() and int(value) % size == 0:
            return f"{int(value) // size}{unit}"
    return value


@command.command("deletion-cost")
@heading("Target")
@shared.redis_url()
@heading("Kubernetes")
@shared.namespace("Look for the workers' pods in this namespace. [default: the current one]")
@shared.context
@heading("Run")
@shared.duration("--interval", default="2s", help="Look at the workers this often.")
@click.option(
    "--rate",
    type=shared.RATE,
    default="10/s",
    show_default=True,
    metavar="RATE",
    help="Write to pods at most at this rate.",
)
@click.option("--once", is_flag=True, help="Write once, for every worker, and exit.")
def deletion_cost(
    redis_url: str, namespace: str, context: str, interval: float, rate: float, once: bool
) -> None:
    """Let a Deployment that shrinks take idle workers first.

    \b
    scaletest cluster deletion-cost -n scaletest
    scaletest cluster deletion-cost -n scaletest --once

    Keeps controller.kubernetes.io/pod-deletion-cost of every worker's pod: 0 when idle, and the
    higher the longer its request runs. Workers must know their pod's name: in a pod that is the
    host name, else worker --pod-env. Needs the right to patch pods.
    """
    checks.seconds(interval, "interval", maximum=3600.0, zero=False)
    checks.number(rate, "rate", maximum=1e6)
    redis = connect_redis(redis_url)
    keeper = DeletionCosts(
        PodAnnotations(namespace, context).annotate, float("inf") if once else rate
    )
    stopped = Wake()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    trouble = ""
    while not stopped.is_set():
        try:
            with explained(redis_url):
                queues = snapshot(redis).queues
            written = keeper.update(costs(chain.from_iterable(queue.workers for queue in queues)))
            trouble = ""
        except Unreachable as error:
            if once or not error.message.startswith("Redis"):
                raise
            if not trouble:
                echo(f"warning: {error.message}; trying again", err=True)
            trouble = error.message
        if once:
            echo(f"{written} pods written")
            if keeper.left:
                raise Unreachable(
                    f"{keeper.left} pods could not be written", hint="try again later"
                )
            return
        stopped.wait(interval)
