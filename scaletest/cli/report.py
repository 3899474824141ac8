"""scaletest report: a stored run, judged anew, in the form that its reader wants."""

import cloup

from scaletest.cli import stored
from scaletest.cli.output import Output, echo
from scaletest.cli.output_options import report_output
from scaletest.report import formats
from scaletest.runs import registry


@cloup.command("report")
@stored.run_argument()
@report_output()
def command(run: str, output: Output) -> None:
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
    stored.deliver(registry.report(stored.find(run)), output)
