"""scaletest runs: the archive of runs on this machine."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from scaletest.cli import options, stored
from scaletest.cli.output import confirm, echo
from scaletest.model.checks import cut
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.model.verdict import VerdictKind

if TYPE_CHECKING:
    from scaletest.runs.folder import RunFolder


@click.group("runs")
def command() -> None:
    """List, show, share and delete stored runs.

    Wherever a run is asked for, its name will do, the end of its name, its folder, or LAST for the
    newest.
    """


@command.command("list")
@options.output
def list_runs(output: str) -> None:
    """List the runs of this user, the oldest first."""
    from scaletest.runs.places import default_root, runs

    root = default_root(os.environ)
    rows = [_row(folder) for folder in runs(root)]
    if output != "table":
        options.show(rows, output)
        return
    if not rows:
        echo(f"no run in {root}; make one with: scaletest validate", err=True)
        return
    columns = ("run", "when", "kind", "verdict", "steps", "seconds", "workload")
    cells = [columns, *(_cells(row) for row in rows)]
    widths = [max(len(row[index]) for row in cells) for index in range(len(columns) - 1)]
    for row in cells:
        echo(
            "  ".join(
                [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]
            )
        )


@command.command()
@stored.run_argument()
@options.output
def show(run: str, output: str) -> None:
    """Show one run: its summary, judged anew from its records, and where it was made."""
    report = stored.report(stored.find(run))
    environment = report.head.environment
    if output != "table":
        options.show({**report.data(), "environment": dict(environment)}, output)
        return
    _told(environment)
    stored.show(report)


def _told(environment: Mapping[str, Any]) -> None:
    for name, value in environment.items():
        if value not in ("", [], None) and name != "schema_version":
            echo(f"{name.replace('_', ' '):12}  {_words(value)}")


@command.command()
@stored.run_argument()
@click.argument("file", type=click.Path(path_type=Path))
def export(run: str, file: Path) -> None:
    """Write a run into one file, FILE.tar.gz: plan, environment, records and result, without logs.

    The same run gives the same bytes.
    """
    from scaletest.runs import transfer

    folder = stored.find(run)
    transfer.export(folder, file)
    echo(f"{folder.name}: written to {file}")


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--name", default="", metavar="NEW", help="Name of the run here. [default: the one that it had]"
)
@click.option(
    "--max-size",
    type=click.FloatRange(min=0, min_open=True),
    default=2048.0,
    show_default=True,
    metavar="MB",
    help=(
        "Refuse what unpacks to more than this, and lines or JSON files of more than 1/128 of it,"
        " 16 MiB at least."
    ),
)
def import_run(file: Path, name: str, max_size: float) -> None:
    """Take a run from a file that export wrote. The file is not trusted: only a run's own files are
    read.
    """
    from scaletest.model import checks
    from scaletest.runs import transfer
    from scaletest.runs.places import default_root

    most = checks.number(max_size, "the largest size in MB", maximum=1e9)
    folder = transfer.import_run(file, default_root(os.environ), name, int(most * 1e6))
    echo(f"{folder.name}: imported into {folder.path}")


@command.command()
@stored.run_argument()
@click.argument("where", metavar="FILE|URL")
def sql(run: str, where: str) -> None:
    """Write the samples of a saturation run to a database, as saturate --sql does: SQLite, or
    PostgreSQL by URL.

    Steps that are there already are left as they are.
    """
    from scaletest.cli import saturate_sql
    from scaletest.render.numbers import plural
    from scaletest.saturation.folder import SaturationFolder

    folder = SaturationFolder(stored.find(run))
    count = saturate_sql.filled(folder, where)
    echo(f"{folder.name}: {plural(count, 'step')} written to {saturate_sql.public(where)}")


@command.command()
@stored.run_argument("runs", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask.")
def delete(runs: tuple[str, ...], yes: bool) -> None:
    """Delete runs, after asking. A run that is being measured is not deleted."""
    folders = list({folder.path.resolve(): folder for folder in map(stored.find, runs)}.values())
    for folder in folders:
        if folder.in_use:
            raise UsageError(
                f"run {folder.name} is in use by another process", hint="wait until it has ended"
            )
    names = ", ".join(str(folder.path) for folder in folders)
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(
                f"there is no terminal to ask whether to delete {names}", hint="add --yes"
            )
        if not confirm(f"delete {names}?"):
            echo("nothing deleted", err=True)
            return
    for folder in folders:
        gone = folder.remove()
        left = "" if gone else f"; other files are left in {folder.path}"
        echo(f"{folder.name}: deleted{left}")


def _row(folder: RunFolder) -> dict[str, Any]:
    """One run for the list; what cannot be read is null, and `problem` says why."""
    from scaletest.runs.registry import summary

    in_use = folder.in_use
    row: dict[str, Any] = {
        "run": folder.name,
        "kind": None,
        "began": None,
        "workload": None,
        "steps": None,
        "verdict": str(VerdictKind.RUNNING) if in_use else None,
        "elapsed_s": None,
        "in_use": in_use,
        "folder": str(folder.path),
        "problem": "",
    }
    try:
        plan, environment, result = summary(folder)
    except (ScaletestError, OSError) as error:
        return {**row, "problem": str(error)}
    stored_verdict = result.get("verdict")
    verdict = stored_verdict.get("kind") if isinstance(stored_verdict, dict) else None
    return {
        **row,
        "kind": folder.kind,
        "began": environment.get("began"),
        "workload": plan.workload,
        "steps": list(plan.steps),
        "verdict": row["verdict"] or verdict,
        "elapsed_s": result.get("elapsed_s"),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    verdict = cut(str(row["verdict"] or "none"), 10)
    seconds = f"{row['elapsed_s']:.0f}" if isinstance(row["elapsed_s"], int | float) else "-"
    steps = ",".join(map(str, row["steps"] or ())) or "-"
    what = cut(row["workload"] or f"cannot be read: {row['problem']}", 200)
    when = cut(str(row["began"] or "-"), 30).replace("T", " ").replace("+00:00", "Z")
    return row["run"], when, row["kind"] or "-", verdict, steps, seconds, what


def _words(value: Any) -> str:
    """One value as text; it may come from anywhere, so nothing in it reaches the terminal as a
    command.
    """
    if isinstance(value, dict):
        value = [f"{name} {each}" for name, each in value.items()]
    return cut(" ".join(map(str, value)) if isinstance(value, list) else str(value), 400)
