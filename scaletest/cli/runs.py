"""scaletest runs: the archive of runs on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace

import click
import cloup

from scaletest.cli import options, stored
from scaletest.cli.headings import heading
from scaletest.cli.output import Output, echo
from scaletest.model.checks import cut
from scaletest.model.errors import UsageError
from scaletest.model.labels import Labels
from scaletest.render.contents import Table, aligned
from scaletest.runs import registry
from scaletest.runs.listing import SORTS, VERDICTS, RunFilter, chosen
from scaletest.runs.places import default_root, runs
from scaletest.runs.registry import TYPES, ListedRun


@cloup.group("runs")
def command() -> None:
    """List, show, label, share and delete stored runs.

    Wherever a run is asked for, its name will do, the end of its name, its folder, or LAST for the
    newest. A run has the name of its folder, and another one if it was given one.
    """


@command.command("list")
@heading("Target")
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
    "--tag",
    "tags",
    multiple=True,
    metavar="TAG",
    help="List only runs with this tag; the option may be repeated.",
)
@click.option(
    "--name",
    "pattern",
    default="",
    metavar="PATTERN",
    help=("List only runs whose name contains this text, or fits this pattern, as in 'nightly-*'."),
)
@click.option(
    "--sort",
    "order",
    type=click.Choice(list(SORTS)),
    default="began",
    show_default=True,
    help="Sort the runs by this; the newest, the worst or the longest stands last.",
)
@heading("Output")
@options.output()
def list_runs(
    run_type: str | None,
    verdicts: tuple[str, ...],
    tags: tuple[str, ...],
    pattern: str,
    order: str,
    output: Output,
) -> None:
    """List the runs of this user, the oldest first.

    \b
    scaletest runs list
    scaletest runs list --type validation --verdict fail
    scaletest runs list --tag nightly --sort verdict -o runs.json
    """
    root = default_root(os.environ)
    stored_runs = list(map(registry.listed, runs(root)))
    shown = chosen(stored_runs, RunFilter(run_type or "", verdicts, tags, pattern), order)
    if shown or output.is_data:
        output.show(list(map(asdict, shown)), aligned(_table(shown)))
    elif stored_runs:
        echo(f"none of the {len(stored_runs)} runs fits", err=True)
    else:
        echo(f"no run in {root}; make one with: scaletest validate", err=True)


@command.command()
@stored.run_argument()
@options.report_output()
def show(run: str, output: Output) -> None:
    """Show one run, judged anew from its records, and where it was made.

    \b
    scaletest runs show LAST
    scaletest runs show LAST --format json
    """
    folder = stored.find(run)
    report = registry.report(folder)
    environment = report.head.environment
    if output.form == "text" and str(output.path) == "-":
        for name, setting in environment.items():
            if setting not in ("", [], None) and name != "schema_version":
                echo(f"{name.replace('_', ' '):12}  {_text(setting)}")
    labels = folder.labels.to_dict()
    stored.deliver(
        report, output, {**report.data(), "environment": dict(environment), "labels": labels}
    )


@command.command("name")
@stored.run_argument()
@click.argument("new", metavar="NEW")
def rename(run: str, new: str) -> None:
    """Call a run NEW: commands find it by that name, too. "" takes its name away.

    \b
    scaletest runs name LAST before-the-fix
    scaletest runs name LAST ""

    The name of its folder stays.
    """
    folder = stored.find(run)
    folder.relabel(lambda labels: replace(labels, name=new))
    echo(f"{folder.name}: called {new}" if new else f"{folder.name}: has no other name now")


@command.command()
@stored.run_argument()
@click.argument("tags", nargs=-1, required=True, metavar="TAG...")
@click.option("--remove", is_flag=True, help="Take these tags away instead.")
def tag(run: str, tags: tuple[str, ...], remove: bool) -> None:
    """Give a run tags, by which runs list finds it.

    \b
    scaletest runs tag LAST nightly node-a
    scaletest runs tag LAST node-a --remove
    """

    def change(labels: Labels) -> Labels:
        others = tuple(tag for tag in labels.tags if tag not in tags)
        return replace(labels, tags=others if remove else others + tuple(dict.fromkeys(tags)))

    folder = stored.find(run)
    labels = folder.relabel(change)
    echo(f"{folder.name}: tags {', '.join(labels.tags) or 'none'}")


@command.command()
@stored.run_argument()
@click.argument("text", metavar="TEXT")
def note(run: str, text: str) -> None:
    """Write a note about a run, which its reports show.

    It takes the place of an earlier one, and "" takes it away.

    \b
    scaletest runs note LAST "with the new driver"
    """
    folder = stored.find(run)
    folder.relabel(lambda labels: replace(labels, note=text.strip()))
    echo(f"{folder.name}: {'noted' if text else 'has no note now'}")


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
    for folder in folders:
        if folder.in_use:
            raise UsageError(
                f"run {folder.name} is in use by another process", hint="wait until it has ended"
            )
    names = ", ".join(str(folder.path) for folder in folders)
    if not options.confirmed(f"Delete {names}?", yes, terminal=True):
        echo("nothing deleted", err=True)
        return
    for folder in folders:
        left = "" if folder.remove() else f"; other files are left in {folder.path}"
        echo(f"{folder.name}: deleted{left}")


def _table(shown: Sequence[ListedRun]) -> Table:
    """Without the columns of names and tags where no run has any."""
    labels: dict[str, Callable[[ListedRun], str]] = {}
    if any(run.name for run in shown):
        labels["name"] = lambda run: run.name or "-"
    if any(run.tags for run in shown):
        labels["tags"] = lambda run: ",".join(run.tags) or "-"
    titles = ["run", "when", "kind", "verdict", "steps", "seconds", *labels, "workload"]
    rows = [_cells(run, labels.values()) for run in shown]
    return Table(titles, rows, texts=range(len(titles)))


def _cells(run: ListedRun, labels: Iterable[Callable[[ListedRun], str]]) -> list[str]:
    return [
        run.run,
        run.when,
        run.kind or "-",
        run.judged,
        ",".join(map(str, run.steps or ())) or "-",
        "-" if run.elapsed_s is None else f"{run.elapsed_s:.0f}",
        *(text(run) for text in labels),
        run.subject,
    ]


def _text(setting: object) -> str:
    """A value of an environment; it may come from anywhere, so it reaches no terminal as a
    command.
    """
    parts = setting
    if isinstance(setting, dict):
        parts = [f"{name} {part}" for name, part in setting.items()]
    return cut(" ".join(map(str, parts)) if isinstance(parts, list) else str(parts), 400)
