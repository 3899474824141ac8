"""scaletest bench: run benchmarks and sweeps, list, show, explain and compare them."""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

import click

from scaletest.analysis.benchmark_compare import compare_benchmarks
from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.benchmarks.folder import BenchmarkFolder, is_benchmark
from scaletest.benchmarks.local_executor import LocalExecutor
from scaletest.benchmarks.pod_main import run as play
from scaletest.benchmarks.runner import counts
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.bench_explain import explained, kinds
from scaletest.cli.bench_options import BenchRunOptions
from scaletest.cli.compare import tolerance_part
from scaletest.cli.output import echo
from scaletest.kinds.benchmark import read
from scaletest.kinds.log_framing import frame
from scaletest.model import wire
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.report import formats
from scaletest.report.benchmark.report import benchmark_report
from scaletest.report.benchmark_comparison import lines
from scaletest.runs.folder import RunFolder
from scaletest.runs.places import default_root, runs


@click.group("bench")
def command() -> None:
    """Network, storage and compute benchmarks, alone or as sweeps, from the YAML of the Kubernetes
    objects.

    \b
    scaletest bench run IPerf --set streams=2
    scaletest bench run sweep.yaml
    scaletest bench compare BASE LAST
    """


@command.command("run")
@click.argument("subject", required=False, metavar="FILE|KIND")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="A field of the spec; the value is YAML.",
)
@click.option(
    "--repetitions", type=click.IntRange(1, 1000), help="How often each permutation is measured."
)
@click.option("--random-order", is_flag=True, help="Measure in blocks of random order.")
@click.option("--seed", type=click.IntRange(0), help="Seed of the random order and of samples.")
@click.option(
    "--warm-up",
    type=click.IntRange(0, 1000),
    help="Benchmarks to run first, whose results do not count.",
)
@click.option("--stop-on-failure", is_flag=True, help="Start nothing more once one has failed.")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="CONDITION",
    help=(
        "What must hold for a PASS, as in 'bandwidth>=5Gbit/s' or 'bandwidth(streams=8)>=9e9'; may"
        " be repeated."
    ),
)
@click.option(
    "--paused", is_flag=True, help="Store the plan and start nothing; start it with --resume."
)
@click.option(
    "--resume",
    metavar="RUN",
    default="",
    help="Resume a run; benchmarks that have ended are not measured again.",
)
@click.option(
    "--queue",
    default="",
    metavar="NAME",
    help="Send benchmarks to the workers of a queue. [default: run them here]",
)
@click.option(
    "--namespace",
    default="",
    metavar="NAME",
    help="Have the operator measure in that namespace of a cluster.",
)
@shared.redis_url()
@click.option(
    "--scratch",
    type=click.Path(file_okay=False, writable=True, path_type=Path),
    metavar="DIR",
    help="Where working folders and test files go.",
)
@click.option(
    "--no-causes", is_flag=True, help="Do not sample where the time of local benchmarks goes."
)
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where the run is stored. [default: a new one]",
)
@shared.output
@shared.typed(BenchRunOptions)
def run(options: BenchRunOptions) -> int:
    """Run benchmarks: FILE.yaml with one or a BenchmarkSet, ours or kube-perftest's; or a KIND with
    its defaults.

    \b
    scaletest bench run IPerf --set streams=2 --set mtu=9000 --set duration=5
    scaletest bench run sweep.yaml --repetitions 5 --random-order
    scaletest bench run --resume LAST

    Here, two nodes are two network namespaces of this machine, joined by a veth pair, which are
    gone afterwards.

    Exit code 0: all measured, and every threshold holds. 3: some failed, or a threshold does not
    hold. 4: some were not measured, or a threshold is undecided.
    """
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.cli import bench_run

    benchmarks = bench_run.start(options)
    _say(benchmarks, options.output)
    return benchmarks.verdict.kind.exit_code


@command.command(hidden=True)
@click.argument("document")
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Where working folders and test files go.",
)
@click.option("--no-causes", is_flag=True, help="Do not sample where its time goes.")
def execute(document: str, scratch: Path | None, no_causes: bool) -> int:
    """Run one benchmark, DOCUMENT as JSON, on this node, and print its framed result; workers call
    this.
    """
    benchmark = read(wire.load(document, "the document"))
    executor = LocalExecutor(scratch, no_causes=no_causes)
    executor.refuse(benchmark)
    ended = executor.run(benchmark, lambda phase: echo(f"{benchmark.name}: {phase}", err=True))
    echo(frame(ended))
    return 0 if ended.ok else 5


@command.command(hidden=True)
@click.option("--role", required=True, help="Role of the part.")
@click.option(
    "--index",
    type=click.IntRange(0),
    envvar="JOB_COMPLETION_INDEX",
    required=True,
    help="Index of the part in its role.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Folder with the benchmark and its peers.",
)
@click.option(
    "--scratch", type=click.Path(path_type=Path), required=True, help="Folder for working files."
)
def part(role: str, index: int, folder: Path, scratch: Path) -> int:
    """Run one part of a benchmark in a pod; the operator's Jobs call this."""
    if not (folder / "benchmark.json").is_file():
        raise UsageError(
            f"{folder} holds no benchmark.json",
            hint="the operator's Jobs call this; use: bench run",
        )

    return play(role, index, folder, scratch, echo)


@command.command("list")
@shared.output
def list_runs(output: str) -> None:
    """List the runs of benchmarks of this user, the oldest first."""
    rows = [_row(folder) for folder in runs(default_root(os.environ)) if is_benchmark(folder)]
    if output != "table":
        shared.show(rows, output)
        return
    for row in rows:
        state = f"{row.get('succeeded', 0)}/{row.get('count', 0)} measured"
        if row.get("running"):
            state = "running"
        failed = f", {row['failed']} failed" if row.get("failed") else ""
        label = row["name"] or row.get("problem")
        echo(f"{row['run']}  {label}  {row['what'] or ''}  {state}{failed}")


def _row(folder: RunFolder) -> dict[str, object]:
    """A run for the list; what cannot be read is null, and `problem` says why."""
    row: dict[str, object] = {
        "run": folder.name,
        "began": folder.began,
        "name": None,
        "what": None,
    }
    try:
        stored_run = BenchmarkFolder(folder).load()
        number = counts(stored_run.plan, stored_run.ended)
    except ScaletestError as error:
        return {**row, "problem": str(error)}
    return {
        **row,
        "name": stored_run.plan.name,
        "what": stored_run.plan.workload,
        "count": number.count,
        "succeeded": number.succeeded,
        "failed": number.failed,
        "running": folder.in_use,
    }


@command.command()
@stored.run_argument()
@click.option(
    "-t",
    "--type",
    "form",
    type=click.Choice(formats.names()),
    default=None,
    help="Form of the report. [default: by the suffix of FILE, else text]",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where to write it. [default: standard output]",
)
def show(run: str, form: str | None, output: Path) -> None:
    """Show a run of benchmarks. csv: one row a benchmark; junit: one test case a benchmark."""
    stored.spared(stored.find(run), output)
    stored.deliver(benchmark_report(_run(run)), form, output)


@command.command()
@click.argument("kind", required=False)
@shared.output
def explain(kind: str | None, output: str) -> None:
    """Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
    list them.
    """
    data, text = explained(kind) if kind else kinds()
    if output != "table":
        shared.show(data, output)
    else:
        echo(text)


@command.command()
@stored.run_argument("base")
@stored.run_argument("candidate")
@click.option(
    "--tolerance",
    callback=tolerance_part,
    default="5%",
    show_default=True,
    metavar="PART",
    help="How much worse the candidate may be.",
)
@click.option("--force", is_flag=True, help="Compare even runs whose specs differ.")
@shared.output
def compare(base: str, candidate: str, tolerance: float, force: bool, output: str) -> int:
    """Compare two runs of benchmarks at every permutation that both have.

    A number is worse when it differs beyond chance and by more than the tolerance; two repetitions
    are needed on both sides, three or more are better.

    Exit code 0 PASS: none is worse. 3 FAIL: one is. 4 INVALID: undecided.
    """
    sides = _run(base), _run(candidate)
    comparison = compare_benchmarks(*sides, tolerance, force=force)
    if output != "table":
        shared.show(comparison.to_dict(), output)
    else:
        headlines = chain.from_iterable(side.headlines for side in sides)
        units = {headline.name: headline.unit for headline in headlines}
        echo("\n".join(lines(comparison, units)))
    return comparison.verdict.kind.exit_code


def _run(name: str) -> BenchmarkRun:
    return stored.benchmarks(stored.find(name))


def _say(run: BenchmarkRun, output: str) -> None:
    if output == "table":
        stored.show(benchmark_report(run))
    else:
        shared.show(run.to_dict(), output)
