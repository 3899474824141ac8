"""The rows that every report shows, one a step, and their layout in plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.resources import StepResources
from scaletest.analysis.scaling import Scaled
from scaletest.analysis.steps import Step


@dataclass(frozen=True, slots=True)
class Row:
    """A step, how far it got, and what its nodes did; None without throughput enough, and without
    samples.
    """

    step: Step
    scaled: Scaled | None
    resources: StepResources | None = None


@dataclass(frozen=True, slots=True)
class Column:
    """A title and a text for every row."""

    title: str
    cells: list[str]

    @property
    def width(self) -> int:
        """Characters of the widest text."""
        return max(len(text) for text in (self.title, *self.cells))


def rows(result: Evaluation) -> list[Row]:
    """One row for every step, in order."""
    scaled = {one.workers: one for one in result.growth.scaling}
    resources = {one.workers: one for one in result.resources}
    return [Row(step, scaled.get(step.level), resources.get(step.workers)) for step in result.steps]


def works(found: Sequence[Row]) -> list[str]:
    """The figures of work that a step reports, each a column of its own."""
    return list(dict.fromkeys(name for row in found for name in row.step.work))


def aligned(columns: Sequence[Column], width: int) -> list[str]:
    """Title and rows, to the right, two blanks apart or one where that is too wide."""
    wide = sum(column.width for column in columns) + 2 * (len(columns) - 1)
    gap = "  " if wide <= width else " "
    texts = [[column.title, *column.cells] for column in columns]
    padded = [
        [text.rjust(column.width) for text in cells]
        for column, cells in zip(columns, texts, strict=True)
    ]
    return [gap.join(line) for line in zip(*padded, strict=True)]
