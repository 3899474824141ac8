"""The search for saturation as a run type: a stored run, judged anew, and its measures."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from scaletest.analysis.comparison import (
    NOWHERE,
    Contrast,
    Measure,
    Place,
    differences,
    percentiles,
)
from scaletest.analysis.estimate import exactly
from scaletest.analysis.saturation.evaluation import SaturationResult, evaluate
from scaletest.analysis.saturation.step import Assessed
from scaletest.model import Verdict, wire
from scaletest.model.saturation import KIND, Attempt, LoadKind, Phase, SaturationPlan
from scaletest.runs.folder import COMMON, RunFolder
from scaletest.runs.places import default_root, reference
from scaletest.saturation.folder import SaturationFolder

# What the saturation point is one of, and what does not change what is measured.
WORKLOAD = {"target", "load", "limit", "success", "poisson"}
NO_MATTER = {"wanted", "seed", "client_name"}


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

    @property
    def verdict(self) -> Verdict:
        """The verdict."""
        return self.result.verdict

    def while_running(self) -> Self:
        """A copy without a verdict, since more is still coming."""
        return replace(
            self, result=replace(self.result, verdict=self.result.verdict.while_running())
        )


class SaturationType:
    """What the rest of the product asks about them."""

    name = KIND
    layout = COMMON

    def plan(self, document: dict[str, Any]) -> SaturationPlan:
        """Read and check a plan; InvalidValue names the field."""
        return SaturationPlan.from_dict(document)

    def check(self, folder: RunFolder) -> None:
        """UsageError or InvalidValue unless the whole run can be read."""
        SaturationFolder(folder).check()

    def judge(self, folder: RunFolder) -> SaturationRun:
        """The run in a folder; UsageError when it cannot be read."""
        return read(SaturationFolder(folder), default_root(os.environ))

    def measures(self, judged: SaturationRun) -> Sequence[Measure]:
        """The capacity, and the numbers of each level; of a level that was measured again the last
        ones.
        """
        result = judged.result
        capacity = []
        if result.point is not None:
            capacity.append(Measure("capacity", NOWHERE, result.point, "1/s", True, decides=True))
        if result.parallel is not None:
            capacity.append(
                Measure("in_flight", NOWHERE, exactly(result.parallel), "requests", None)
            )
        levels = {
            (step.step.load, step.step.level): step
            for step in result.steps
            if step.step.phase not in (Phase.WARM, Phase.OPERATE) and not step.tester
        }
        names = {LoadKind.OPEN: "rate", LoadKind.CLOSED: "in_flight"}
        places: list[tuple[Place, Assessed]] = [
            ({names[LoadKind(load)]: level}, step) for (load, level), step in sorted(levels.items())
        ]
        if result.operating is not None:
            places.append(({"phase": "operating"}, result.operating))
        numbers = itertools.chain.from_iterable(itertools.starmap(_of_step, places))
        return [*capacity, *numbers]

    def contrast(self, base: SaturationRun, candidate: SaturationRun) -> Contrast:
        """What the plans of two runs have to do with each other, and whether both found a limit."""
        plans = [run.result.plan.to_dict() for run in (base, candidate)]
        limits = [run.result.point for run in (base, candidate)]
        return Contrast(
            differences(plans[0], plans[1], WORKLOAD, NO_MATTER),
            [] if all(limits) else ["the saturation point"],
        )


RUN_TYPE = SaturationType()


def read(folder: SaturationFolder, root: Path) -> SaturationRun:
    """The run in a folder; UsageError when it cannot be read. root: where runs are found by
    name.
    """
    stored = folder.load()
    recorded, elapsed_s = stored.result, stored.result.get("elapsed_s")
    result = evaluate(
        stored.plan,
        stored.steps,
        stored.samples,
        interrupted=str(recorded.get("interrupted") or ""),
        lost=str(recorded.get("lost") or ""),
        elapsed_s=float(elapsed_s)
        if isinstance(elapsed_s, int | float) and 0 <= elapsed_s <= sys.float_info.max
        else 0.0,
    )
    extra = recorded.get("extra")
    return SaturationRun(
        reference(folder.path, root),
        str(folder.path),
        with_noticed(result, wire.texts(recorded.get("noticed"))),
        stored.environment,
        stored.samples,
        extra if isinstance(extra, dict) else {},
    )


def with_noticed(result: SaturationResult, noticed: Sequence[str]) -> SaturationResult:
    """The result with the warnings from before the run in front."""
    return replace(result, warnings=(*noticed, *result.warnings))


def _of_step(where: Place, step: Assessed) -> Iterator[Measure]:
    """The numbers of one step."""
    yield Measure("goodput", where, step.goodput, "1/s", True)
    yield from percentiles("latency", where, step.latency)
    yield Measure("failures", where, exactly(1.0 - step.success), "", False)
