"""scaletest bench run, and what workers and the operator's pods call."""

from dataclasses import fields as fields_of
from pathlib import Path

import click
import cloup

from scaletest.benchmarks.commands.bench import complete_kind
from scaletest.benchmarks.options import BenchmarkChanges, BenchmarkPlace
from scaletest.cli import options as shared
from scaletest.cli.headings import under_heading
from scaletest.cli.output import Output, echo
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels

RUN_HELP = """
Run benchmarks: FILE.yaml with one or a BenchmarkSet, ours or kube-perftest's; or a KIND with
its defaults.

\b
scaletest bench run IPerf --set streams=2 --set mtu=9000 --set duration=5
scaletest bench run sweep.yaml --repetitions 5
scaletest bench run --resume LAST

Here, two nodes are two network namespaces of this machine, joined by a veth pair, which are
gone afterwards.

Exit code 0: all measured, and every threshold holds. 3: some failed, or a threshold does not
hold. 4: some were not measured, or a threshold is undecided.
"""
EXECUTE_HELP = """
Run one benchmark, DOCUMENT as JSON, on this node, and print its framed result; workers call
this.
"""


@cloup.command("run", help=RUN_HELP)
@click.argument("subject", required=False, metavar="FILE|KIND", shell_complete=complete_kind)
@under_heading("Load")
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set this field of the benchmark's spec to a value in YAML; the option may be repeated.",
)
@under_heading("Accuracy")
@click.option(
    "--repetitions",
    type=click.IntRange(1, 1000),
    metavar="N",
    help="Measure each permutation N times.",
)
@under_heading("Verdict")
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="CONDITION",
    help=(
        "Require this condition for a PASS, e.g. 'bandwidth>=5Gbit/s' or"
        " 'bandwidth(streams=8)>=9e9'; the option may be repeated."
    ),
)
@under_heading("Run")
@click.option(
    "--resume",
    metavar="RUN",
    default="",
    help="Resume this run; benchmarks that have ended are not measured again.",
)
@under_heading("Target")
@click.option(
    "--queue",
    default="",
    metavar="NAME",
    help="Send the benchmarks to the workers of this queue. [default: run them here]",
)
@shared.namespace_option("Let the operator of a Kubernetes cluster measure in this namespace.")
@shared.redis_url()
@under_heading("Run")
@click.option(
    "--run-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Keep the run in this folder. [default: a new folder below the user's data]",
)
@shared.labels
@shared.watch
@shared.report_output()
@shared.call_with_groups
def run(
    *,
    subject: str | None,
    changes: BenchmarkChanges,
    place: BenchmarkPlace,
    run_dir: Path | None,
    labels: Labels,
    resume: str,
    watch: shared.WatchOptions,
    output: Output,
) -> int:
    """Start a run or resume one, and show its report."""
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.benchmarks.measure import launch
    from scaletest.benchmarks.report import benchmark_report
    from scaletest.cli import stored
    from scaletest.cli.watching import watch_runs

    if resume:
        places = (*fields_of(BenchmarkPlace), *fields_of(shared.WatchOptions))
        shared.refuse_beside(
            "--resume", allowed={"resume", "output", "form", *(field.name for field in places)}
        )
    with watch_runs(watch) as progress:
        if resume:
            benchmarks = launch.resume_run(stored.find(resume), place, progress)
        else:
            benchmarks = launch.start_run(
                subject, changes, place, run_dir=run_dir, labels=labels, progress=progress
            )
    return stored.deliver_finished(benchmark_report(benchmarks), output)


@cloup.command(hidden=True, help=EXECUTE_HELP)
@click.argument("document")
def execute(document: str) -> int:
    """Run one benchmark and print its framed result."""
    from scaletest.benchmarks.documents import frame_result, read_benchmark
    from scaletest.benchmarks.measure.local_executor import LocalExecutor
    from scaletest.model import wire

    benchmark = read_benchmark(wire.load(document, "the document"))
    executor = LocalExecutor()
    executor.refuse(benchmark)
    result = executor.run(benchmark, lambda phase: echo(f"{benchmark.name}: {phase}", err=True))
    echo(frame_result(result))
    return 0 if result.ok else 5


@cloup.command(hidden=True)
@click.option("--role", required=True, help="Play this role of the benchmark.")
@click.option(
    "--index",
    type=click.IntRange(0),
    envvar="JOB_COMPLETION_INDEX",
    required=True,
    help="Play the part of this index in its role.",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    required=True,
    help="Read the benchmark and its peers from this folder.",
)
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    required=True,
    help="Write working files into this folder.",
)
def part(role: str, index: int, folder: Path, scratch: Path) -> int:
    """Run one part of a benchmark in a pod; the operator's Jobs call this."""
    from scaletest.benchmarks.measure import pod_main

    if not (folder / "benchmark.json").is_file():
        raise UsageError(
            f"{folder} contains no benchmark.json",
            hint="the operator's Jobs call this; use: bench run",
        )
    return pod_main.run(role, index, folder, scratch, echo)
