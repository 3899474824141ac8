"""Stored runs on the command line: the argument that names one, and its judgement made anew from its records."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

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
