"""scaletest bench: run benchmarks and sweeps, and explain their kinds.

The commands are imported when they are called: `bench --help` needs none of them.
"""

from __future__ import annotations

from typing import ClassVar

import click

from scaletest.cli.main import LazyGroup


class BenchGroup(LazyGroup):
    """The commands of scaletest bench."""

    table: ClassVar = {
        "run": ("bench_run", "Run benchmarks: those of a FILE, or a KIND with its defaults."),
        "execute": ("bench_run", ""),
        "part": ("bench_run", ""),
        "explain": (
            "bench_explain",
            "Explain a KIND: fields, numbers, an example; without KIND: list them.",
        ),
        "convert": ("bench_convert", "Convert kube-perftest's YAML to ours."),
    }


@click.group("bench", cls=BenchGroup)
def command() -> None:
    """Network, storage and compute benchmarks, alone or as sweeps, from the YAML of the Kubernetes
    objects.

    \b
    scaletest bench run IPerf --set streams=2
    scaletest bench run sweep.yaml
    scaletest compare before-the-fix LAST
    """
