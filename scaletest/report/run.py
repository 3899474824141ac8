"""A stored run as reports see it: what lies in its folder, judged anew."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scaletest.analysis.evaluation import Evaluation, evaluate
from scaletest.analysis.growth import SEED
from scaletest.analysis.steps import Rows
from scaletest.model import wire
from scaletest.model.errors import InvalidValue, UsageError
from scaletest.runs.places import reference
from scaletest.validation.folder import ValidationFolder


@dataclass(frozen=True, slots=True)
class Run:
    """name: by which commands find the run. folder: where it is. environment: whatever
    environment.json holds.
    """

    name: str
    folder: str
    result: Evaluation
    environment: dict[str, Any] = field(default_factory=dict)
    records: Rows = field(default_factory=dict)


def read(folder: ValidationFolder, root: Path) -> Run:
    """The run in a folder; UsageError when it cannot be read. root: where runs are found by
    name.
    """
    try:
        stored = folder.load()
        result = evaluate(
            stored.plan,
            stored.measurements,
            stored.records,
            random.Random(SEED),
            stored.background,
            interrupted=_text(stored.result.get("interrupted")),
            elapsed_s=_seconds(stored.result.get("elapsed_s")),
            samples=stored.samples,
            noticed=wire.texts(stored.result.get("noticed")),
            damaged=stored.damaged,
        )
    except InvalidValue as error:
        raise UsageError(
            f"run {folder.name} cannot be read: {error.message}", hint=f"look into {folder.path}"
        ) from error
    return Run(
        reference(folder.path, root), str(folder.path), result, stored.environment, stored.records
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _seconds(value: object) -> float:
    return (
        float(value)
        if isinstance(value, int | float) and math.isfinite(value) and value >= 0
        else 0.0
    )
