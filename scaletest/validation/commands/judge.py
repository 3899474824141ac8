"""scaletest judge: a verdict on results that load tools left."""

import os
from dataclasses import replace
from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli.output import Output
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels


@cloup.command("judge")
@cloup.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@shared.under_heading("Target")
@click.option(
    "--label",
    "labelled",
    multiple=True,
    metavar="N=FILE[,FILE...]",
    help="Read these files as runs with N replicas; the option may be repeated.",
)
@click.option(
    "--axis",
    default="replicas",
    metavar="NAME",
    show_default=True,
    help="Call what was doubled by this name, e.g. gpus or tensor-parallel.",
)
@shared.under_heading("Verdict")
@click.option(
    "--measure",
    type=click.Choice(["requests", "tokens"]),
    help="Judge requests or tokens per second. [default: tokens if answers differ in length]",
)
@click.option(
    "--scale",
    type=float,
    metavar="RATIO",
    help="Require this ratio for each doubling; 0 judges none. [default: 1.8; 0 for"
    " tensor-parallel]",
)
@click.option(
    "--tolerate-failures",
    type=float,
    default=0.01,
    metavar="SHARE",
    show_default=True,
    help="Accept runs in which at most this share of the requests failed.",
)
@click.option(
    "--price",
    type=shared.PRICE,
    default=0.0,
    metavar="AMOUNT/h",
    help="Calculate what a million output tokens cost if one replica costs this much.",
)
@click.option(
    "--threshold",
    "thresholds",
    multiple=True,
    metavar="CONDITION",
    help="Require this condition for a PASS too, e.g. 'efficiency(8)>=0.8'; the option may be"
    " repeated.",
)
@shared.labels
@click.option(
    "--run-dir",
    metavar="DIR",
    help="Keep the run in this folder. [default: a new folder below the user's data]",
)
@shared.report_output()
@shared.call_with_groups
def command(
    *,
    files: tuple[Path, ...],
    labelled: tuple[str, ...],
    axis: str,
    measure: str | None,
    scale: float | None,
    tolerate_failures: float,
    price: float,
    thresholds: tuple[str, ...],
    run_dir: str | None,
    labels: Labels,
    output: Output,
) -> int:
    """Judge how a service scales by the result files of a load tool.

    \b
    scaletest judge --label '1=one-*.json' --label '2=two-*.json'
    scaletest judge --axis gpus --price 2.5 results/gpus-*.json

    It reads guidellm, aiperf, vLLM and SGLang (bench serve), inference-perf, llm-d's benchmark
    reports, and CSV or JSON with the columns n and throughput. N comes from --label, else from the
    file or its name, as in replicas-4.json. Three runs or more with each N give the ratio of a
    doubling an interval, without which there is no PASS. Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    if not files and not labelled:
        raise UsageError("no file was given", hint="give N=FILE with --label, or files")
    # what a run needs takes a while to import, and --help needs none of it
    from scaletest.cli import stored
    from scaletest.runs import places
    from scaletest.validation.imported.importing import import_results, make_plan
    from scaletest.validation.imported.reading import parse_label, read_results
    from scaletest.validation.imported.report import imported_report
    from scaletest.validation.imported.run_type import RUN_TYPE

    labelled_files = [parse_label(label) for label in labelled]
    given = [
        path.resolve() for path in (*files, *(path for _, row in labelled_files for path in row))
    ]
    twice = [path.name for path in given if given.count(path) > 1]
    if twice:
        # its scatter would be none
        raise UsageError(f"{twice[0]} was given twice", hint="give each run once")
    results = [result for file in files for result in read_results(file, axis)]
    for count, paths in labelled_files:
        for path in paths:
            results += [replace(result, count=count) for result in read_results(path, axis, count)]
    plan = make_plan(results, axis, measure=measure, scale=scale)
    plan = replace(
        plan, price=price, tolerate_failures=tolerate_failures, thresholds=tuple(thresholds)
    )
    folder = import_results(plan, results, places.new_path(os.environ, run_dir), labels)
    return stored.deliver_finished(imported_report(RUN_TYPE.judge(folder)), output)
