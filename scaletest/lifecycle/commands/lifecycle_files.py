"""The files that a lifecycle run leaves beside its data: a table, pictures and a page."""

from pathlib import Path

from scaletest.cli import stored
from scaletest.cli.output import Output, echo
from scaletest.lifecycle.folder import LifecycleFolder
from scaletest.lifecycle.options import WorkloadSelection
from scaletest.lifecycle.report import report as lifecycle
from scaletest.lifecycle.report.charts import phase_charts
from scaletest.lifecycle.run_type import LifecycleRun, read_run
from scaletest.model.errors import UsageError
from scaletest.render.numbers import plural
from scaletest.report import formats
from scaletest.report.formats import png


def plot(output_dir: Path, view: WorkloadSelection, figure: str) -> None:
    """Write the table of times, and a picture: general or detailed."""
    store = LifecycleFolder(output_dir)
    for path in _draw(store, read_run(store, view), figure):
        echo(f"{path} written", err=True)


def _draw(store: LifecycleFolder, run: LifecycleRun, figure: str) -> list[Path]:
    """Draw the table, and the picture; UsageError when it cannot be drawn."""
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
