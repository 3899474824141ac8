"""scaletest compare: which measures of runs changed, and whether any is worse."""

import click
import cloup

from scaletest.cli import options, stored
from scaletest.cli.output import Output
from scaletest.model.verdict import VerdictKind

HELP = """
Tell which measures changed from the run BASE to other runs of its type, and whether any is worse.

\b
scaletest compare before-the-fix LAST
scaletest compare 2026-08-21T101500Z-a7c3 LAST --tolerance 1% --format json
scaletest compare baseline LAST --fail-on worse
scaletest compare a7c3 nightly-16 nightly-17 --tolerance 1% -o compare.html

A run is given by its name, the end of its name, its folder, or as LAST. A measure is worse when
it differs beyond chance and by more than the tolerance: throughput at each number of workers,
the saturation point, the median of each phase of a lifecycle, each number of a benchmark.

Exit code 0 PASS: none is worse. 3 FAIL: one is. 4 INVALID: undecided, or the workloads differ.
"""


@cloup.command("compare", help=HELP)
@stored.run_argument("base")
@stored.run_argument("candidates", -1, "RUN...")
@options.under_heading("Verdict")
@stored.tolerance
@click.option(
    "--fail-on",
    type=click.Choice(["worse", "undecided"]),
    default="undecided",
    show_default=True,
    help="Exit with a code other than 0 only where a run is worse, or also where that is open.",
)
@click.option("--force", is_flag=True, help="Compare even runs that measured different workloads.")
@options.report_output()
def command(
    base: str,
    candidates: tuple[str, ...],
    *,
    tolerance: float,
    fail_on: str,
    force: bool,
    output: Output,
) -> int:
    """Compare runs with the run BASE, and return the exit code of the verdict."""
    # takes a while to import, and --help needs none of it
    from scaletest.report.comparison import comparison_report
    from scaletest.runs import registry

    folders = list(map(stored.find, (base, *candidates)))
    comparison = registry.compare(folders, tolerance, force=force)
    code = stored.deliver(comparison_report(comparison), output)
    return 0 if fail_on == "worse" and code != VerdictKind.FAIL.exit_code else code
