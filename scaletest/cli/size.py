"""scaletest size: how many pods and nodes a load needs, by formula and placed pod by pod.

With --deployment, pod and nodes are those of the cluster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import click
import cloup

from scaletest.analysis.sizing import (
    CapacityDemand,
    NodeSize,
    PodSize,
    Size,
    alternatives,
    chart_values,
)
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, as_text
from scaletest.cluster.capacity import SUFFIXES
from scaletest.cluster.connection import connect
from scaletest.cluster.inventory import GIB, LiveSize, live_size
from scaletest.model import Verdict, VerdictKind
from scaletest.model.errors import UsageError
from scaletest.model.texts import short
from scaletest.render.contents import Table, aligned
from scaletest.render.numbers import seconds
from scaletest.runs.registry import judge
from scaletest.saturation.run_type import SaturationRun

# Quantities as Kubernetes writes them.
UNITS = {suffix: float(factor) for suffix, factor in SUFFIXES.items()}
CORES = shared.Quantity("quantity", UNITS, "0.5, 500m or 2")
MEMORY = shared.Quantity(
    "quantity", {name: factor / GIB for name, factor in UNITS.items()}, "512Mi or 16Gi"
)


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """A load, pods and nodes. CPU is in cores, and memory in GiB."""

    rate: float | None
    latency_s: float | None
    concurrency: float
    cpu: float | None
    memory: float | None
    devices: int
    node_cpu: tuple[float, ...]
    node_memory: float
    node_devices: int
    node_pods: int
    node_overhead: float
    node_overhead_memory: float
    shared_pods: int
    shared_cpu: float
    headroom: float
    spare: int
    run: str
    replicas: int
    deployment: str
    namespace: str
    context: str
    queue: str
    output: Output


@cloup.command("size")
@heading("Load")
@click.option(
    "--rate",
    type=shared.RATE,
    metavar="RATE",
    help=("Plan for this rate of requests, as in 24/s. [default: the saturation point of --run]"),
)
@click.option(
    "--latency",
    type=shared.DURATION,
    metavar="TIME",
    help="Plan for requests that take this long, as in 500ms. [default: that of --run]",
)
@heading("Pods")
@click.option(
    "--concurrency",
    type=float,
    default=1.0,
    show_default=True,
    metavar="N",
    help="Plan for pods that serve N requests at once.",
)
@click.option(
    "--cpu",
    type=CORES,
    metavar="Q",
    help="Plan for pods that ask for this many cores, as in 0.5 or 500m. [default: 0.5]",
)
@click.option(
    "--memory",
    type=MEMORY,
    metavar="Q",
    help="Plan for pods that ask for this much memory, as in 512Mi.",
)
@click.option(
    "--devices",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Plan for pods that ask for N devices.",
)
@heading("Nodes")
@click.option(
    "--node-cpu",
    type=CORES,
    multiple=True,
    metavar="Q",
    help=(
        "Plan for nodes with this many cores; the option may be repeated to compare. [default: 4]"
    ),
)
@click.option(
    "--node-memory",
    type=MEMORY,
    default=math.inf,
    metavar="Q",
    help="Plan for nodes with this much memory, as in 16Gi. [default: enough]",
)
@click.option(
    "--node-devices",
    type=int,
    default=0,
    show_default=True,
    metavar="N",
    help="Plan for nodes with N devices.",
)
@click.option(
    "--node-pods",
    type=int,
    default=110,
    show_default=True,
    metavar="N",
    help="Put at most N pods on a node.",
)
@click.option(
    "--node-overhead",
    type=CORES,
    default="0.7",
    show_default=True,
    metavar="Q",
    help="Leave this many cores of a node to the system.",
)
@click.option(
    "--node-overhead-memory",
    type=MEMORY,
    default="0",
    show_default=True,
    metavar="Q",
    help="Leave this much memory of a node to the system.",
)
@heading("Pods")
@click.option(
    "--shared-pods",
    type=int,
    default=3,
    show_default=True,
    metavar="N",
    help="Count in N pods of a front end that all share.",
)
@click.option(
    "--shared-cpu",
    type=CORES,
    default="1.3",
    show_default=True,
    metavar="Q",
    help="Count in this many cores for each pod of the shared front end.",
)
@click.option(
    "--headroom",
    type=float,
    default=0.7,
    show_default=True,
    metavar="P",
    help="Plan to use this part of the pods' capacity.",
)
@heading("Nodes")
@click.option(
    "--spare",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="Plan so that N nodes may fail.",
)
@heading("Load")
@click.option(
    "--run",
    "run",
    default="",
    metavar="RUN",
    help="Take latency and saturation point from this stored saturation run.",
)
@click.option(
    "--replicas",
    type=int,
    default=0,
    metavar="N",
    help="Divide the saturation point of --run by N pods. [default: as recorded]",
)
@heading("Kubernetes")
@click.option(
    "--deployment",
    default="",
    metavar="NAME",
    help=("Take the size of the pod from this Deployment, and that of the nodes from the cluster."),
)
@shared.namespace("Look for the Deployment in this namespace. [default: the current one]")
@shared.context
@heading("Output")
@click.option(
    "--queue", default="NAME", metavar="Q", help="Print the values of the chart for this queue."
)
@shared.output()
@shared.grouped
def command(options: SizeOptions) -> None:
    """Tell how many pods and nodes a request rate needs.

    \b
    scaletest size --rate 24/s --latency 500ms --cpu 0.5 --node-cpu 4
    scaletest size --rate 400/s --latency 80ms --memory 1Gi \\
      --node-cpu 4 --node-cpu 16 --node-memory 64Gi
    scaletest size --rate 400/s --run LAST --replicas 2 \\
      --deployment model -n serving

    It shows the plain formula, which pools CPU over the cluster; then what short requests really
    reach; then pods placed node by node; then the same with headroom, and so that a node may be
    lost.
    """
    demand, nodes, notes = _demand(options)
    sizes = alternatives(demand, nodes, options.headroom, options.spare)
    values = {
        "queues": {options.queue: chart_values(demand.pod, sizes[0][-1].pods, options.headroom)}
    }
    rows = []
    for node, node_sizes in zip(nodes, sizes, strict=True):
        rows.append({"node_cpu": node.cpu, "sizes": [size.to_dict() for size in node_sizes]})
    document = {
        "schema_version": 1,
        "kind": "size",
        "demand": demand.to_dict(),
        "alternatives": rows,
        "notes": notes,
        "values": values,
    }
    value_lines = ["", "values of the chart:", as_text(values, "yaml").rstrip()]
    options.output.show(document, [*_lines(demand, nodes, sizes, notes), *value_lines])


def _demand(options: SizeOptions) -> tuple[CapacityDemand, list[NodeSize], list[str]]:
    """The load to carry, the kinds of node, and notes about where that comes from."""
    cpu, memory, nodes, notes = _pod_and_nodes(options)
    rate, latency_s, per_pod = options.rate, options.latency_s, 0.0
    if options.run:
        point, run_latency_s, replicas, verdict = _measured(options)
        rate = point if rate is None else rate
        latency_s = run_latency_s if latency_s is None else latency_s
        per_pod = point / replicas
        notes.append(
            f"measured: {short(point, 4)} requests/s on {replicas} pods, {short(per_pod, 4)} each"
        )
        if verdict.kind in (VerdictKind.INVALID, VerdictKind.RUNNING):
            notes.append(
                f"that run is {verdict.kind}, and so is what follows from it: {verdict.reason}"
            )
    if rate is None or latency_s is None:
        raise UsageError(
            "size needs --rate and --latency", hint="give both, or --run RUN of a saturation run"
        )
    pod = PodSize(cpu, memory, options.devices, options.concurrency)
    front_end = options.shared_pods, options.shared_cpu
    return CapacityDemand(rate, latency_s, pod, nodes[0], *front_end, per_pod), nodes, notes


def _pod_and_nodes(options: SizeOptions) -> tuple[float, float, list[NodeSize], list[str]]:
    """CPU and memory of a pod and the kinds of node: those of the options, else of the cluster."""
    live = LiveSize(0.0, 0.0, [], [])
    if options.deployment:
        live = live_size(connect(options.namespace, options.context), options.deployment)
    limits = options.node_memory, options.node_devices, options.node_pods
    overhead = options.node_overhead, options.node_overhead_memory
    nodes = [NodeSize(size, *limits, *overhead) for size in options.node_cpu or (4.0,)]
    if live.nodes and not options.node_cpu:
        nodes = live.nodes
    cpu, memory = options.cpu, options.memory
    if cpu is None:
        cpu = live.cpu or 0.5
    if memory is None:
        memory = live.memory
    return cpu, memory, nodes, live.notes


def _measured(options: SizeOptions) -> tuple[float, float, int, Verdict]:
    """Saturation point, latency, pods and verdict of a stored run; UsageError when it has none."""
    folder = stored.find(options.run)
    run = judge(folder)
    if not isinstance(run, SaturationRun) or run.result.point is None:
        raise UsageError(
            f"run {options.run} has no saturation point", hint="name a run of: scaletest saturate"
        )
    step = run.result.operating or run.result.warm
    latency_s = step.latency.mean if step else None
    if latency_s is None:
        raise UsageError(
            f"run {options.run} has no latency", hint="run it to the end, or give --latency"
        )
    recorded = run.extra.get("replicas")
    replicas = options.replicas or (recorded if isinstance(recorded, int) else 0)
    if replicas < 1:
        raise UsageError(
            f"how many pods served run {options.run} is not on record", hint="give --replicas N"
        )
    return run.result.point.value, latency_s, replicas, run.result.verdict


def _lines(
    demand: CapacityDemand, nodes: list[NodeSize], sizes: list[list[Size]], notes: list[str]
) -> Iterator[str]:
    pod = demand.pod
    more = f", {pod.memory:g} GiB" if pod.memory else ""
    rate = f"concurrency {pod.concurrency:g}"
    if demand.per_pod:
        rate = f"{short(demand.per_pod, 4)}/s each, measured"
    yield (
        f"{demand.rate:g} requests/s of {seconds(demand.latency_s)}; pods of {pod.cpu:g} CPU{more},"
        f" {rate}"
    )
    yield from notes
    for node, node_sizes in zip(nodes, sizes, strict=True):
        yield f"\nnodes of {node.cpu:g} CPU, {node.overhead_cpu:g} of them taken:"
        rows = []
        for size in node_sizes:
            count = "none" if size.nodes is None else str(size.nodes)
            holds, used = short(size.holds, 4), f"{size.used:.0%}"
            rows.append((size.method, str(size.pods), count, holds, used, size.note))
        titles = ("method", "pods", "nodes", "holds/s", "CPU asked", "")
        yield from aligned(Table(titles, rows, texts=(0, 5)))
