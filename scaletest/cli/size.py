"""scaletest size: how many pods and nodes a load needs, by formula and placed pod by pod."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options, stored
from scaletest.cli.durations import DURATION
from scaletest.cli.output import echo
from scaletest.model.digits import short
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.model.saturation import KIND as SATURATION

if TYPE_CHECKING:
    from scaletest.analysis.sizing import CapacityDemand, NodeSize, Size
    from scaletest.model import Verdict

GIB = 2.0**30


@click.command("size")
@click.option(
    "--rate",
    type=float,
    metavar="R",
    help="Requests a second. [default: the saturation point of --run]",
)
@click.option(
    "--latency",
    type=DURATION,
    metavar="S",
    help="Latency of a request, as in 500ms. [default: that of --run]",
)
@click.option(
    "--concurrency",
    type=float,
    default=1.0,
    show_default=True,
    metavar="N",
    help="Requests a pod serves at once.",
)
@click.option(
    "--cpu",
    type=str,
    default="",
    metavar="Q",
    help="Cores a pod asks for, as in 0.5 or 500m. [default: 0.5]",
)
@click.option(
    "--memory", type=str, default="", metavar="Q", help="Memory a pod asks for, as in 512Mi."
)
@click.option(
    "--devices", type=int, default=0, show_default=True, metavar="N", help="Devices a pod asks for."
)
@click.option(
    "--node-cpu",
    type=str,
    multiple=True,
    metavar="Q",
    help="Cores of a node; repeat it to compare. [default: 4]",
)
@click.option(
    "--node-memory",
    type=str,
    default="",
    metavar="Q",
    help="Memory of a node, as in 16Gi. [default: enough]",
)
@click.option(
    "--node-devices", type=int, default=0, show_default=True, metavar="N", help="Devices of a node."
)
@click.option(
    "--node-pods",
    type=int,
    default=110,
    show_default=True,
    metavar="N",
    help="Pods a node takes at most.",
)
@click.option(
    "--node-overhead",
    type=str,
    default="0.7",
    show_default=True,
    metavar="Q",
    help="Cores of a node that the system takes.",
)
@click.option(
    "--node-overhead-memory",
    type=str,
    default="0",
    show_default=True,
    metavar="Q",
    help="Memory of a node that the system takes.",
)
@click.option(
    "--shared-pods",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Pods of a shared front end.",
)
@click.option(
    "--shared-cpu",
    type=str,
    default="1.3",
    show_default=True,
    metavar="Q",
    help="Cores of each of these pods.",
)
@click.option(
    "--headroom",
    type=float,
    default=0.7,
    show_default=True,
    metavar="P",
    help="Plan for this part of the pods' capacity.",
)
@click.option(
    "--spare", type=int, default=1, show_default=True, metavar="N", help="Nodes that may fail."
)
@click.option(
    "--run",
    "run",
    default="",
    metavar="RUN",
    help="Take latency and saturation from a saturation run.",
)
@click.option(
    "--replicas",
    type=int,
    default=0,
    metavar="N",
    help="Pods that served that run. [default: as recorded]",
)
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help="Take the pod's size from this Deployment, and the nodes' from the cluster.",
)
@click.option("-n", "--namespace", default="", metavar="NAME", help="Namespace of the Deployment.")
@click.option("--context", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--queue", default="NAME", metavar="Q", help="Queue of the chart whose values are printed."
)
@options.output
def command(**given: Any) -> None:
    """Tell how many pods and nodes a request rate needs.

    \b
    scaletest size --rate 24 --latency 500ms --cpu 0.5 --node-cpu 4
    scaletest size --rate 400 --latency 80ms --memory 1Gi --node-cpu 4 --node-cpu 16 \\
      --node-memory 64Gi
    scaletest size --rate 400 --run LAST --replicas 2 --deployment model -n serving

    First the article's formula, which pools CPU over the cluster; then with what short requests
    really reach; then pods placed node by node; then with headroom, and so that a node may be lost.
    """
    from scaletest.analysis.sizing import alternatives

    demand, nodes, told = _demand(given)
    found = alternatives(demand, nodes, given["headroom"], given["spare"])
    chosen = found[0][-1]
    values = _values(given, demand, chosen)
    if given["output"] != "table":
        rows = [
            {"node_cpu": node.cpu, "sizes": [one.to_dict() for one in sizes]}
            for node, sizes in zip(nodes, found, strict=True)
        ]
        data = {
            "schema_version": 1,
            "kind": "size",
            "demand": _facts(demand),
            "alternatives": rows,
            "notes": told,
        }
        options.show({**data, "values": values}, given["output"])
        return
    _table(demand, nodes, found, told)
    import yaml

    echo("\nvalues of the chart:\n" + yaml.safe_dump(values, sort_keys=False), nl=False)


def _demand(given: dict[str, Any]) -> tuple[CapacityDemand, list[NodeSize], list[str]]:
    """What is wanted, the kinds of node, and what to say about where it comes from."""
    from scaletest.analysis.sizing import CapacityDemand, NodeSize, PodSize
    from scaletest.model import VerdictKind

    told: list[str] = []
    rate, latency_s, per_pod = given["rate"], given["latency"], 0.0
    cpu, memory = _cores(given["cpu"] or "0.5"), _gib(given["memory"] or "0")
    nodes = [
        NodeSize(
            _cores(size),
            _gib(given["node_memory"]) if given["node_memory"] else float("inf"),
            given["node_devices"],
            given["node_pods"],
            _cores(given["node_overhead"]),
            _gib(given["node_overhead_memory"]),
        )
        for size in given["node_cpu"] or ("4",)
    ]
    if given["deployment"]:
        from scaletest.cli.size_cluster import look

        live = look(given["deployment"], given["namespace"], given["context"])
        cpu = cpu if given["cpu"] else live.cpu or cpu
        memory = memory if given["memory"] else live.memory
        nodes = nodes if given["node_cpu"] else live.nodes or nodes
        told += live.told
    if given["run"]:
        point, run_latency_s, replicas, verdict = _measured(given)
        rate = point if rate is None else rate
        latency_s = run_latency_s if latency_s is None else latency_s
        per_pod = point / replicas
        told.append(
            f"measured: {short(point, 4)} requests/s on {replicas} pods, {short(per_pod, 4)} each"
        )
        if verdict.kind in (VerdictKind.INVALID, VerdictKind.RUNNING):
            told.append(
                f"that run is {verdict.kind}, and so is what follows from it: {verdict.reason}"
            )
    if rate is None or latency_s is None:
        raise UsageError(
            "size needs --rate and --latency", hint="give both, or --run RUN of a saturation run"
        )
    pod = PodSize(cpu, memory, given["devices"], given["concurrency"])
    shared = given["shared_pods"], _cores(given["shared_cpu"])
    return CapacityDemand(rate, latency_s, pod, nodes[0], *shared, per_pod), nodes, told


def _measured(given: dict[str, Any]) -> tuple[float, float, int, Verdict]:
    """Saturation point, latency, pods and verdict of a stored run; UsageError when it has none."""
    folder = stored.find(given["run"])
    found = stored.saturation(folder) if folder.kind == SATURATION else None
    if found is None or found.result.point is None:
        raise UsageError(
            f"run {given['run']} has no saturation point", hint="name a run of: scaletest saturate"
        )
    result = found.result
    assert result.point is not None
    source = result.operating or result.warm
    latency_s = source.latency.mean if source else None
    if latency_s is None:
        raise UsageError(
            f"run {given['run']} has no latency", hint="run it to the end, or give --latency"
        )
    said = found.extra.get("replicas")
    replicas = given["replicas"] or (said if isinstance(said, int) else 0)
    if replicas < 1:
        raise UsageError(
            f"how many pods served run {given['run']} is not on record", hint="give --replicas N"
        )
    return result.point.value, latency_s, replicas, result.verdict


def _cores(text: str) -> float:
    return _quantity(text)


def _gib(text: str) -> float:
    return _quantity(text) / GIB


def _quantity(text: str) -> float:
    """A Kubernetes quantity; InvalidValue for what is none."""
    from scaletest.cluster.capacity import quantity

    value = float(quantity(text))
    if value < 0 or (value == 0 and text.strip().strip("0").strip(".") != ""):
        raise InvalidValue(
            f"{text[:40]!r} is no quantity", hint="write it as in 0.5, 500m, 2 or 512Mi"
        )
    return value


def _facts(demand: CapacityDemand) -> dict[str, Any]:
    from scaletest.analysis.sizing import efficiency

    low, high = efficiency(demand.latency_s)
    return {
        "rate_per_s": demand.rate,
        "latency_s": demand.latency_s,
        "concurrency": demand.pod.concurrency,
        "cpu": demand.pod.cpu,
        "memory_gib": demand.pod.memory,
        "devices": demand.pod.devices,
        "per_pod_per_s": demand.per_pod or None,
        "efficiency_low": low,
        "efficiency_high": high,
    }


def _values(given: dict[str, Any], demand: CapacityDemand, chosen: Size) -> dict[str, Any]:
    """What to write into the chart's values for a queue of such pods."""
    asked: dict[str, Any] = {"cpu": f"{round(1000 * demand.pod.cpu)}m"}
    if demand.pod.memory:
        asked["memory"] = f"{round(1024 * demand.pod.memory)}Mi"
    workers = {
        "replicas": chosen.pods,
        "resources": {"requests": asked},
        "autoscaling": {
            "minReplicas": min(chosen.pods, max(1, round(chosen.pods * given["headroom"]))),
            "maxReplicas": chosen.pods,
        },
    }
    return {"queues": {given["queue"]: workers}}


def _table(
    demand: CapacityDemand, nodes: list[NodeSize], found: list[list[Size]], told: list[str]
) -> None:
    from scaletest.render.contents import Table
    from scaletest.render.numbers import seconds
    from scaletest.render.text_table import aligned

    pod = demand.pod
    more = f", {pod.memory:g} GiB" if pod.memory else ""
    one = (
        f"{short(demand.per_pod, 4)}/s each, measured"
        if demand.per_pod
        else f"concurrency {pod.concurrency:g}"
    )
    echo(
        f"{demand.rate:g} requests/s of {seconds(demand.latency_s)}; pods of {pod.cpu:g} CPU{more},"
        f" {one}"
    )
    for line in told:
        echo(line)
    for node, sizes in zip(nodes, found, strict=True):
        echo(f"\nnodes of {node.cpu:g} CPU, {node.overhead_cpu:g} of them taken:")
        rows = [
            (
                size.method,
                str(size.pods),
                "none" if size.nodes is None else str(size.nodes),
                short(size.holds, 4),
                f"{size.used:.0%}",
                size.note,
            )
            for size in sizes
        ]
        titles = ("method", "pods", "nodes", "holds/s", "CPU asked", "")
        for line in aligned(Table(titles, rows, texts=(0, 5))):
            echo(line)
