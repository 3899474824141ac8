"""scaletest compare: which measures of runs changed, and whether any is worse."""

import click
import cloup

from scaletest.cli import options, stored
from scaletest.cli.output import Output
from scaletest.model.errors import InvalidValue
from scaletest.stats.comparison import TOLERANCE

PART = options.Quantity("part of 1", {"": 1.0, "%": 0.01}, "3% or 0.03")
HELP = """
Tell which measures changed from the run BASE to other runs of its type, and whether any is worse.

\b
scaletest compare before-the-fix LAST
scaletest compare 2026-08-21T101500Z-a7c3 LAST --tolerance 1% --format json
scaletest compare a7c3 nightly-16 nightly-17 --tolerance 1% -o compare.html

A run is given by its name, the end of its name, its folder, or as LAST. A measure is worse when
it differs beyond chance and by more than the tolerance: throughput at each number of workers,
the saturation point, the median of each phase of a lifecycle, each number of a benchmark.

Exit code 0 PASS: none is worse. 3 FAIL: one is. 4 INVALID: undecided, or the workloads differ.
"""


def refuse_one_or_more(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """Return the part of 1 that an option holds; InvalidValue for 1 or more."""
    if value >= 1:
        raise InvalidValue(
            f"the tolerance {value:g} is not a fraction",
            hint="write 3% or 0.03, from 0 to below 100 %",
        )
    return value


@cloup.command("compare", help=HELP)
@stored.run_argument("base")
@stored.run_argument("candidates", -1, "RUN...")
@options.under_heading("Verdict")
@click.option(
    "--tolerance",
    type=PART,
    callback=refuse_one_or_more,
    default=f"{100 * TOLERANCE:g}%",
    show_default=True,
    metavar="PART",
    help="Accept a measure that is worse by at most this fraction.",
)
@click.option("--force", is_flag=True, help="Compare even runs that measured different workloads.")
@options.report_output()
def command(
    base: str, candidates: tuple[str, ...], tolerance: float, force: bool, output: Output
) -> int:
    """Compare runs with the run BASE, and return the exit code of the verdict."""
    # takes a while to import, and --help needs none of it
    from scaletest.report.comparison import comparison_report
    from scaletest.runs import registry

    folders = list(map(stored.find, (base, *candidates)))
    comparison = registry.compare(folders, tolerance, force=force)
    return stored.deliver(comparison_report(comparison), output)
