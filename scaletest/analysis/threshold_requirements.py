"""The requests and the precision that a plan's thresholds require of a step.

Without this a step that is decided after twenty requests would leave every percentile threshold
undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.drift import BATCHES
from scaletest.analysis.percentiles import samples_needed
from scaletest.model import Plan
from scaletest.model.verdict import PERCENTILES, Threshold, parse_of_steps


@dataclass(frozen=True, slots=True)
class StepRequirements:
    """Requirements of a step.

    requests: that must be counted. precise: whether the step must go on to the plan's precision.
    """

    requests: int
    precise: bool


def requirements_of(plan: Plan, workers: int) -> StepRequirements:
    """The requirements of the thresholds for the step with that many workers."""
    thresholds = [parse_of_steps(text, plan.steps) for text in plan.thresholds]
    concerning = [each for each in thresholds if _concerns(each, plan, workers)]
    return StepRequirements(
        requests=max((_requests(each, plan, workers) for each in concerning), default=0),
        precise=any(_is_rate(each) for each in concerning),
    )


def _concerns(threshold: Threshold, plan: Plan, workers: int) -> bool:
    """Whether a threshold uses the step: by name, by naming none, or as the base of its ratio."""
    if threshold.workers is None or threshold.workers == workers:
        return True
    if threshold.measure == "ratio":
        return plan.steps[max(0, plan.steps.index(threshold.workers) - 1)] == workers
    return threshold.measure == "efficiency" and workers == plan.steps[0]


def _requests(threshold: Threshold, plan: Plan, workers: int) -> int:
    """A percentile's interval needs twice the requests of its value; drift two of each worker in
    every batch.

    Whether a step drifted is asked of each of its parts.
    """
    if threshold.measure == "drift":
        return 2 * BATCHES * workers * plan.parts
    quantile = PERCENTILES.get(threshold.measure.partition(".")[2])
    if quantile:
        return 2 * samples_needed(quantile)
    return 0


def _is_rate(threshold: Threshold) -> bool:
    return threshold.measure in ("ratio", "efficiency", "throughput", "contention", "coherency")
