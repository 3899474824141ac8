"""Judge how a service scales from the visits of its steps. Pure.

The throughput of a visit has its interval from the scatter of windows, freed of their correlation.
Ratios are those of a validation: the ways up and down are mirror images, and an interval reaches to
the ratios of both.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar

from scaletest.model.declared import VERSIONED
from scaletest.stats.chance import Chance
from scaletest.stats.completions import Completions
from scaletest.stats.scaling import MeasuredThroughput, scaling_over
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.imported.judging import (
    ImportedEvaluation,
    ImportedStep,
    judge_steps,
)
from scaletest.validation.imported.plan import TOKENS
from scaletest.validation.judging.doubling import doubling_ratio
from scaletest.validation.judging.machine_trend import trend_of_run
from scaletest.validation.judging.slow_requests import find_slow
from scaletest.validation.judging.step_parts import StepPart, join_parts
from scaletest.validation.judging.throughput import Throughput, estimate_batches
from scaletest.validation.service.causes import explain_doubling, find_faults
from scaletest.validation.service.course import LEAST_WINDOWS
from scaletest.validation.service.plan import KIND, ServicePlan
from scaletest.validation.service.visit import ServiceVisit


@dataclass(frozen=True, slots=True)
class ServiceEvaluation(ImportedEvaluation):
    """How a service scales."""

    constants: ClassVar = {**VERSIONED, "kind": KIND}

    plan: ServicePlan
    interrupted: str = ""


def evaluate_service(
    plan: ServicePlan, visits: Sequence[ServiceVisit], chance: Chance, interrupted: str = ""
) -> ServiceEvaluation:
    """Judge these visits. chance: for the law's interval. interrupted: what ended the run early."""
    if any(visit.lengths_vary for visit in visits):
        plan = replace(plan, measure=TOKENS)
    if plan.in_flight is None and visits:
        # the number that was found is part of the workload, which a comparison looks at
        plan = replace(plan, in_flight=int((visits[0].in_flight or 1.0) // visits[0].count))
    steps = _make_steps(plan, visits)
    further = list(find_faults(plan, steps))
    if interrupted:
        further.append(Ground(Rank.OPEN, f"interrupted ({interrupted})", "run it again"))
    elif len(visits) < len(plan.turns):
        further.append(Ground(Rank.OPEN, "not every step was measured", "run it again"))
    judged = judge_steps(
        plan,
        steps,
        chance,
        closer="give a longer <step_time>",
        explain=explain_doubling,
        further=further,
    )
    values = {field.name: getattr(judged, field.name) for field in fields(judged)}
    return ServiceEvaluation(**values, interrupted=interrupted)


def _make_steps(plan: ServicePlan, visits: Sequence[ServiceVisit]) -> list[ImportedStep]:
    """Return the steps that were visited, each with its ratio to the one before."""
    doublings = plan.doublings
    parts = {visit.count: list[StepPart]() for visit in sorted(visits, key=lambda row: row.count)}
    for visit in visits:
        windows = visit.token_windows if plan.measure == TOKENS else visit.windows
        parts[visit.count].append(
            StepPart(
                visit.count,
                visit.repeat,
                visit.seconds,
                visit.middle_s,
                throughput_of_windows(windows, int(visit.successes or 0)),
                find_slow(Completions({})),
            )
        )
    trend = trend_of_run(list(parts.values()))
    steps: list[ImportedStep] = []
    for count, own_parts in parts.items():
        rate, _ = join_parts(doublings, own_parts)
        measured = MeasuredThroughput(count, rate.per_s, rate.relative)
        base = steps[0].rate if steps and steps[0].throughput.value > 0 else measured
        ratio = None
        if steps:
            parts_before = parts[steps[-1].workers]
            ratio = doubling_ratio(parts_before, own_parts, doublings, trend=trend)
        steps.append(
            ImportedStep(
                workers=count,
                throughput=rate.estimate,
                repeats=len(own_parts),
                relative=rate.error,
                freedom=rate.freedom,
                ratio=ratio,
                scaled=scaling_over(measured, base),
                results=tuple(visit for visit in visits if visit.count == count),
            )
        )
    return steps


def throughput_of_windows(windows: Sequence[float], completions: int) -> Throughput:
    """Return the mean of equal windows, with the interval of batch means.

    A request that lasts into the next window adds to both, so neighbours are alike.
    """
    if len(windows) < LEAST_WINDOWS or min(windows) < 0 or not any(windows):
        return Throughput(0.0, math.inf, completions, 0, False)
    mean = estimate_batches(windows)
    freedom = max(1, int(mean.freedom))
    return Throughput(statistics.fmean(windows), mean.half_width, completions, freedom, True)
