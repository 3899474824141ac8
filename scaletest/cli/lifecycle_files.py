"""scaletest lifecycle plot, report, compare: what is made of a run's folder. Nothing here speaks to
a cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import lifecycle_options as own
from scaletest.cli import options, stored
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError
from scaletest.report import formats

if TYPE_CHECKING:
    from scaletest.analysis.lifecycle.result import LifecycleResult
    from scaletest.lifecycle.folder import LifecycleFolder
    from scaletest.render.contents import Report


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
def plot(**given: Any) -> None:
    """Write times.csv and general.png or detailed.png beside the data. Needs the extra: pip install
    'scaletest[plot]'.

    Reads the submitted.json and sampled.json of the Run:ai scale test tool as well.
    """
    from scaletest.lifecycle.folder import LifecycleFolder

    store = LifecycleFolder(given["output_dir"])
    for path in _draw(store, own.result_of(store, given), given):
        echo(f"{path} written", err=True)


def _draw(store: LifecycleFolder, result: LifecycleResult, given: dict[str, Any]) -> list[Path]:
    """The table, and the picture; UsageError when it cannot be drawn."""
    from scaletest.report.lifecycle import figures, png

    times = formats.render(_report(store, result, given["times"]), "csv")
    written = [store.write("times.csv", times)]
    names = figures.GENERAL if given["figure"] == "general" else figures.DETAILED
    picture = store.path / f"{given['figure']}.png"
    png.save(result, names, picture)
    return [*written, picture]


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
def report(form: str | None, output: Path, **given: Any) -> int:
    """Sum a run up: books, steps with percentiles, thresholds, verdict.

    Exit code 0 PASS, 3 FAIL, 4 INVALID.
    """
    from scaletest.lifecycle.folder import LifecycleFolder

    store = LifecycleFolder(given["output_dir"])
    result = stored.lifecycle(store.path, lambda: own.result_of(store, given))
    shown = _report(store, result, given["times"])
    stored.deliver(shown, form, output)
    return result.verdict.kind.exit_code


def _report(store: LifecycleFolder, result: LifecycleResult, times: str = "watch") -> Report:
    from scaletest.report.lifecycle.report import LifecycleRun, lifecycle_report

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
    return _report(store, stored.lifecycle(store.path, lambda: own.result_of(store, {})))


def show(store: LifecycleFolder, given: dict[str, Any], interrupted: str) -> int:
    """After a run: write its table, picture and page, print the result; the exit code."""
    result = own.result_of(store, given, interrupted)
    shown = _report(store, result)
    store.write("result.json", formats.render(shown, "json"))
    store.write("report.html", formats.render(shown, "html"))
    if "figure" in given:
        try:
            _draw(store, result, given)
        except UsageError as error:
            echo(f"warning: no picture: {error.message}", err=True)
    if given["output"] == "table":
        stored.show(shown)
    else:
        options.show({**result.to_dict(), "folder": str(store.path)}, given["output"])
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
@options.output
def compare(base: Path, candidate: Path, tolerance: float, output: str) -> int:
    """Tell which steps of CANDIDATE are slower than those of BASE; both are folders of runs.

    Exit code 0 PASS, 3 FAIL: a step is slower, 4 INVALID.
    """
    from scaletest.analysis.lifecycle.compare import compare as compared
    from scaletest.lifecycle.folder import LifecycleFolder
    from scaletest.render.numbers import seconds

    before, after = (own.result_of(LifecycleFolder(path), {}) for path in (base, candidate))
    found = compared(before, after, tolerance)
    if output != "table":
        options.show(found.to_dict(), output)
        return found.verdict.kind.exit_code
    width = max((len(one.name) for one in found.steps), default=4)
    echo(f"{'step':{width}}  {'base':>9}  {'candidate':>9}  change")
    for one in found.steps:
        echo(
            f"{one.name:{width}}  {seconds(one.base_s):>9}  {seconds(one.candidate_s):>9} "
            f" {one.change}"
        )
    echo(f"{found.verdict.kind}  {found.verdict.reason}")
    return found.verdict.kind.exit_code


def _project(store: LifecycleFolder) -> str:
    return store.plan().project if store.planned else ""
