"""Stored runs on the command line: the argument that names one, and its judgement made anew from its records."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scaletest.model.errors import UsageError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from scaletest.analysis.compare import Side
    from scaletest.archive import RunFolder
    from scaletest.report.run import Run
    from scaletest.report.saturation.run import SaturationRun

F = TypeVar("F", bound=Callable[..., Any])


def run_argument(name: str = "run", **options: Any) -> Callable[[F], F]:
    """A run by name, the end of a name, path, or LAST; completed by the shell."""
    return click.argument(name, shell_complete=_complete, **options)


def find(name: str) -> RunFolder:
    """The run of that name; UsageError when there is none."""
    from scaletest import archive

    return archive.find(name, os.environ)


def spared(folder: RunFolder, *targets: Path | None) -> None:
    """UsageError when what shall be written would take the place of what the run consists of."""
    own = {(folder.path / name).resolve() for name in folder.files}
    for target in targets:
        if target is not None and target.resolve() in own:
            raise UsageError(f"{target} is a file of the run itself", hint="give another FILE")


def judged(folder: RunFolder) -> Run:
    """What a validation's records say, judged anew; UsageError when they cannot be read."""
    from scaletest.archive import default_root
    from scaletest.report.run import read

    return read(folder, default_root(os.environ))


def saturation(folder: RunFolder) -> SaturationRun | None:
    """A saturation run, judged anew; None when it is of another kind."""
    from scaletest.archive import default_root
    from scaletest.model.saturation import KIND

    if folder.kind != KIND:
        return None
    from scaletest.report.saturation.run import read

    return read(folder.path, default_root(os.environ))


def side(folder: RunFolder) -> Side:
    """The run as one side of a comparison."""
    from scaletest.analysis.compare import Side
    from scaletest.analysis.steps import summarise

    stored = folder.load()
    return Side(stored.plan, summarise(stored.plan, stored.measurements, stored.records))


def _complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    from scaletest.archive import default_root
    from scaletest.archive.runs import runs

    names = [run.name for run in reversed(runs(default_root(os.environ)))]
    return [CompletionItem(name) for name in [*names, "LAST"] if name.startswith(incomplete)]
