"""scaletest lifecycle plot, and the files that a run leaves beside its data."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, echo
from scaletest.lifecycle.commands import lifecycle as own
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.judging.result import WorkloadSelection
from scaletest.lifecycle.report import report as lifecycle
from scaletest.lifecycle.report.figures import phase_charts
from scaletest.lifecycle.run_type import LifecycleRun, read
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural
from scaletest.report import formats
from scaletest.report.formats import png


@cloup.command()
@heading("Target")
@own.output_dir()
@heading("Output")
@click.option(
    "--plot",
    "figure",
    type=click.Choice(["general", "detailed"]),
    default="general",
    show_default=True,
    help="Draw the times from the submission (general), or those of every phase (detailed).",
)
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


def show(store: LifecycleFolder, run: LifecycleRun, output: Output) -> int:
    """After a run: write its table, picture and page, print the result; the exit code."""
    shown = lifecycle.lifecycle_report(run)
    store.put("result.json", formats.render(shown, "json"))
    store.put("report.html", formats.render(shown, "html"))
    try:
        _draw(store, run, "general")
    except UsageError as error:
        echo(f"warning: no picture: {error.message}", err=True)
    return stored.deliver_ended(shown, output)
