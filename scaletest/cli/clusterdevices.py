"""scaletest cluster devices: which devices there are, and how far a plan can grow on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click

from scaletest.cli import options as shared
from scaletest.cli.output import echo
from scaletest.cluster import capacity, devices, discovery, headroom, rights
from scaletest.cluster.capacity import quantity
from scaletest.cluster.connection import Cluster, connect
from scaletest.cluster.deployment import Deployment
from scaletest.model import checks
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.render.text import clean

FITS, FITS_NOT, UNKNOWN = 0, 3, 4


@dataclass(frozen=True, slots=True)
class DevicesOptions:
    """Where devices are looked for, and the pods that shall fit."""

    namespace: str
    context: str
    deployment: str
    resource: tuple[str, ...]
    cpu: str
    memory: str
    limit: int
    output: str


@dataclass(frozen=True, slots=True)
class _Inventory:
    """Devices by node, slices and classes; None where it is unknown, with the reason."""

    nodes: list[devices.Devices] | None
    slices: list[devices.Slice] | None
    classes: list[devices.DeviceClass] | None
    unknown: list[str]

    def to_dict(self) -> dict[str, object]:
        """Plain values."""
        return {
            "nodes": _plain(self.nodes),
            "slices": _plain(self.slices),
            "device_classes": _plain(self.classes),
            "unknown": self.unknown,
        }


@dataclass(frozen=True, slots=True)
class _Plan:
    """How many workers fit. fits: true without a limit; None when it is unknown."""

    requests: dict[str, str]
    placed: int
    room: int | None
    limited_by: str
    limit: int | None
    fits: bool | None
    warnings: list[str]


@click.command("devices")
@click.option(
    "-n",
    "--namespace",
    default="",
    metavar="NAME",
    help="Namespace whose quotas count. [default: the current one]",
)
@click.option(
    "--context",
    default="",
    metavar="NAME",
    help="Context of the kubeconfig. [default: the pod's cluster, or the current context]",
)
@click.option("--deployment", default="", metavar="NAME", help="Plan with this Deployment's pods.")
@click.option(
    "--resource",
    multiple=True,
    metavar="NAME=N",
    help="Plan with workers that have N of this resource each.",
)
@click.option(
    "--cpu", default="", metavar="QUANTITY", help="CPU request of each worker, as in 500m."
)
@click.option(
    "--memory", default="", metavar="QUANTITY", help="Memory request of each worker, as in 1Gi."
)
@click.option("--limit", type=int, default=0, metavar="N", help="Say whether N workers fit.")
@shared.output
@shared.typed(DevicesOptions)
def list_devices(options: DevicesOptions) -> int:
    """List the devices, of device plugins and of dynamic resource allocation, and say how many
    workers fit.

    \b
    scaletest cluster devices
    scaletest cluster devices --resource nvidia.com/gpu=1 --cpu 1 --memory 1Gi --limit 16
    scaletest cluster devices -n scaletest --deployment scaletest-media --limit 16

    Without the right to list nodes and pods in the whole cluster capacity is unknown. Exit code
    with --limit: 0 when so many fit, 3 when not, 4 when it is unknown.
    """
    checks.count(options.limit, "limit")
    spec = _spec(options)
    cluster = connect(options.namespace, options.context)
    inventory = _devices(cluster)
    plan = _plan(cluster, spec, options) if spec or options.deployment else None
    if options.output == "table":
        _show(inventory)
        if plan:
            _show_plan(plan)
    else:
        planned = {"plan": asdict(plan)} if plan else {}
        shared.show({**inventory.to_dict(), **planned}, options.output)
    if plan is None or plan.fits:
        return FITS
    return UNKNOWN if plan.fits is None else FITS_NOT


def _spec(options: DevicesOptions) -> dict[str, object]:
    """The pod that the options describe, {} without any. UsageError, InvalidValue if invalid."""
    wanted = {"cpu": options.cpu, "memory": options.memory}
    for text in options.resource:
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
    if wanted and options.deployment:
        raise UsageError(
            "--deployment says what a worker needs", hint="leave out --resource, --cpu and --memory"
        )
    if options.limit and not wanted and not options.deployment:
        raise UsageError(
            "what a worker needs is unknown", hint="give --deployment NAME, or --resource NAME=N"
        )
    return {"containers": [{"resources": {"requests": wanted, "limits": wanted}}]} if wanted else {}


def _devices(cluster: Cluster) -> _Inventory:
    nodes, slices, classes = headroom.read_nodes(cluster), None, None
    unknown: list[str] = []
    if isinstance(nodes, str):
        unknown.append(f"devices of the nodes: {nodes}")
    version = discovery.groups(cluster).get(discovery.ALLOCATION, "")
    if lacking := rights.missing(cluster, rights.SLICES):
        unknown.append(f"slices: we may not {lacking[0]}")
    else:
        slices = devices.slices(cluster, version) if version else []
    if lacking := rights.missing(cluster, rights.CLASSES):
        unknown.append(f"device classes: we may not {lacking[0]}")
    else:
        classes = devices.classes(cluster, version) if version else []
    on_nodes = None if isinstance(nodes, str) else devices.on_nodes(nodes)
    return _Inventory(on_nodes, slices, classes, unknown)


def _plain(
    rows: Sequence[devices.Devices | devices.Slice | devices.DeviceClass] | None,
) -> list[dict[str, object]] | None:
    if rows is None:
        return None
    return [row._asdict() for row in rows]


def _plan(cluster: Cluster, spec: dict[str, object], options: DevicesOptions) -> _Plan:
    placed, subject = 0, "the plan"
    if options.deployment:
        deployment = Deployment(cluster, options.deployment)
        spec, subject = deployment.template["spec"], f"deployment {deployment.name}"
        placed = sum(not pod.going and bool(pod.node) for pod in deployment.pods())
    room = headroom.headroom(cluster, spec, placed, subject)
    nodes = headroom.read_nodes(cluster)
    limited_by = room.by
    if room.by == "the nodes" and not isinstance(nodes, str):
        limited_by = capacity.scarcest(spec, nodes) or room.by
    fits: bool | None = True
    if options.limit:
        fits = None if room.room is None else room.room >= options.limit
    requests = {
        name: f"{amount.normalize():f}"
        for name, amount in capacity.requests(spec).items()
        if name != "pods"
    }
    return _Plan(
        requests, placed, room.room, limited_by, options.limit or None, fits, list(room.doubts)
    )


def _show(inventory: _Inventory) -> None:
    for node in inventory.nodes or ():
        state = "" if node.usable else ", takes no pods"
        echo(
            f"{node.node}: {node.free} of {node.allocatable} {node.resource} free{state} "
            f" {node.product}"
        )
    if inventory.nodes == []:
        echo("no node has devices of a device plugin")
    for pool in inventory.slices or ():
        where = pool.node or "no single node"
        echo(
            f"{where}: {pool.devices} devices of driver {pool.driver}, pool {pool.pool} "
            f" {pool.product}"
        )
    for device_class in inventory.classes or ():
        also = f", also asked for as {device_class.resource}" if device_class.resource else ""
        echo(f"device class {device_class.name}{also}")
    for line in inventory.unknown:
        echo(f"unknown: {clean(line)}")


def _show_plan(plan: _Plan) -> None:
    amounts = [f"{name} {_short(amount)}" for name, amount in plan.requests.items()]
    echo(f"\na worker asks for {', '.join(amounts) or 'nothing'}")
    for line in plan.warnings:
        echo(f"warning: {clean(line)}")
    if plan.room is None:
        echo("how many fit is unknown; a validation goes on with --ready-timeout")
        return
    placed = f", {plan.placed} of them placed already" if plan.placed else ""
    echo(f"{plan.room} workers fit{placed}; then there is no more of {plan.limited_by}")
    if plan.limit:
        echo(f"--limit {plan.limit} {'fits' if plan.fits else 'does not fit'}")


def _short(value: str) -> str:
    """A number of bytes as one writes it, as in 512Mi; any other number as it is."""
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2)):
        if value.isdigit() and int(value) % size == 0:
            return f"{int(value) // size}{unit}"
    return value
