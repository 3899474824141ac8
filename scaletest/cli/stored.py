"""Stored runs on the command line: the argument that names one, and its judgement made anew from its records."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from scaletest.model import wire

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from scaletest.analysis.compare import Side
    from scaletest.analysis.evaluation import Evaluation
    from scaletest.archive import RunFolder

F = TypeVar("F", bound=Callable[..., Any])


def run_argument(name: str = "run", **options: Any) -> Callable[[F], F]:
    """A run by name, the end of a name, path, or LAST; completed by the shell."""
    return click.argument(name, shell_complete=_complete, **options)


def find(name: str) -> RunFolder:
    """The run of that name; UsageError when there is none."""
    from scaletest import archive

    return archive.find(name, os.environ)


def judged(folder: RunFolder) -> Evaluation:
    """What the run's records say; the same as its result.json when the program is the same."""
    from scaletest.analysis.evaluation import evaluate
    from scaletest.validation.runner import BOOTSTRAP_SEED

    stored = folder.load()
    known = wire.take(stored.result, "result.json", {"interrupted": str, "elapsed_s": (int, float)})
    return evaluate(
        stored.plan,
        stored.measurements,
        stored.records,
        random.Random(BOOTSTRAP_SEED),
        stored.background,
        interrupted=known.get("interrupted", ""),
        elapsed_s=known.get("elapsed_s", 0.0),
    )


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
