"""Refuse a benchmark that cannot run in any cluster."""

from __future__ import annotations

import re

from scaletest.benchmarks.documents.benchmark import Benchmark
from scaletest.benchmarks.documents.custom_resources import MOST_NAME
from scaletest.model import checks

NAME = re.compile(rf"[a-z]([a-z0-9-]{{0,{MOST_NAME - 2}}}[a-z0-9])?")


def refuse(benchmark: Benchmark) -> None:
    """Raise UsageError for a benchmark that cannot run in any cluster."""
    checks.refuse(
        (
            not NAME.fullmatch(benchmark.name),
            f"the name {benchmark.name[:80]!r} cannot be used for a Service and its Jobs",
            f"use a-z, 0-9 and '-', a letter first, {MOST_NAME} characters at most",
        )
    )
    nodes = {part.node for part in benchmark.kind.layout(benchmark.spec)}
    checks.refuse(
        (
            benchmark.spec.nodes and len(benchmark.spec.nodes) < len(nodes),
            f"the benchmark uses {len(nodes)} nodes, and its spec names"
            f" {len(benchmark.spec.nodes)}",
            "name more nodes, or none",
        )
    )
