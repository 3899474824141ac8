"""scaletest report: a stored run, judged anew, in the form that its reader wants."""

from __future__ import annotations

from pathlib import Path

import click
import cloup

from scaletest.cli import stored
from scaletest.cli.options import old_type, report_output
from scaletest.cli.output import Output, echo, write_bytes
from scaletest.model.errors import UsageError
from scaletest.report import formats
from scaletest.report.suffixes import form_of
from scaletest.runs import registry


@cloup.command("report")
@stored.run_argument()
@old_type
@report_output(bare_forms=False)
@click.option(
    "--png",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help=(
        "Also draw the main charts into this PNG file, which needs: pip install 'scaletest[plot]'."
    ),
)
def command(run: str, output: Output, png: Path | None) -> None:
    """Show a stored run: RUN is its name, the end of its name, its folder, or LAST.

    \b
    scaletest report LAST
    scaletest report LAST -o report.html
    scaletest report LAST --format md >> "$GITHUB_STEP_SUMMARY"

    brief is one line, md for a comment in CI, csv has one row a step, junit one test case a
    doubling.

    The run is judged anew from its records. Exit code 0 whatever the verdict, 2 when there is no
    such run.
    """
    for problem in formats.problems():
        echo(f"warning: {problem}", err=True)
    folder = stored.find(run)
    stored.spared(folder, output.path, png)
    if png and png.suffix and form_of(png) in set(formats.names()) - {"png"}:
        raise UsageError(
            f"--png {png}: its suffix names another form",
            hint="give --png FILE.png; -o FILE writes other forms",
        )
    report = registry.report(folder)
    if png:
        write_bytes(formats.content(report, "png"), png, "--png FILE")
    stored.deliver(report, output)
