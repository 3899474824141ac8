"""A stored saturation run as reports see it: what lies in its folder, judged anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from scaletest.analysis.saturation.evaluation import SaturationResult, evaluate
from scaletest.model import wire
from scaletest.model.attempt import Attempt
from scaletest.runs.places import reference
from scaletest.saturation.folder import SaturationFolder


@dataclass(frozen=True, slots=True)
class SaturationRun:
    """name: by which commands find it. extra: what was on record beside the steps (tuning, agents,
    service).
    """

    name: str
    folder: str
    result: SaturationResult
    environment: dict[str, Any] = field(default_factory=dict)
    samples: Mapping[int, Sequence[Attempt]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)


def read(folder: SaturationFolder, root: Path) -> SaturationRun:
    """The run in a folder; UsageError when it cannot be read. root: where runs are found by
    name.
    """
    stored = folder.load()
    said = stored.result
    result = evaluate(
        stored.plan,
        stored.steps,
        stored.samples,
        interrupted=str(said.get("interrupted") or ""),
        lost=str(said.get("lost") or ""),
        elapsed_s=float(said["elapsed_s"])
        if isinstance(said.get("elapsed_s"), int | float)
        else 0.0,
    )
    extra = said.get("extra")
    return SaturationRun(
        reference(folder.path, root),
        str(folder.path),
        with_noticed(result, wire.texts(said.get("noticed"))),
        stored.environment,
        stored.samples,
        extra if isinstance(extra, dict) else {},
    )


def with_noticed(result: SaturationResult, noticed: Sequence[str]) -> SaturationResult:
    """The result with the warnings from before the run in front."""
    return replace(result, warnings=(*noticed, *result.warnings))
