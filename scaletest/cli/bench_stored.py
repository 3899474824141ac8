"""scaletest bench list, show, explain and compare: kinds, and runs that are stored."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict, dataclass

import click
import yaml

from scaletest.analysis.benchmark_run import BenchmarkRun
from scaletest.benchmarks.run_type import RUN_TYPE, BenchmarkFolder
from scaletest.benchmarks.runner import counts
from scaletest.cli import options as shared
from scaletest.cli import stored
from scaletest.cli.compare import compare_options, compared
from scaletest.cli.output import Output
from scaletest.kinds import fields
from scaletest.kinds.kind import CrowdSpec, MpiSpec, PairSpec
from scaletest.kinds.registry import API_VERSION, KINDS, kind_of
from scaletest.model.errors import ScaletestError, UsageError
from scaletest.report.benchmark import benchmark_report
from scaletest.runs.folder import RunFolder
from scaletest.runs.places import default_root, runs
from scaletest.runs.registry import judge, type_of


def kinds() -> tuple[list[dict[str, str]], str]:
    """All kinds."""
    rows = [{"kind": kind.name, "help": kind.help} for kind in KINDS.values()]
    width = max(len(row["kind"]) for row in rows)
    return rows, "\n".join(f"{row['kind']:{width}}  {row['help']}" for row in rows)


@dataclass(frozen=True, slots=True)
class _Field:
    """A field of a kind's spec. own: the kind alone has it, others do not."""

    field: str
    type: str
    default: object
    help: str
    choices: list[str]
    minimum: float | None
    maximum: float | None
    own: bool


def explained(name: str) -> tuple[dict[str, object], str]:
    """One kind, as data and as text."""
    kind = kind_of(name)
    spec = [_field(field) for field in fields.fields_of(kind.spec)]
    example = {
        "apiVersion": API_VERSION,
        "kind": kind.name,
        "metadata": {"name": kind.name.lower()},
        "spec": {field.field: field.default for field in spec if field.own},
    }
    document = yaml.safe_dump(example, sort_keys=False)
    headlines = [
        {"name": headline.name, "unit": headline.unit, "help": headline.help}
        for headline in kind.headlines
    ]
    explanation: dict[str, object] = {
        "kind": kind.name,
        "help": kind.help,
        "fields": [asdict(field) for field in spec],
        "headlines": headlines,
        "example": document,
    }
    width = max(len(field.field) for field in spec)
    lines = [f"{kind.name}: {kind.help}", *kind.notes, "", "spec"]
    for field in spec:
        lines.append(
            f"  {field.field:{width}}  {field.type}, {_default(field.default)}."
            f" {field.help}{_limits(field)}"
        )
    lines += ["", "numbers"]
    for headline in kind.headlines:
        lines.append(f"  {headline.name}  {headline.unit or 'a number'}. {headline.help}")
    lines += ["", "example", *(f"  {line}" for line in document.splitlines())]
    return explanation, "\n".join(lines)


def _field(field: fields.SpecField) -> _Field:
    default = field.default
    if field.nested:
        default = fields.written(default, defaults=False)
    return _Field(
        field.name,
        field.kind,
        list(default) if isinstance(default, tuple) else default,
        field.help,
        list(field.choices),
        field.minimum,
        field.maximum,
        field.name not in _COMMON,
    )


def _limits(field: _Field) -> str:
    if field.choices:
        return f" One of {', '.join(map(str, field.choices))}."
    low, high = field.minimum, field.maximum
    if low is None and high is None:
        return ""
    if low is not None and high is not None:
        return f" {low:g} to {high:g}."
    return f" From {low or 0:g}."


def _default(default: object) -> str:
    if default in ("", None) or default in ([], {}):
        return "not set"
    text = yaml.safe_dump(default, default_flow_style=True).removesuffix("...\n").strip()
    return f"default {text}"


def _common() -> frozenset[str]:
    names: set[str] = set()
    for spec in (PairSpec, CrowdSpec, MpiSpec):
        names.update(field.name for field in fields.fields_of(spec))
    return frozenset(names - {"transport"})


_COMMON = _common()


@click.command("list")
@shared.output()
def list_runs(output: Output) -> None:
    """List the runs of benchmarks of this user, the oldest first."""
    of_benchmarks = []
    for folder in runs(default_root(os.environ)):
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
        stored_run = BenchmarkFolder(folder).load()
        succeeded, failed = counts(stored_run.plan, stored_run.ended)
    except ScaletestError as error:
        return {**row, "problem": str(error)}
    return {
        **row,
        "name": stored_run.plan.name,
        "what": stored_run.plan.workload,
        "count": stored_run.plan.counted,
        "succeeded": succeeded,
        "failed": failed,
        "running": folder.in_use,
    }


@click.command()
@stored.run_argument()
@stored.report_output(bare_forms=False)
def show(run: str, output: Output) -> None:
    """Show a run of benchmarks. csv: one row a benchmark; junit: one test case a benchmark."""
    stored.spared(stored.find(run), output.path)
    stored.deliver(benchmark_report(_run(run)), output)


@click.command()
@click.argument("kind", required=False)
@shared.output()
def explain(kind: str | None, output: Output) -> None:
    """Explain a KIND: its fields with defaults, its numbers with units, an example. Without KIND:
    list them.
    """
    data, text = explained(kind) if kind else kinds()
    output.show(data, [text])


@click.command()
@stored.run_argument("base")
@stored.run_arguments("candidates")
@compare_options
def compare(
    base: str, candidates: tuple[str, ...], tolerance: float, force: bool, output: Output
) -> int:
    """Compare runs of benchmarks at every permutation that they have, as scaletest compare does.

    A number is worse when it differs beyond chance and by more than the tolerance; two repetitions
    are needed on both sides, three or more are better.

    Exit code 0 PASS: none is worse. 3 FAIL: one is. 4 INVALID: undecided.
    """
    folders = [stored.find(_run(name).folder) for name in (base, *candidates)]
    return compared(folders, tolerance, force, output)


def _run(name: str) -> BenchmarkRun:
    folder = stored.find(name)
    judged = judge(folder)
    if not isinstance(judged, BenchmarkRun):
        raise UsageError(f"{folder.path} holds no benchmarks", hint="see: scaletest bench list")
    return judged
