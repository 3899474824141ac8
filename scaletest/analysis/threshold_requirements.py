"""What a plan's thresholds ask of a step, beyond what its doubling needs: requests enough, and a narrow interval.

Without this a step that is decided after twenty requests would leave every percentile threshold undecided.
"""

from __future__ import annotations

from dataclasses import dataclass

from scaletest.analysis.drift import BATCHES
from scaletest.analysis.percentiles import samples_needed
from scaletest.model import Plan
from scaletest.model.threshold import PERCENTILES, Threshold, parse


@dataclass(frozen=True, slots=True)
class StepRequirements:
    """requests: that must be counted. precise: whether the step must go on to the plan's precision."""

    requests: int
    precise: bool


def requirements_of(plan: Plan, workers: int) -> StepRequirements:
    """What the thresholds ask of the step with that many workers."""
    concerning = [one for one in (parse(text, plan.steps) for text in plan.thresholds) if _concerns(one, plan, workers)]
    return StepRequirements(
        requests=max((_requests(one, plan, workers) for one in concerning), default=0),
        precise=any(_is_rate(one) for one in concerning),
    )


def _concerns(threshold: Threshold, plan: Plan, workers: int) -> bool:
    """Whether it looks at the step: by name, by naming none, or as the base of the ratio that it names."""
    if threshold.workers is None or threshold.workers == workers:
        return True
    if threshold.metric == "ratio":
        return plan.steps[max(0, plan.steps.index(threshold.workers) - 1)] == workers
    return threshold.metric == "efficiency" and workers == plan.steps[0]


def _requests(threshold: Threshold, plan: Plan, workers: int) -> int:
    """A percentile's interval needs twice the requests of its value; drift two of each worker in every batch.

    Whether a step drifted is asked of each of its parts.
    """
    if threshold.metric == "drift":
        return 2 * BATCHES * workers * plan.parts
    quantile = PERCENTILES.get(threshold.metric.partition(".")[2])
    return 2 * samples_needed(quantile) if quantile else 0


def _is_rate(threshold: Threshold) -> bool:
    return threshold.metric in ("ratio", "efficiency", "throughput", "contention", "coherency")
