"""scaletest lifecycle plot, report, compare: what is made of a run's folder. Nothing here speaks to
a cluster.
"""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from scaletest.analysis.lifecycle.result import WorkloadSelection
from scaletest.cli import lifecycle as own
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.compare import compare_options, compared
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, echo
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.run_type import Conditions, LifecycleRun, read
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural
from scaletest.report import formats, lifecycle
from scaletest.report.formats import png
from scaletest.report.lifecycle_figures import phase_charts


@cloup.command()
@heading("Target")
@own.output_dir()
@heading("Output")
@own.plot
@own.view_options
@shared.grouped
def plot(output_dir: Path, figure: str, view: WorkloadSelection) -> None:
    """Write times.csv and general.png or detailed.png beside the data. Needs the extra: pip install
    'scaletest[plot]'.

    \b
    scaletest lifecycle plot -o out
    scaletest lifecycle plot -o out --plot detailed --head 100

    Reads the submitted.json and sampled.json of the Run:ai scale test tool as well.
    """
    store = LifecycleFolder(output_dir)
    for path in _draw(store, read(store, view), figure):
        echo(f"{path} written", err=True)


def _draw(store: LifecycleFolder, run: LifecycleRun, figure: str) -> list[Path]:
    """The table, and the picture; UsageError when it cannot be drawn."""
    written = [store.put("times.csv", formats.render(lifecycle.lifecycle_report(run), "csv"))]
    names = lifecycle.GENERAL if figure == "general" else lifecycle.DETAILED
    charts = phase_charts(run.result, names)
    picture = png.picture(charts, plural(len(run.result.courses), "workload"))
    return [*written, store.put(f"{figure}.png", picture)]


@cloup.command()
@heading("Target")
@own.output_dir(short=False)
@shared.old_type
@shared.report_output(bare_forms=False)
@own.view_options
@own.judged_options
@shared.grouped
def report(output_dir: Path, output: Output, view: WorkloadSelection, judged: Conditions) -> int:
    """Sum a run up: books, steps with percentiles, thresholds, verdict.

    \b
    scaletest lifecycle report --output-dir LAST
    scaletest lifecycle report --output-dir out --threshold 'ready.p99<30s' \\
      --output report.html

    Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    store = LifecycleFolder(output_dir)
    # looked at first: who ends while we read has written more than we read
    running = store.in_use
    run = read(store, view, judged)
    if running:
        run = run.while_running()
    return stored.deliver(lifecycle.lifecycle_report(run), output)


def show(store: LifecycleFolder, run: LifecycleRun, output: Output, figure: str = "") -> int:
    """After a run: write its table, picture and page, print the result; the exit code."""
    shown = lifecycle.lifecycle_report(run)
    store.put("result.json", formats.render(shown, "json"))
    store.put("report.html", formats.render(shown, "html"))
    if figure:
        try:
            _draw(store, run, figure)
        except UsageError as error:
            echo(f"warning: no picture: {error.message}", err=True)
    return stored.deliver_ended(shown, output)


@cloup.command()
@click.argument("base", type=click.Path(file_okay=False, path_type=Path), callback=own.folder)
@click.argument("candidate", type=click.Path(file_okay=False, path_type=Path), callback=own.folder)
@compare_options
def compare(base: Path, candidate: Path, tolerance: float, force: bool, output: Output) -> int:
    """Tell which phases of CANDIDATE are slower than those of BASE; both are folders of runs.

    \b
    scaletest lifecycle compare out LAST --tolerance 10%

    Exit code 0 PASS, 3 FAIL: a phase is slower, 4 INVALID.
    """
    folders = [LifecycleFolder(path) for path in (base, candidate)]
    return compared(folders, tolerance, force, output)
