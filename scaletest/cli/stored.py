"""Stored runs on the command line: the argument that names one, and where its report goes."""

import os
import sys
from collections.abc import Mapping

import click
from click.shell_completion import CompletionItem

from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo, write_bytes
from scaletest.model.errors import UsageError
from scaletest.model.labels import LATEST
from scaletest.render.contents import Report
from scaletest.report import formats
from scaletest.runs import places
from scaletest.runs.folder import RunFolder


def run_argument(name: str = "run", nargs: int = 1, metavar: str = "") -> shared.Decorator:
    """Make the argument that names a run, which the shell completes.

    nargs, metavar: as click has them.
    """
    return click.argument(
        name, shell_complete=_complete_run, nargs=nargs, required=True, metavar=metavar or None
    )


def find(name: str) -> RunFolder:
    """Find the run of that name; UsageError when there is none."""
    return places.find(name, os.environ)


def deliver(report: Report, output: Output, data: Mapping[str, object] | None = None) -> int:
    """Write a report, and return the exit code of its verdict.

    JSON and YAML are of the data instead, where there are any.
    """
    if output.is_data:
        output.show(data or report.data(), ())
    elif output.form == "text" and str(output.path) == "-":
        # imports rich, which the other forms do not need
        from scaletest.report.formats.text import print_to_terminal

        print_to_terminal(report)
    elif output.form == "png" and str(output.path) == "-" and sys.stdout.isatty():
        raise UsageError("a terminal shows no PNG", hint="add -o FILE.png")
    else:
        write_bytes(formats.content(report, output.form), output.path)
    return report.head.verdict.kind.exit_code


def deliver_finished(
    report: Report, output: Output, data: Mapping[str, object] | None = None
) -> int:
    """Write the report of a run that has just ended, and return the exit code of its verdict.

    Where it goes to a file, the verdict is printed too.
    """
    code = deliver(report, output, data)
    if str(output.path) != "-":
        echo(formats.render(report, "brief").rstrip(), err=True)
    return code


def stored_runs() -> list[RunFolder]:
    """List the runs of this user, the oldest first."""
    return places.find_runs(places.default_root(os.environ))


def _complete_run(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    names = [name for run in reversed(stored_runs()) for name in (run.labels.name, run.name)]
    return [
        CompletionItem(name) for name in [*names, LATEST] if name and name.startswith(incomplete)
    ]
