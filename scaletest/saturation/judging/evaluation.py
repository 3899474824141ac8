"""The result of a saturation run: saturation point, knee, operating point, verdict.

The operating point is measured after that and decides nothing: its disturbances are warnings.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from scaletest.model import Verdict
from scaletest.model.attempt import Attempt
from scaletest.model.declared import INNER, VERSIONED, called
from scaletest.model.writing import Written
from scaletest.saturation.judging.point import saturation_point
from scaletest.saturation.judging.sequence import SaturationSequence, replay, search_steps
from scaletest.saturation.judging.step import Assessed, assess
from scaletest.saturation.judging.verdict import judge, lateness_that_matters
from scaletest.saturation.judging.warnings import warnings_of
from scaletest.saturation.plan import KIND, LoadKind, SaturationPlan, SaturationStep
from scaletest.stats.estimate import Estimate
from scaletest.stats.knee import kneedle
from scaletest.stats.scaling import MeasuredThroughput

# Levels of a curve are this factor apart at least: those of the bisection lie so close that noise
# would bend it.
APART = 1.1


@dataclass(frozen=True, slots=True)
class SaturationResult(Written):
    """The result of a run."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}

    plan: SaturationPlan
    verdict: Verdict
    point: Annotated[
        Estimate | None,
        called("saturation_per_s"),
        "requests a second, interval from the bracket and the proof of its ends.",
    ]
    parallel: Annotated[
        int | None,
        called("saturation_in_flight"),
        "smallest number in flight that reaches it (closed).",
    ]
    warm: Annotated[Assessed | None, INNER]
    steps: tuple[Assessed, ...]
    operating: Annotated[
        Assessed | None,
        called("operating_point"),
        "the step at 70 % of it, None when not measured, or when the tester was late in it.",
    ]
    knee: Annotated[int | None, "level from which more load brings less, by Kneedle"]
    searched: Annotated[int, called("steps_before_confirmation"), "steps before it was confirmed."]
    warnings: tuple[str, ...]
    elapsed_s: float
    interrupted: str
    lost: Annotated[str, 'how a load agent was lost, "" when none was.'] = ""


def evaluate(
    plan: SaturationPlan,
    steps: Sequence[SaturationStep],
    samples: Mapping[int, Sequence[Attempt]],
    *,
    interrupted: str = "",
    lost: str = "",
    elapsed_s: float = 0.0,
) -> SaturationResult:
    """Judge a run by its steps and their samples."""
    assessed = [assess(plan, step, samples.get(step.number, ())) for step in steps]
    return conclude(replay(plan, assessed), interrupted=interrupted, lost=lost, elapsed_s=elapsed_s)


def conclude(
    course: SaturationSequence, *, interrupted: str = "", lost: str = "", elapsed_s: float = 0.0
) -> SaturationResult:
    """Return the result of a sequence as far as it was measured."""
    plan, bracket = course.plan, course.bracket
    point, operating = saturation_point(course), course.operating
    if lateness_that_matters(course, point):
        # it would be a figure of the tester
        point, operating = None, None
    low = bracket.low if bracket and not plan.open else None
    return SaturationResult(
        plan=plan,
        verdict=judge(course, point, interrupted, lost),
        point=point,
        parallel=int(low) if low else None,
        warm=course.warm,
        steps=tuple(course.steps),
        operating=None if operating and operating.tester else operating,
        knee=kneedle(_throughput_curve(course)),
        searched=bracket.steps if bracket else len(course.steps),
        warnings=tuple(warnings_of(course, is_known=point is not None)),
        elapsed_s=elapsed_s,
        interrupted=interrupted,
        lost=lost,
    )


def _throughput_curve(course: SaturationSequence) -> list[MeasuredThroughput]:
    """Return throughput against requests in flight or the offered rate, each level once."""
    load = course.plan.load
    first_at: dict[int, Assessed] = {}
    for step in search_steps(course):
        usable = step.step.load == load and not step.tester
        if usable and step.goodput.value > 0 and round(step.step.level) > 0:
            first_at.setdefault(round(step.step.level), step)
    curve: list[MeasuredThroughput] = []
    for level, step in sorted(first_at.items()):
        if load == LoadKind.OPEN and curve and level < APART * curve[-1].workers:
            continue
        half = step.goodput.high - step.goodput.value
        relative = half / step.goodput.value if math.isfinite(half) else math.inf
        curve.append(MeasuredThroughput(level, step.goodput.value, relative))
    return curve
