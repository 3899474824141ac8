"""scaletest report: a stored run, judged anew, in the form that its reader wants."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import stored
from scaletest.cli.output import echo, write
from scaletest.model.errors import UsageError
from scaletest.model.lifecycle_plan import KIND as LIFECYCLE

if TYPE_CHECKING:
    from scaletest.archive import RunFolder
    from scaletest.report.saturation.run import SaturationRun

# The keys of report.formats.FORMATS, which is imported only when the command runs.
FORMS = ["text", "html", "md", "csv", "json", "junit"]


@click.command("report")
@stored.run_argument()
@click.option(
    "-t",
    "--type",
    "form",
    type=click.Choice(FORMS),
    default="text",
    show_default=True,
    help=(
        "Form of the report. md: for a comment in CI; csv: one row a step; junit: one test case a"
        " doubling."
    ),
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path, allow_dash=True),
    default="-",
    metavar="FILE",
    help="Where to write it. [default: standard output]",
)
@click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help=(
        "Also draw the scaling chart as a picture. Needs the extra: pip install 'scaletest[plot]'."
    ),
)
def command(run: str, **given: Any) -> None:
    """Show a stored run: RUN is its name, the end of its name, its folder, or LAST.

    \b
    scaletest report LAST
    scaletest report LAST -t html -o report.html
    scaletest report LAST -t md >> "$GITHUB_STEP_SUMMARY"

    The run is judged anew from its records. Exit code 0 whatever the verdict, 2 when there is no
    such run.
    """
    folder = stored.find(run)
    stored.spared(folder, given["output"], given["png"])
    saturated = stored.saturation(folder)
    if saturated is not None:
        _saturation(saturated, given)
        return
    if folder.kind == LIFECYCLE:
        _lifecycle(folder, given)
        return
    found = stored.judged(folder)
    if given["png"]:
        from scaletest.report.png import save

        save(found.result, given["png"])
        echo(f"{given['png']} written", err=True)
    if given["form"] == "text" and str(given["output"]) == "-":
        from rich.console import Console

        from scaletest.report.terminal import summary

        summary(found, Console(highlight=False))
        return
    from scaletest.report.formats import FORMATS

    write(FORMATS[given["form"]](found), given["output"])


def _saturation(found: SaturationRun, given: dict[str, Any]) -> None:
    if given["png"]:
        raise UsageError(
            "--png draws how a validation scales, and this is no validation", hint="use -t html"
        )
    if given["form"] == "text" and str(given["output"]) == "-":
        from rich.console import Console

        from scaletest.report.saturation.terminal import summary

        summary(found, Console(highlight=False))
        return
    from scaletest.report.saturation.formats import FORMATS

    write(FORMATS[given["form"]](found), given["output"])


def _lifecycle(folder: RunFolder, given: dict[str, Any]) -> None:
    from scaletest.cli import lifecycle_files
    from scaletest.lifecycle.store import Store

    if given["png"] or given["form"] not in lifecycle_files.FORMS:
        raise UsageError(
            f"a lifecycle has no {'--png' if given['png'] else given['form']} here",
            hint=f"use -t {', '.join(lifecycle_files.FORMS)}; pictures: scaletest lifecycle plot",
        )
    write(lifecycle_files.stored_as(Store(folder.path), given["form"]), given["output"])
