"""How figures of nodes are said: cores of cores, which node, and which one differs from the others."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from datetime import UTC, datetime

from scaletest.analysis.resources import NodeUse, StepResources
from scaletest.model.node_sample import CPU

# A node differs where so much more, or less, of its cores is busy than of those of the others.
DIFFERS = 0.25


def cores_text(busy: float, cores: float) -> str:
    """2.0 of 2 cores."""
    return f"{busy:.1f} of {cores:g} cores"


def clock_text(at_s: float) -> str:
    """A time of Redis's clock, in UTC: 12:03:10."""
    try:
        return f"{datetime.fromtimestamp(at_s, UTC):%H:%M:%S}"
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def on_node(node: str, step: StepResources) -> str:
    """Where something is, when there are several nodes."""
    return f" on {node}" if len(step.nodes) > 1 else ""


def differing(nodes: Sequence[NodeUse]) -> list[str]:
    """A line about each node whose cores are busy to another degree than those of the others."""
    parts = {
        node.node: (busy, cores)
        for node in nodes
        if (busy := node.cores_busy) is not None and (cores := node.value(CPU, "cores"))
    }
    lines = []
    for name, (busy, cores) in parts.items():
        others = [other / whole for node, (other, whole) in parts.items() if node != name]
        usual = statistics.median(others) if others else busy / cores
        if abs(busy / cores - usual) >= DIFFERS:
            lines.append(f"{name}: {cores_text(busy, cores)} are busy, {usual:.0%} elsewhere")
    return lines
