"""Samples of nodes for runs that are made up: one a second and node, from a little before the first
request on.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from scaletest.model import Record
from scaletest.model.node_sample import NodeSample

BEFORE_S = 3
Resources = dict[str, dict[str, float]]
Rows = Mapping[tuple[int, int], Sequence[Record]]


def cpu(busy: float, cores: float = 2.0, **figures: float) -> Resources:
    """The CPUs of a node with so many busy cores."""
    return {"cpu": {"cores": cores, "user": 0.75 * busy, "system": 0.25 * busy, **figures}}


def samples_of(
    records: Rows,
    read: Callable[[str, int, float], Resources],
    nodes: Sequence[str] = ("node-a",),
) -> list[NodeSample]:
    """read: resources of a node while so many workers are measured (0 before the first request), at
    that second.
    """
    return [
        NodeSample(node, "worker-0", at_s, 1.0, resources)
        for at_s, workers in _seconds(records)
        for node in nodes
        if (resources := read(node, workers, at_s))
    ]


def on_one_node(records: Rows) -> dict[tuple[int, int], list[Record]]:
    """The same run with all workers on node-a."""
    return {
        key: [replace(row, reply=replace(row.reply, node="node-a")) for row in rows]
        for key, rows in records.items()
    }


def _on_node_a(row: Record) -> Record:
    return replace(row, reply=replace(row.reply, node="node-a"))


def began_s(records: Rows) -> float:
    """When the first request started."""
    return min(row.reply.started_s for rows in records.values() for row in rows)


def _seconds(records: Rows) -> Iterator[tuple[float, int]]:
    first_s = began_s(records)
    for second in range(BEFORE_S):
        yield first_s - BEFORE_S + second + 0.5, 0
    measured = sorted(records.items(), key=lambda item: min(row.reply.started_s for row in item[1]))
    at_s = first_s + 0.5
    for (workers, _), rows in measured:
        while at_s < max(row.reply.ended_s for row in rows):
            yield at_s, workers
            at_s += 1.0
