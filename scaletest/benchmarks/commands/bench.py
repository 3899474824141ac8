"""scaletest bench: run benchmarks and sweeps, and explain their kinds."""

import click
import cloup
from click.shell_completion import CompletionItem

from scaletest.cli.lazy import LazyCommand, LazyGroup

HELP = """
Network, storage and compute benchmarks, alone or as sweeps, from the YAML of the Kubernetes
objects.

\b
scaletest bench run IPerf --set streams=2
scaletest bench run sweep.yaml
scaletest compare before-the-fix LAST
"""
COMMANDS = (
    LazyCommand(
        "run",
        "Run benchmarks: those of a FILE, or a KIND with its defaults.",
        "benchmarks.commands.bench_run:run",
    ),
    LazyCommand("execute", "", "benchmarks.commands.bench_run:execute", hidden=True),
    LazyCommand("part", "", "benchmarks.commands.bench_run:part", hidden=True),
    LazyCommand(
        "explain",
        "Explain a KIND: fields, numbers, an example; without KIND: list them.",
        "benchmarks.commands.bench_explain:explain",
    ),
    LazyCommand(
        "convert",
        "Convert kube-perftest's YAML to ours.",
        "benchmarks.commands.bench_convert:command",
    ),
)


@cloup.group("bench", cls=LazyGroup, commands=COMMANDS, help=HELP)
def command() -> None:
    """Hold the commands about benchmarks."""


def complete_kind(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete the name of a kind, in any case, else that of a file."""
    # takes a while to import, and --help needs none of it
    from scaletest.benchmarks.kinds.registry import KINDS

    items = [
        CompletionItem(kind.name, help=kind.help)
        for kind in KINDS.values()
        if kind.name.lower().startswith(incomplete.lower())
    ]
    return items or [CompletionItem(incomplete, type="file")]
