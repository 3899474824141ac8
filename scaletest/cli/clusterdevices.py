"""scaletest cluster devices: which devices there are, and how far a plan can grow on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options
from scaletest.cli.output import echo
from scaletest.model.errors import InvalidValue, UsageError

if TYPE_CHECKING:
    from scaletest.cluster.connection import Cluster

FITS, FITS_NOT, UNKNOWN = 0, 3, 4


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
@options.output
def devices(**given: Any) -> int:
    """List the devices, of device plugins and of dynamic resource allocation, and say how many
    workers fit.

    \b
    scaletest cluster devices
    scaletest cluster devices --resource nvidia.com/gpu=1 --cpu 1 --memory 1Gi --limit 16
    scaletest cluster devices -n scaletest --deployment scaletest-media --limit 16

    Without the right to list nodes and pods in the whole cluster capacity is unknown. Exit code
    with --limit: 0 when so many fit, 3 when not, 4 when it is unknown.
    """
    from scaletest.cluster.connection import connect
    from scaletest.model import checks

    checks.count(given["limit"], "limit")
    spec = _spec(given)
    cluster = connect(given["namespace"], given["context"])
    found = _devices(cluster)
    code = FITS
    if spec or given["deployment"]:
        plan = _plan(cluster, spec, given)
        found["plan"] = plan
        code = {True: FITS, False: FITS_NOT, None: UNKNOWN}[plan["fits"]]
    if given["output"] == "table":
        _show(found)
    else:
        options.show(found, given["output"])
    return code


def _spec(given: dict[str, Any]) -> dict[str, Any]:
    """The pod that the options describe, {} without any. UsageError, InvalidValue if invalid."""
    from scaletest.cluster.capacity import quantity

    wanted = dict(zip(("cpu", "memory"), (given["cpu"], given["memory"]), strict=True))
    for text in given["resource"]:
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
    if wanted and given["deployment"]:
        raise UsageError(
            "--deployment says what a worker needs", hint="leave out --resource, --cpu and --memory"
        )
    if given["limit"] and not wanted and not given["deployment"]:
        raise UsageError(
            "what a worker needs is unknown", hint="give --deployment NAME, or --resource NAME=N"
        )
    return {"containers": [{"resources": {"requests": wanted, "limits": wanted}}]} if wanted else {}


def _devices(cluster: Cluster) -> dict[str, Any]:
    """Devices by node, slices and classes; null where unknown, with the reason in `unknown`."""
    from scaletest.cluster import devices, discovery, headroom, rights

    unknown: list[str] = []
    nodes = headroom.read_nodes(cluster)
    found: dict[str, Any] = {
        "nodes": None,
        "slices": None,
        "device_classes": None,
        "unknown": unknown,
    }
    if isinstance(nodes, str):
        unknown.append(f"devices of the nodes: {nodes}")
    else:
        found["nodes"] = [one._asdict() for one in devices.on_nodes(nodes)]
    version = discovery.groups(cluster).get(discovery.ALLOCATION, "")
    reads: tuple[tuple[str, tuple[rights.Right, ...], Any], ...] = (
        ("slices", rights.SLICES, devices.slices),
        ("device_classes", rights.CLASSES, devices.classes),
    )
    for key, wanted, read in reads:
        lacking = rights.missing(cluster, wanted)
        if lacking:
            unknown.append(f"{key.replace('_', ' ')}: we may not {lacking[0]}")
        else:
            found[key] = [one._asdict() for one in read(cluster, version)] if version else []
    return found


def _plan(cluster: Cluster, spec: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """How many workers fit. fits: true without --limit; null when it is unknown."""
    from scaletest.cluster import capacity, headroom
    from scaletest.cluster.deployment import Deployment

    have, who = 0, "the plan"
    if given["deployment"]:
        deployment = Deployment(cluster, given["deployment"])
        spec, who = deployment.template["spec"], f"deployment {deployment.name}"
        have = sum(not one.going and bool(one.node) for one in deployment.pods())
    room = headroom.headroom(cluster, spec, have, who)
    nodes = headroom.read_nodes(cluster)
    scarce = (
        "" if isinstance(nodes, str) or room.by != "the nodes" else capacity.scarcest(spec, nodes)
    )
    limit = given["limit"]
    return {
        "requests": {
            name: f"{value.normalize():f}"
            for name, value in capacity.requests(spec).items()
            if name != "pods"
        },
        "placed": have,
        "room": room.room,
        "limited_by": scarce or room.by,
        "limit": limit or None,
        "fits": True if not limit else None if room.room is None else room.room >= limit,
        "warnings": list(room.doubts),
    }


def _show(found: dict[str, Any]) -> None:
    from scaletest.render.text import clean

    for row in found["nodes"] or ():
        state = "" if row["usable"] else ", takes no pods"
        echo(
            f"{row['node']}: {row['free']} of {row['allocatable']} {row['resource']} free{state} "
            f" {row['product']}"
        )
    if found["nodes"] == []:
        echo("no node has devices of a device plugin")
    for row in found["slices"] or ():
        where = row["node"] or "no single node"
        echo(
            f"{where}: {row['devices']} devices of driver {row['driver']}, pool {row['pool']} "
            f" {row['product']}"
        )
    for row in found["device_classes"] or ():
        also = f", also asked for as {row['resource']}" if row["resource"] else ""
        echo(f"device class {row['name']}{also}")
    for line in found["unknown"]:
        echo(f"unknown: {clean(line)}")
    if "plan" in found:
        _show_plan(found["plan"])


def _show_plan(plan: dict[str, Any]) -> None:
    from scaletest.render.text import clean

    asked = (
        ", ".join(f"{name} {_short(value)}" for name, value in plan["requests"].items())
        or "nothing"
    )
    echo(f"\na worker asks for {asked}")
    for line in plan["warnings"]:
        echo(f"warning: {clean(line)}")
    if plan["room"] is None:
        echo("how many fit is unknown; a validation goes on with --ready-timeout")
        return
    placed = f", {plan['placed']} of them placed already" if plan["placed"] else ""
    echo(f"{plan['room']} workers fit{placed}; then there is no more of {plan['limited_by']}")
    if plan["limit"]:
        echo(f"--limit {plan['limit']} {'fits' if plan['fits'] else 'does not fit'}")


def _short(value: str) -> str:
    """A number of bytes as one writes it, as in 512Mi; any other number as it is."""
    for unit, size in (("Gi", 1024**3), ("Mi", 1024**2)):
        if value.isdigit() and int(value) % size == 0:
            return f"{int(value) // size}{unit}"
    return value
