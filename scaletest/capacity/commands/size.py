"""scaletest size: how many pods and nodes a load needs, by formula and placed pod by pod."""

import math
from dataclasses import dataclass, replace
from typing import Any

import click
import cloup

from scaletest.capacity.sizing import (
    HEADROOM,
    NODE_OVERHEAD_CPU,
    PODS_A_NODE,
    SHARED_CPU,
    SHARED_PODS,
    CapacityDemand,
    NodeSize,
    PodSize,
    Size,
    size_alternatives,
)
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.headings import under_heading
from scaletest.cli.output import Output
from scaletest.cluster.pod_requests import SUFFIXES
from scaletest.model import VerdictKind
from scaletest.model.errors import UsageError
from scaletest.model.quantities import in_base_units
from scaletest.model.texts import short_number
from scaletest.model.wording import as_options
from scaletest.render.blocks import Table
from scaletest.render.numbers import format_seconds
from scaletest.render.text_table import align_table
from scaletest.runs.registry import judge_run

GIB = 2.0**30
# Quantities as Kubernetes writes them: of CPU, of memory in GiB, and of what has no unit.
CPU_UNITS = {suffix: float(factor) for suffix, factor in SUFFIXES.items()}
GIB_UNITS = {suffix: factor / GIB for suffix, factor in CPU_UNITS.items()}
COUNT_UNITS = {"": 1.0}


class Amounts(click.ParamType[dict[str, float]]):
    """Parse NAME=QUANTITY,... into numbers by name: CPU in cores, memory in GiB."""

    name = "amounts"

    def __init__(self, *names: str) -> None:
        self._names = names

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, float]:
        """Return the amounts that are given."""
        if isinstance(value, dict):  # the default
            return value
        amounts: dict[str, float] = {}
        for part in str(value).split(","):
            name, _, text = part.strip().partition("=")
            units = COUNT_UNITS
            if name.endswith("cpu"):
                units = CPU_UNITS
            elif name.endswith("memory"):
                units = GIB_UNITS
            amount = in_base_units(text, units) if name in self._names else None
            if amount is None or not math.isfinite(amount):
                raise UsageError(
                    f"{param.opts[-1] if param else self.name}: invalid amount {part[:60]!r}",
                    hint=f"write NAME=QUANTITY, e.g. cpu=500m,memory=2Gi; there are"
                    f" {', '.join(self._names)}",
                )
            amounts[name] = amount
        return amounts


@dataclass(frozen=True, slots=True)
class SizeOptions:
    """A load, pods and nodes. CPU is in cores, and memory in GiB."""

    rate: float | None  # requests a second; None for that of the run
    latency_s: float | None
    pod: dict[str, float]
    nodes: tuple[dict[str, float], ...]  # each kind is an alternative
    shared: dict[str, float]  # front-end pods
    headroom: float  # the fraction of the pods' capacity to use
    spare: int  # nodes that may fail
    run: str  # a stored saturation run, "" for none
    replicas: int  # that served it; 0 for as many as it recorded
    output: Output


@dataclass(frozen=True, slots=True)
class MeasuredLoad:
    """What a saturation run says of a load."""

    rate: float  # the saturation point, in requests a second
    latency_s: float
    per_pod: float  # requests a second of one pod
    notes: list[str]


@cloup.command("size")
@under_heading("Load")
@click.option(
    "--rate",
    type=shared.RATE,
    metavar="RATE",
    help="Plan for this rate of requests, e.g. 24/s. [default: the saturation point of --run]",
)
@click.option(
    "--latency",
    type=shared.DURATION,
    metavar="TIME",
    help="Plan for requests that take this long, e.g. 500ms. [default: that of --run]",
)
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
@under_heading("Pods")
@click.option(
    "--pod",
    type=Amounts("cpu", "memory", "devices", "concurrency"),
    default={},
    metavar="NAME=Q,...",
    help=(
        "Plan for pods that ask for this cpu, memory and number of devices, and serve so many"
        " requests at once (concurrency). [default: cpu=0.5,concurrency=1]"
    ),
)
@click.option(
    "--shared",
    type=Amounts("cpu", "pods"),
    default={},
    metavar="NAME=Q,...",
    help="Add this many front-end pods, which all share. [default: pods=3,cpu=1.3]",
)
@click.option(
    "--headroom",
    type=click.FloatRange(0, 1, min_open=True),
    default=HEADROOM,
    show_default=True,
    metavar="P",
    help="Plan to use this fraction of the pods' capacity.",
)
@under_heading("Nodes")
@click.option(
    "--node",
    "nodes",
    type=Amounts("cpu", "memory", "devices", "pods", "system-cpu", "system-memory"),
    multiple=True,
    metavar="NAME=Q,...",
    help=(
        "Plan for nodes with this cpu, memory and number of devices, at most so many pods, and what"
        " of them the system takes; the option may be repeated to compare."
        " [default: cpu=4,pods=110,system-cpu=0.7]"
    ),
)
@click.option(
    "--spare",
    type=click.IntRange(0, 1000),
    default=1,
    show_default=True,
    metavar="N",
    help="Plan so that N nodes may fail.",
)
@under_heading("Output")
@shared.output()
@shared.call_with_groups
def command(options: SizeOptions) -> None:
    """Calculate how many pods and nodes a request rate needs.

    \b
    scaletest size --rate 24/s --latency 500ms --pod cpu=0.5 --node cpu=4
    scaletest size --rate 400/s --latency 80ms --pod memory=1Gi \\
      --node cpu=4,memory=16Gi --node cpu=16,memory=64Gi
    scaletest size --rate 400/s --run LAST --replicas 2

    It shows the plain formula, which pools CPU over the cluster; then what short requests really
    reach; then pods placed node by node; then the same with headroom, and so that a node may be
    lost.
    """
    demand, nodes, notes = _read_demand(options)
    # the alternatives for each kind of node
    sizes_of_nodes = [
        size_alternatives(replace(demand, node=node), options.headroom, options.spare)
        for node in nodes
    ]
    document = {
        "schema_version": 1,
        "kind": "size",
        "demand": demand.to_dict(),
        "alternatives": [
            {"node_cpu": node.cpu, "sizes": [size.to_dict() for size in sizes]}
            for node, sizes in zip(nodes, sizes_of_nodes, strict=True)
        ],
        "notes": notes,
    }
    options.output.show(document, _text_lines(demand, nodes, sizes_of_nodes, notes))


def _text_lines(
    demand: CapacityDemand,
    nodes: list[NodeSize],
    sizes_of_nodes: list[list[Size]],
    notes: list[str],
) -> list[str]:
    """Return the alternatives for people: a table for each kind of node."""
    pod = demand.pod
    memory = f", {pod.memory:g} GiB" if pod.memory else ""
    pod_rate = f"concurrency {pod.concurrency:g}"
    if demand.per_pod:
        pod_rate = f"{short_number(demand.per_pod, 4)}/s each, measured"
    lines = [
        f"{demand.rate:g} requests/s of {format_seconds(demand.latency_s)}; pods of"
        f" {pod.cpu:g} CPU{memory}, {pod_rate}",
        *map(as_options, notes),
    ]
    titles = ("method", "pods", "nodes", "holds/s", "CPU asked", "")
    for node, sizes in zip(nodes, sizes_of_nodes, strict=True):
        lines.append(f"\nnodes of {node.cpu:g} CPU, {node.overhead_cpu:g} of them taken:")
        rows = []
        for size in sizes:
            count = "none" if size.nodes is None else str(size.nodes)
            holds, used = short_number(size.holds, 4), f"{size.used:.0%}"
            rows.append((size.method, str(size.pods), count, holds, used, size.note))
        lines += align_table(Table(titles, rows, texts=(0, 5)))
    return lines


def _read_demand(options: SizeOptions) -> tuple[CapacityDemand, list[NodeSize], list[str]]:
    """Return the load to carry, the kinds of node, and notes about where that comes from."""
    pod = PodSize(**{"cpu": 0.5, **options.pod})
    nodes = [_node_size(amounts) for amounts in options.nodes or ({},)]
    # rate and latency: as the options say, else as a stored run measured them
    rate, latency_s = options.rate, options.latency_s
    per_pod = 0.0
    notes: list[str] = []
    if options.run:
        measured = _read_run(options.run, options.replicas)
        rate = measured.rate if rate is None else rate
        latency_s = measured.latency_s if latency_s is None else latency_s
        per_pod = measured.per_pod
        notes = measured.notes
    if rate is None or latency_s is None:
        raise UsageError(
            "size needs --rate and --latency", hint="give both, or --run RUN of a saturation run"
        )
    demand = CapacityDemand(
        rate,
        latency_s,
        pod,
        nodes[0],
        shared_pods=int(options.shared.get("pods", SHARED_PODS)),
        shared_cpu=options.shared.get("cpu", SHARED_CPU),
        per_pod=per_pod,
    )
    return demand, nodes, notes


def _read_run(name: str, replicas: int) -> MeasuredLoad:
    """Return what a stored saturation run measured. replicas: 0 for as many as it recorded."""
    folder = stored.find(name)
    run: Any = judge_run(folder) if folder.kind == "saturation" else None
    if run is None or run.result.point is None:
        raise UsageError(
            f"run {name} has no saturation point", hint="name a run of: scaletest saturate"
        )
    # a run without an operating point has at least the latency of one request at a time
    step = run.result.operating or run.result.warm
    latency_s = step.latency.mean if step else None
    if latency_s is None:
        raise UsageError(f"run {name} has no latency", hint="run it to the end, or give --latency")
    recorded = run.extra.get("replicas")
    replicas = replicas or (recorded if isinstance(recorded, int) else 0)
    if replicas < 1:
        raise UsageError(
            f"how many pods served run {name} is not on record", hint="give --replicas N"
        )
    point, verdict = run.result.point.value, run.result.verdict
    notes = [
        f"measured: {short_number(point, 4)} requests/s on {replicas} pods,"
        f" {short_number(point / replicas, 4)} each"
    ]
    if verdict.kind in (VerdictKind.INVALID, VerdictKind.RUNNING):
        notes.append(
            f"that run is {verdict.kind}, and so is what follows from it: {verdict.reason}"
        )
    return MeasuredLoad(point, latency_s, point / replicas, notes)


def _node_size(amounts: dict[str, float]) -> NodeSize:
    return NodeSize(
        cpu=amounts.get("cpu", 4.0),
        memory=amounts.get("memory", math.inf),
        devices=amounts.get("devices", 0.0),
        pods=int(amounts.get("pods", PODS_A_NODE)),
        overhead_cpu=amounts.get("system-cpu", NODE_OVERHEAD_CPU),
        overhead_memory=amounts.get("system-memory", 0.0),
    )
