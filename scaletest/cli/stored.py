"""Stored runs on the command line: the argument that names one, and its judgement made anew from
its records.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scaletest.cli.output import write
from scaletest.kinds.plan import KIND as BENCHMARK
from scaletest.model.errors import UsageError
from scaletest.model.lifecycle_plan import KIND as LIFECYCLE
from scaletest.model.saturation import KIND as SATURATION
from scaletest.report import formats
from scaletest.runs.registry import type_of

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from scaletest.analysis.benchmark_run import BenchmarkRun
    from scaletest.analysis.compare import Side
    from scaletest.analysis.evaluation import Evaluation
    from scaletest.analysis.lifecycle.result import LifecycleResult
    from scaletest.analysis.saturation.evaluation import SaturationResult
    from scaletest.render.contents import Report
    from scaletest.report.run import Run
    from scaletest.report.saturation.run import SaturationRun
    from scaletest.runs.folder import RunFolder

F = TypeVar("F", bound=Callable[..., Any])
# what a run of any kind was judged as
J = TypeVar("J", "Evaluation", "SaturationResult", "BenchmarkRun", "LifecycleResult")


def run_argument(name: str = "run", **options: Any) -> Callable[[F], F]:
    """A run by name, the end of a name, path, or LAST; completed by the shell."""
    return click.argument(name, shell_complete=_complete, **options)


def find(name: str) -> RunFolder:
    """The run of that name; UsageError when there is none."""
    from scaletest.runs.places import find as find_run

    return find_run(name, os.environ)


def spared(folder: RunFolder, *targets: Path | None) -> None:
    """UsageError when what shall be written would take the place of what the run consists of."""
    own = {(folder.path / name).resolve() for name in folder.layout.files}
    for target in targets:
        if target is not None and target.resolve() in own:
            raise UsageError(f"{target} is a file of the run itself", hint="give another FILE")


def report(folder: RunFolder) -> Report:
    """The report of a run of any type, judged anew unless it is still measured."""
    kind = type_of(folder).name
    if kind == SATURATION:
        from scaletest.report.saturation.report import saturation_report

        return saturation_report(saturation(folder))
    if kind == LIFECYCLE:
        from scaletest.cli import lifecycle_files
        from scaletest.lifecycle.folder import LifecycleFolder

        return lifecycle_files.stored_report(LifecycleFolder(folder.path))
    if kind == BENCHMARK:
        from scaletest.report.benchmark.report import benchmark_report

        return benchmark_report(benchmarks(folder))
    from scaletest.report.validation.report import validation_report

    return validation_report(judged(folder))


def show(report: Report) -> None:
    """Print the summary of a run on standard output, in the width of the terminal if it is one."""
    from rich.console import Console

    from scaletest.report.formats import text

    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=text.WIDTH)
    text.show(report, console)


def deliver(report: Report, form: str | None, output: Path) -> None:
    """Write a report in the form that was asked for, else in that of the file's suffix."""
    form = formats.chosen(form, output)
    if form == "text" and str(output) == "-":
        show(report)
    else:
        write(formats.render(report, form), output)


def judged(folder: RunFolder) -> Run:
    """What a validation's records say, judged anew unless it is still measured; UsageError when
    they cannot be read.
    """
    from scaletest.report.run import read
    from scaletest.runs.places import default_root
    from scaletest.validation.folder import ValidationFolder

    running = folder.in_use
    found = read(ValidationFolder(folder), default_root(os.environ))
    return replace(found, result=_shown(found.result)) if running else found


def saturation(folder: RunFolder) -> SaturationRun:
    """A saturation run, judged anew unless it is still measured."""
    from scaletest.report.saturation.run import read
    from scaletest.runs.places import default_root
    from scaletest.saturation.folder import SaturationFolder

    running = folder.in_use
    found = read(SaturationFolder(folder), default_root(os.environ))
    return replace(found, result=_shown(found.result)) if running else found


def benchmarks(folder: RunFolder) -> BenchmarkRun:
    """A run of benchmarks, judged anew unless it is still measured."""
    from scaletest.benchmarks.folder import BenchmarkFolder
    from scaletest.benchmarks.run_type import judge

    running = folder.in_use
    found = judge(BenchmarkFolder(folder))
    return _shown(found) if running else found


def lifecycle(path: Path, judge: Callable[[], LifecycleResult]) -> LifecycleResult:
    """A lifecycle's result as it is shown: without a verdict while somebody submits or samples."""
    from scaletest.lifecycle.folder import LifecycleFolder

    # looked at first: who ends while we read has written more than we read
    running = LifecycleFolder(path).files.in_use
    result = judge()
    return _shown(result) if running else result


def _shown(found: J) -> J:
    """The same without a verdict, since more is still coming."""
    return replace(found, verdict=found.verdict.while_running())


def side(folder: RunFolder) -> Side:
    """The run as one side of a comparison."""
    from scaletest.analysis.compare import Side
    from scaletest.analysis.steps import summarise
    from scaletest.validation.folder import ValidationFolder

    stored = ValidationFolder(folder).load()
    return Side(stored.plan, summarise(stored.plan, stored.measurements, stored.records))


def _complete(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from scaletest.runs.places import default_root, runs

    names = [run.name for run in reversed(runs(default_root(os.environ)))]
    return [CompletionItem(name) for name in [*names, "LAST"] if name.startswith(incomplete)]
