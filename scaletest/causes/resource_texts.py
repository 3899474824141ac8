"""Texts about the use of resources."""

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime

from scaletest.causes.resources import NodeUse, StepResources
from scaletest.model.node_sample import CPU

# A node differs where this part more, or less, of its cores is busy than on the others.
DIFFERS = 0.25


def cores_text(busy: float, cores: float) -> str:
    """Busy cores, as in "2.0 of 2 cores"."""
    return f"{busy:.1f} of {cores:g} cores"


def clock_text(at_s: float) -> str:
    """Return a time of Redis's clock in UTC, as in "12:03:10"."""
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def on_node(node: str, step: StepResources) -> str:
    """Return the node in a sentence, such as " on node-a"; "" where there is only one."""
    return f" on {node}" if len(step.nodes) > 1 else ""


def unlike_nodes(nodes: Sequence[NodeUse]) -> list[str]:
    """Return a line about each node with more, or less, busy cores than the others."""
    used = {}
    for node in nodes:
        busy, cores = node.cores_busy, node.value(CPU, "cores")
        if busy is not None and cores:
            used[node.node] = (busy, cores)
    lines = []
    for name, (busy, cores) in used.items():
        others = [other / whole for node, (other, whole) in used.items() if node != name]
        if not others:
            continue
        usual = statistics.median(others)
        if abs(busy / cores - usual) >= DIFFERS:
            lines.append(f"{name}: {cores_text(busy, cores)} are busy, {usual:.0%} elsewhere")
    return lines
