"""Grounds of a verdict that lie in the ratios: a doubling that fails, is undecided, or passes."""

import itertools
from collections.abc import Sequence

from scaletest.causes.causes import Causes
from scaletest.model import VerdictKind
from scaletest.render.numbers import plural
from scaletest.stats.completions import SLOW_FACTOR
from scaletest.stats.thresholds import ThresholdResult
from scaletest.stats.verdict_order import Ground, Rank
from scaletest.validation.judging.doubling import WIDENED_BY_PASSES, WIDENED_BY_SLOW_REQUESTS
from scaletest.validation.judging.measurement_grounds import CHANGES, Disturbances, all_measured
from scaletest.validation.judging.sharing import Sharing
from scaletest.validation.judging.steps import Step
from scaletest.validation.judging.stopping import Stop
from scaletest.validation.plan import Plan

# A smaller share of slow requests needs no mention.
NEGLIGIBLE_SHARE = 0.001
STOP_OTHERS = "stop the other programs, or run again when the machine is idle"


def failed_doubling(plan: Plan, steps: Sequence[Step]) -> tuple[Step, Step] | None:
    """Return the two steps of the doubling that fails; None where none does.

    The pass up alone fails none: a change of the machine cancels only with the pass down.
    """
    if not all_measured(plan, steps):
        return None
    for before, step in itertools.pairwise(steps):
        if step.sound and before.sound and step.ratio and step.ratio.kind is VerdictKind.FAIL:
            return before, step
    return None


def failed_ratio(
    plan: Plan, steps: Sequence[Step], causes: Causes | None, doubt: Rank
) -> Ground | None:
    """Return a ground for FAIL where a doubling fails, with its cause.

    doubt: the rank of the ground where something else took the cores.
    """
    failed = failed_doubling(plan, steps)
    if failed is None:
        return None
    before, step = failed
    ratio = step.ratio
    assert ratio is not None  # else it would not have failed
    reason = (
        f"{before.workers} -> {step.workers} workers: ratio {ratio.value:.2f} [{ratio.low:.2f},"
        f" {ratio.most:.2f}] is below the {ratio.wanted:.2f} wanted"
    )
    remedy = (
        f"with {step.workers} workers requests wait for something that the workers share: compare"
        f" their run times with those of {plural(before.workers, 'worker')}"
    )
    if not causes or not causes.sentence:
        return Ground(Rank.REFUTED, reason, remedy)
    if causes.of_others:
        reason += f", but something else took the cores. {causes.sentence}"
        return Ground(doubt, reason, STOP_OTHERS)
    return Ground(Rank.REFUTED, f"{reason}. {causes.sentence}", causes.remedy or remedy)


def undecided_ratio(
    plan: Plan,
    steps: Sequence[Step],
    sharing: Sharing | None,
    disturbances: Disturbances,
) -> Ground | None:
    """Return a ground for INVALID where an interval is too wide to decide a doubling.

    Or to name the best number of workers per device.
    """
    if sharing and sharing.doubt:
        return Ground(Rank.OPEN, sharing.doubt, _remedy_for_precision(plan, steps))
    for before, step in itertools.pairwise(steps):
        ratio = step.ratio
        if not ratio or ratio.kind is not VerdictKind.INVALID:
            continue
        doubling = f"{before.workers} -> {step.workers} workers"
        if ratio.widened_by == WIDENED_BY_PASSES:
            # the machine changed during the run, not steadily, so the two passes do not cancel it
            usual = ", slow requests left out" if before.tail.slow or step.tail.slow else ""
            reason = (
                f"{doubling}: ratio {ratio.up:.2f} in the ascending pass and {ratio.down:.2f} in"
                f" the descending one{usual}: the machine changed in between, so {ratio.wanted:.2f}"
                " cannot be judged"
            )
            keys = [sample.measurement.key for sample in (*before.samples, *step.samples)]
            found = [disturbances[key] for key in keys if key in disturbances]
            remedy = f"find what changed ({CHANGES})"
            if found:
                costliest = max(found, key=lambda disturbance: disturbance.cost)
                remedy = f"{costliest.sentence}: stop that"
            return Ground(Rank.OPEN, reason, f"{remedy}, and run it again")
        reason = (
            f"{doubling}: ratio {ratio.value:.2f} [{ratio.low:.2f}, {ratio.most:.2f}] "
            f"is too close to {ratio.wanted:.2f} to call"
        )
        if ratio.widened_by == WIDENED_BY_SLOW_REQUESTS:
            counts = [
                f"{side.tail.slow} of {side.tail.count} with {plural(side.workers, 'worker')}"
                for side in (before, step)
            ]
            reason += (
                f"; {' and '.join(counts)} took more than {SLOW_FACTOR:g} times as long as usual,"
                " which is too few to know whether more workers make them more frequent"
            )
        return Ground(Rank.OPEN, reason, _remedy_for_precision(plan, (before, step)))
    return None


def _remedy_for_precision(plan: Plan, steps: Sequence[Step]) -> str:
    """Return the remedy for steps that are too imprecise."""
    if plan.repeats > 1:
        return "measure with more <repeats>"
    if plan.step_s:
        return f"measure longer than <step_time> {plan.step_s:g}"
    # longer steps help where their time was up: else they would have been measured again
    samples = itertools.chain.from_iterable(step.samples for step in steps)
    ratios = [step.ratio for step in steps[1:] if step.ratio]
    is_out_of_time = (
        any(sample.measurement.stop == Stop.LONGEST for sample in samples)
        or any(ratio.widened_by == WIDENED_BY_SLOW_REQUESTS for ratio in ratios)
        or any(step.throughput.relative > plan.precision for step in steps)
    )
    if is_out_of_time:
        return f"allow longer steps: <max_step> {2 * plan.longest_s:g}"
    return f"ask for <precision> {plan.precision / 2:g}"


def passed_reason(
    plan: Plan, steps: Sequence[Step], thresholds: Sequence[ThresholdResult], best: str
) -> str:
    """Return the reason of a PASS. best: the sentence about the best number per device, or ""."""
    thresholds_met = ""
    if thresholds:
        thresholds_met = f", and {len(thresholds)} of {len(thresholds)} thresholds hold"
    if best:
        return best + thresholds_met
    doublings = [
        (before, step, step.ratio) for before, step in itertools.pairwise(steps) if step.ratio
    ]
    if not doublings:
        return f"one step, no doubling to judge{thresholds_met}"
    before, step, least = min(doublings, key=lambda doubling: doubling[2].low / doubling[2].wanted)
    reason = (
        f"every doubling up to {plan.limit} workers reaches {plan.scale:.2f}: the least is"
        f" {least.value:.2f}"
    )
    # the last step may be no doubling, and then less is wanted of it
    if step.workers != 2 * before.workers:
        reason += f" where {least.wanted:.2f} is wanted, from {before.workers} to {step.workers}"
    if any(".p9" in threshold for threshold in plan.thresholds) and (unseen := unseen_tail(steps)):
        reason += f" ({unseen})"
    return reason + thresholds_met


def unseen_tail(steps: Sequence[Step]) -> str:
    """Say how rare slow requests are that the step with the fewest requests may have missed.

    "" where that step shows slow ones, or has requests enough. Wrong in 5 % of all cases.
    """
    fewest = min(steps, key=lambda step: step.tail.count)
    share = 1.0 - 0.05 ** (1.0 / max(1, fewest.tail.count))
    if fewest.tail.slow or share <= NEGLIGIBLE_SHARE:
        return ""
    return (
        f"too few requests to judge tail latency: with {fewest.tail.count} requests at"
        f" {plural(fewest.workers, 'worker')}, slow ones rarer than 1 in"
        f" {max(2, round(1.0 / share))} would go unnoticed"
    )
