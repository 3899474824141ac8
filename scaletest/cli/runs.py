"""scaletest runs: the archive of runs on this machine."""

import os
from dataclasses import asdict, replace
from pathlib import Path

import click
import cloup

from scaletest.cli import options, stored
from scaletest.cli.output import Output, echo
from scaletest.model.errors import UsageError
from scaletest.render.blocks import Table
from scaletest.render.text_table import align_table
from scaletest.runs import registry
from scaletest.runs.folder import RunFolder
from scaletest.runs.listing import (
    VERDICTS,
    RunFilter,
    choose_for_trend,
    choose_runs,
    read_listed_run,
)
from scaletest.runs.places import default_root, find_runs
from scaletest.runs.registry import TYPES


@cloup.group("runs")
def command() -> None:
    """List, follow, label and delete stored runs.

    Wherever a run is asked for, its name will do, the end of its name, its folder, or LAST for the
    newest. A run has the name of its folder, and another one if it was given one.
    """


@command.command("list")
@options.under_heading("Target")
@click.option(
    "--type", "run_type", type=click.Choice(list(TYPES)), help="List only runs of this type."
)
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    type=click.Choice(VERDICTS, case_sensitive=False),
    help="List only runs with this verdict; the option may be repeated.",
)
@click.option(
    "--name",
    "pattern",
    default="",
    metavar="PATTERN",
    help=("List only runs whose name contains this text, or fits this pattern, e.g. 'nightly-*'."),
)
@options.under_heading("Output")
@options.output()
def list_runs(
    run_type: str | None,
    verdicts: tuple[str, ...],
    pattern: str,
    output: Output,
) -> None:
    """List the runs of this user, the oldest first.

    \b
    scaletest runs list
    scaletest runs list --type validation --verdict fail
    scaletest runs list --name 'nightly-*' -o runs.json
    """
    root = default_root(os.environ)
    stored_runs = list(map(read_listed_run, find_runs(root)))
    rows = choose_runs(stored_runs, RunFilter(run_type or "", verdicts, pattern), "began")
    titles = ["run", "when", "kind", "verdict", "result", "seconds", "name", "workload"]
    cells = [
        [
            run.run,
            run.when,
            run.kind or "-",
            run.judged,
            run.finding or "-",
            "-" if run.elapsed_s is None else f"{run.elapsed_s:.0f}",
            run.name or "-",
            run.subject,
        ]
        for run in rows
    ]
    if rows or output.is_data:
        table = Table(titles, cells, texts=range(len(titles)))
        output.show(list(map(asdict, rows)), align_table(table))
    elif stored_runs:
        echo(f"none of the {len(stored_runs)} runs fits", err=True)
    else:
        echo(f"no run in {root}; make one with: scaletest validate", err=True)


@command.command()
@click.argument("name")
@options.under_heading("Verdict")
@click.option(
    "--measure",
    default="",
    metavar="MEASURE",
    help="Follow this number, as in 'throughput(8)', 'ratio(4)' or 'capacity'. [default: the last"
    " one that decides a comparison]",
)
@stored.tolerance
@options.report_output()
def trend(name: str, measure: str, tolerance: float, output: Output) -> None:
    """Follow a number through the runs of a name, and show in which of them it changed.

    \b
    scaletest runs trend nightly
    scaletest runs trend 'nightly-*' --measure 'ratio(8)' -o trend.html

    NAME is a part of the name or a pattern. The newest 50 complete runs of one type are judged
    anew. A change is what scaletest compare flags.
    """
    # takes a while to import, and --help needs none of it
    from scaletest.report.trend import trend_report

    runs = map(read_listed_run, find_runs(default_root(os.environ)))
    folders = [RunFolder(Path(run.folder)) for run in choose_for_trend(runs, name)]
    stored.deliver(trend_report(registry.trend(folders, measure, tolerance), name), output)


@command.command()
@stored.run_argument()
@click.option("--name", metavar="NAME", help="Name the run; '' removes its name.")
@click.option("--note", metavar="TEXT", help="Show this note in reports of the run; '' removes it.")
def label(run: str, name: str | None, note: str | None) -> None:
    """Name a run, so that commands find it, and write a note about it.

    \b
    scaletest runs label LAST --name before-the-fix
    scaletest runs label LAST --note "with the new driver"

    The name of its folder stays.
    """
    changes = {}
    if name is not None:
        changes["name"] = name
    if note is not None:
        changes["note"] = note.strip()
    if not changes:
        raise UsageError("there is no label", hint="give --name NAME or --note TEXT")
    folder = stored.find(run)
    labels = replace(folder.labels, **changes)
    folder.set_labels(labels)
    echo(f"{folder.name}: {labels.called or 'no other name'}{', with a note' * bool(labels.note)}")


@command.command()
@stored.run_argument("runs", -1, "RUN...")
@options.yes
def delete(runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs, after asking. A run that is being measured is not deleted.

    \b
    scaletest runs delete LAST
    scaletest runs delete before-the-fix nightly-16 --yes
    """
    folders = list({folder.path.resolve(): folder for folder in map(stored.find, runs)}.values())
    names = ", ".join(str(folder.path) for folder in folders)
    if not options.is_confirmed(f"Delete {names}?", yes):
        echo("nothing deleted", err=True)
        return
    for folder in folders:
        left = "" if folder.remove() else f"; other files are left in {folder.path}"
        echo(f"{folder.name}: deleted{left}")
