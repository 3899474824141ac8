"""Stored runs on the command line: the argument that names one, and where its report goes."""

import os

import click
from click.shell_completion import CompletionItem

from scaletest.cli import options as shared
from scaletest.cli.output import Output, echo, write_bytes
from scaletest.model.errors import InvalidValue
from scaletest.model.labels import LATEST
from scaletest.render.contents import Report
from scaletest.report import formats
from scaletest.runs import places
from scaletest.runs.folder import RunFolder
from scaletest.stats.comparison import TOLERANCE


def run_argument(name: str = "run", nargs: int = 1, metavar: str = "") -> shared.Decorator:
    """Make the argument that names a run, which the shell completes.

    nargs, metavar: as click has them.
    """
    return click.argument(
        name, shell_complete=_complete_run, nargs=nargs, required=True, metavar=metavar or None
    )


def _refuse_one_or_more(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Return the part of 1 that an option holds; InvalidValue for 1 or more."""
    if value >= 1:
        raise InvalidValue(
            f"the tolerance {value:g} is not a fraction",
            hint="write 3% or 0.03, from 0 to below 100 %",
        )
    return value


# How much worse a measure may be where runs are compared.
tolerance = click.option(
    "--tolerance",
    type=shared.Quantity("part of 1", {"": 1.0, "%": 0.01}, "3% or 0.03"),
    callback=_refuse_one_or_more,
    default=f"{100 * TOLERANCE:g}%",
    show_default=True,
    metavar="PART",
    help="Accept a measure that is worse by at most this fraction.",
)


def find(name: str) -> RunFolder:
    """Find the run of that name; UsageError when there is none."""
    return places.find(name, os.environ)


def deliver(report: Report, output: Output) -> int:
    """Write a report, and return the exit code of its verdict."""
    if output.is_data:
        output.show(report.data(), ())
    elif output.form == "text" and str(output.path) == "-":
        # imports rich, which the other forms do not need
        from scaletest.report.formats.text import print_to_terminal

        print_to_terminal(report)
    else:
        write_bytes(formats.content(report, output.form), output.path)
    return report.head.verdict.kind.exit_code


def deliver_finished(report: Report, output: Output) -> int:
    """Write the report of a run that has just ended, and return the exit code of its verdict.

    Where it goes to a file, the verdict is printed too.
    """
    code = deliver(report, output)
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
