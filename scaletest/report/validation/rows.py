"""The steps of a validation as every form shows them, one row a step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scaletest.analysis.evaluation import Evaluation
from scaletest.analysis.resources import StepResources
from scaletest.analysis.scaling import Scaled
from scaletest.analysis.steps import Step


@dataclass(frozen=True, slots=True)
class Row:
    """A step, its state, and its nodes' work; None without enough throughput or samples."""

    step: Step
    scaled: Scaled | None
    resources: StepResources | None = None


def rows(result: Evaluation) -> list[Row]:
    """One row for every step, in order."""
    scaled = {one.workers: one for one in result.growth.scaling}
    resources = {one.workers: one for one in result.resources}
    return [Row(step, scaled.get(step.level), resources.get(step.workers)) for step in result.steps]


def works(found: Sequence[Row]) -> list[str]:
    """The figures of work that a step reports, each a column of its own."""
    return list(dict.fromkeys(name for row in found for name in row.step.work))
