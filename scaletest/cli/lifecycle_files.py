"""scaletest lifecycle plot, report, compare: what is made of a run's folder. Nothing here speaks to
a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from scaletest.analysis.lifecycle.compare import compare as compared
from scaletest.analysis.lifecycle.result import LifecycleResult, WorkloadSelection
from scaletest.cli import lifecycle_options as own
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.output import echo
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.model.errors import UsageError
from scaletest.render.contents import Report
from scaletest.render.numbers import seconds
from scaletest.report import formats
from scaletest.report.lifecycle import figures, png
from scaletest.report.lifecycle.report import LifecycleRun, lifecycle_report


@dataclass(frozen=True, slots=True)
class PlotOptions:
    """The figure to draw, and the workloads in it."""

    output_dir: Path
    figure: str
    view: WorkloadSelection


@click.command()
@own.output_dir()
@click.option(
    "--plot",
    "figure",
    type=click.Choice(["general", "detailed"]),
    default="general",
    show_default=True,
    help="Times from the submission, or of every step.",
)
@own.view_options
@shared.typed(PlotOptions)
def plot(options: PlotOptions) -> None:
    """Write times.csv and general.png or detailed.png beside the data. Needs the extra: pip install
    'scaletest[plot]'.

    Reads the submitted.json and sampled.json of the Run:ai scale test tool as well.
    """
    store = LifecycleFolder(options.output_dir)
    for path in _draw(
        store, own.result_of(store, options.view), options.figure, options.view.times
    ):
        echo(f"{path} written", err=True)


def _draw(store: LifecycleFolder, result: LifecycleResult, figure: str, times: str) -> list[Path]:
    """The table, and the picture; UsageError when it cannot be drawn."""
    written = [store.write("times.csv", formats.render(_report(store, result, times), "csv"))]
    names = figures.GENERAL if figure == "general" else figures.DETAILED
    picture = store.path / f"{figure}.png"
    png.save(result, names, picture)
    return [*written, picture]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """The form of a report, the workloads in it, and what must hold."""

    output_dir: Path
    form: str | None
    output: Path
    view: WorkloadSelection
    judged: own.JudgedOptions


@click.command()
@own.output_dir(short=False)
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
@own.view_options
@own.judged_options
@shared.typed(ReportOptions)
def report(options: ReportOptions) -> int:
    """Sum a run up: books, steps with percentiles, thresholds, verdict.

    Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    store = LifecycleFolder(options.output_dir)
    result = stored.lifecycle(
        store.path, lambda: own.result_of(store, options.view, options.judged)
    )
    shown = _report(store, result, options.view.times)
    stored.deliver(shown, options.form, options.output)
    return result.verdict.kind.exit_code


def _report(store: LifecycleFolder, result: LifecycleResult, times: str = "watch") -> Report:
    run = LifecycleRun(
        result,
        title=own.heading(store),
        folder=str(store.path),
        project=_project(store),
        times=times,
        plan=store.plan().to_dict() if store.planned else {},
        environment=store.environment(),
    )
    return lifecycle_report(run)


def stored_report(store: LifecycleFolder) -> Report:
    """A run, judged anew without thresholds of this command line unless it is still measured."""
    return _report(store, stored.lifecycle(store.path, lambda: own.result_of(store)))


def show(
    store: LifecycleFolder,
    result: LifecycleResult,
    output: str,
    figure: str = "",
    times: str = "watch",
) -> int:
    """After a run: write its table, picture and page, print the result; the exit code."""
    shown = _report(store, result)
    store.write("result.json", formats.render(shown, "json"))
    store.write("report.html", formats.render(shown, "html"))
    if figure:
        try:
            _draw(store, result, figure, times)
        except UsageError as error:
            echo(f"warning: no picture: {error.message}", err=True)
    if output == "table":
        stored.show(shown)
    else:
        shared.show({**result.to_dict(), "folder": str(store.path)}, output)
    return result.verdict.kind.exit_code


@click.command()
@click.argument("base", type=click.Path(file_okay=False, path_type=Path), callback=own.folder)
@click.argument("candidate", type=click.Path(file_okay=False, path_type=Path), callback=own.folder)
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 10),
    default=0.1,
    show_default=True,
    metavar="PART",
    help="How much a median may grow.",
)
@shared.output
def compare(base: Path, candidate: Path, tolerance: float, output: str) -> int:
    """Tell which steps of CANDIDATE are slower than those of BASE; both are folders of runs.

    Exit code 0 PASS, 3 FAIL: a step is slower, 4 INVALID.
    """
    before, after = (own.result_of(LifecycleFolder(path)) for path in (base, candidate))
    comparison = compared(before, after, tolerance)
    if output != "table":
        shared.show(comparison.to_dict(), output)
        return comparison.verdict.kind.exit_code
    width = max((len(step.name) for step in comparison.steps), default=4)
    echo(f"{'step':{width}}  {'base':>9}  {'candidate':>9}  change")
    for step in comparison.steps:
        echo(
            f"{step.name:{width}}  {seconds(step.base_s):>9}  {seconds(step.candidate_s):>9} "
            f" {step.change}"
        )
    echo(f"{comparison.verdict.kind}  {comparison.verdict.reason}")
    return comparison.verdict.kind.exit_code


def _project(store: LifecycleFolder) -> str:
    return store.plan().project if store.planned else ""
