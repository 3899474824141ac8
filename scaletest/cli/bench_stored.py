"""scaletest bench list, show, explain and compare: kinds, and runs that are stored."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from itertools import chain
from typing import Any

import click
import yaml

from scaletest.benchmarks.run_type import RUN_TYPE, BenchmarkFolder
from scaletest.benchmarks.runner import counts
from scaletest.cli import bench_names, stored
from scaletest.cli import options as shared
from scaletest.cli.compare import compare_options, compared
from scaletest.cli.headings import HeadedCommand
from scaletest.cli.output import Output, echo
from scaletest.kinds import fields
from scaletest.kinds.kind import CrowdSpec, MpiSpec, PairSpec
from scaletest.kinds.registry import API_VERSION, KINDS, kind_of
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.plugins.registry import BUILT_IN
from scaletest.runs.folder import RunFolder
from scaletest.runs.registry import report, type_of


def kinds() -> tuple[list[dict[str, str]], str]:
    """All kinds, and the packages that those come from which are not built in."""
    for problem in KINDS.problems:
        echo(f"warning: {problem}", err=True)
    rows = [
        {"kind": kind.name, "help": kind.help, "package": KINDS.package(kind.name)}
        for kind in KINDS.values()
    ]
    width = max(len(row["kind"]) for row in rows)
    return rows, "\n".join(f"{row['kind']:{width}}  {row['help']}{_source(row)}" for row in rows)


def _source(row: Mapping[str, str]) -> str:
    return "" if row["package"] == BUILT_IN else f" ({row['package']})"


def explained(name: str) -> tuple[dict[str, object], str]:
    """One kind, as data and as text."""
    kind = kind_of(name)
    spec = fields.fields_of(kind.spec)
    example = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
        "spec": {field.name: _default(field) for field in spec if field.name not in _COMMON},
    }
    document = yaml.safe_dump(example, sort_keys=False)
    explanation: dict[str, object] = {
        "kind": kind.name,
        "help": kind.help,
        "fields": list(map(_row_of_field, spec)),
        "headlines": [
            {
                "name": headline.name,
                "label": headline.label,
                "unit": headline.unit,
                "help": headline.help,
            }
            for headline in kind.headlines
        ],
        "example": document,
    }
    width = max(len(field.name) for field in spec)
    lines = [
        *(f"{kind.name}: {kind.help}", *kind.notes, "", "spec"),
        *(f"  {field.name:{width}}  {_described(field)}" for field in spec),
        *("", "numbers"),
        *(
            f"  {headline.name}  {headline.label}, {headline.unit or 'a number'}. {headline.help}"
            for headline in kind.headlines
        ),
        *("", "example"),
        *(f"  {line}" for line in document.splitlines()),
    ]
    return explanation, "\n".join(lines)


def _row_of_field(field: fields.SpecField) -> dict[str, object]:
    """A field of a kind's spec as data. own: the kind alone has it, others do not."""
    return {
        "field": field.name,
        "type": field.kind,
        "default": _default(field),
        "help": field.help,
        "choices": list(field.choices),
        "minimum": field.minimum,
        "maximum": field.maximum,
        "own": field.name not in _COMMON,
    }


def _described(field: fields.SpecField) -> str:
    """Type, default, description and limits of a field, in words."""
    default = _default(field)
    usual = "not set"
    if default not in ("", None, [], {}):
        written = yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip()
        usual = f"default {written}"
    limits = ""
    if field.choices:
        limits = f" One of {', '.join(map(str, field.choices))}."
    elif field.minimum is not None and field.maximum is not None:
        limits = f" {field.minimum:g} to {field.maximum:g}."
    elif field.minimum is not None or field.maximum is not None:
        limits = f" From {field.minimum or 0:g}."
    return f"{field.kind}, {usual}. {field.help}{limits}"


def _default(field: fields.SpecField) -> Any:
    """The default of a field as YAML has it."""
    if field.nested:
        return fields.written(field.default, defaults=False)
    return list(field.default) if isinstance(field.default, tuple) else field.default


# Fields that not one kind alone has.
_SHARED = chain(*(fields.fields_of(spec) for spec in (PairSpec, CrowdSpec, MpiSpec)))
_COMMON = {field.name for field in _SHARED} - {"transport"}


@click.command("list", cls=HeadedCommand)
@shared.output()
def list_runs(output: Output) -> None:
    """List the runs of benchmarks of this user, the oldest first.

    \b
    scaletest bench list
    """
    of_benchmarks = []
    for folder in stored.known():
        # nobody can tell the type of a run whose plan is damaged
        with contextlib.suppress(UsageError):
            if type_of(folder) is RUN_TYPE:
                of_benchmarks.append(folder)
    rows = list(map(_row, of_benchmarks))
    lines = []
    for row in rows:
        state = f"{row.get('succeeded', 0)}/{row.get('count', 0)} measured"
        if row.get("running"):
            state = "running"
        failed = f", {row['failed']} failed" if row.get("failed") else ""
        label = row["name"] or row.get("problem")
        lines.append(f"{row['run']}  {label}  {row['what'] or ''}  {state}{failed}")
    output.show(rows, lines)


def _row(folder: RunFolder) -> dict[str, object]:
    """A run for the list; what cannot be read is null, and `problem` says why."""
    row: dict[str, object] = {
        "run": folder.name,
        "began": folder.began,
        "name": None,
        "what": None,
    }
    try:
        stored_run = BenchmarkFolder(folder.path).load()
        succeeded, failed = counts(stored_run.plan, stored_run.ended)
    except ScaletestError as error:
        return {**row, "problem": str(error)}
    return {
        **row,
        "name": stored_run.plan.name,
        "what": stored_run.plan.described,
        "count": stored_run.plan.counted,
        "succeeded": succeeded,
        "failed": failed,
        "running": folder.in_use,
    }


@click.command(cls=HeadedCommand)
@stored.run_argument()
@shared.old_type
@shared.report_output(bare_forms=False)
def show(run: str, output: Output) -> None:
    """Show a run of benchmarks. csv: one row a benchmark; junit: one test case a benchmark.

    \b
    scaletest bench show LAST
    scaletest bench show LAST -o report.html
    """
    folder = _find(run)
    stored.spared(folder, output.path)
    stored.deliver(report(folder), output)


@click.command(cls=HeadedCommand)
@click.argument("kind", required=False, shell_complete=bench_names.kinds)
@shared.output()
def explain(kind: str | None, output: Output) -> None:
    """Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
    list them.

    \b
    scaletest bench explain
    scaletest bench explain Fio
    """
    data, text = explained(kind) if kind else kinds()
    output.show(data, [text])


@click.command(cls=HeadedCommand)
@stored.run_argument("base")
@stored.run_argument("candidates", -1, "RUN...")
@compare_options
def compare(
    base: str, candidates: tuple[str, ...], tolerance: float, force: bool, output: Output
) -> int:
    """Compare runs of benchmarks at every permutation that they have, as scaletest compare does.

    \b
    scaletest bench compare before-the-fix LAST
    scaletest bench compare before-the-fix LAST --tolerance 10% -o compare.html

    A number is worse when it differs beyond chance and by more than the tolerance; two repetitions
    are needed on both sides, three or more are better.

    Exit code 0 PASS: none is worse. 3 FAIL: one is. 4 INVALID: undecided.
    """
    return compared(list(map(_find, (base, *candidates))), tolerance, force, output)


def _find(name: str) -> RunFolder:
    """The run of benchmarks of that name."""
    folder = stored.find(name)
    if type_of(folder) is not RUN_TYPE:
        raise UsageError(f"{folder.path} holds no benchmarks", hint="see: scaletest bench list")
    return folder
