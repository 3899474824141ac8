"""scaletest report: a stored run, judged anew, in the form that its reader wants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from scaletest.cli import stored
from scaletest.cli.output import echo
from scaletest.model.errors import UsageError
from scaletest.report import formats


@click.command("report")
@stored.run_argument()
@click.option(
    "-t",
    "--type",
    "form",
    type=click.Choice(formats.names()),
    default=None,
    help=(
        "Form of the report. brief: one line; md: for a comment in CI; csv: one row a step; junit:"
        " one test case a doubling. [default: by the suffix of FILE, else text]"
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
    scaletest report LAST -o report.html
    scaletest report LAST -t md >> "$GITHUB_STEP_SUMMARY"

    The run is judged anew from its records. Exit code 0 whatever the verdict, 2 when there is no
    such run.
    """
    folder = stored.find(run)
    stored.spared(folder, given["output"], given["png"])
    report = stored.report(folder)
    if given["png"]:
        if report.picture is None:
            raise UsageError(
                f"--png: a {folder.kind} run has no picture", hint="use -o report.html"
            )
        report.picture(given["png"])
        echo(f"{given['png']} written", err=True)
    stored.deliver(report, given["form"], given["output"])
