"""Warnings about a validation: one line each, with what to do. They decide nothing."""

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from types import MappingProxyType

from scaletest.causes.interference import Interference
from scaletest.render.numbers import plural
from scaletest.validation.judging.measurement_grounds import (
    CHANGES,
    MOST_OVERHEAD,
    Disturbances,
)
from scaletest.validation.judging.steps import Step

# A ratio of more than so many times the ideal one may be a cache or an error of measurement.
SURPRISING_RATIO = 1.02
# The part of a request's time that the tester may cost without a warning.
NEGLIGIBLE_OVERHEAD = 0.02
# A group that did this many times as much as another is worth a warning, if the difference exceeds
# chance: so many standard deviations of a count.
UNFAIR_RATIO = 1.25
UNFAIR_DEVIATIONS = 3.0


def find_warnings(
    steps: Sequence[Step],
    interferences: Sequence[Interference] = (),
    disturbances: Disturbances = MappingProxyType({}),
) -> list[str]:
    """Return warnings that decide nothing, one line each, with what to do.

    interferences: what disturbed the run, in the order of time.
    """
    lines = [
        f"{line}; compare run times by worker and device"
        for line in too_good_lines(steps, SURPRISING_RATIO)
    ]
    for step in steps:
        workers = plural(step.workers, "worker")
        if NEGLIGIBLE_OVERHEAD < step.overhead_share <= MOST_OVERHEAD:
            lines.append(
                f"{workers}: scaletest itself costs {step.overhead_share:.0%} of a request's time;"
                " use longer requests"
            )
        for measured in step.samples:
            # a lasting change within one measurement
            drift = measured.drift
            if not drift.shift:
                continue
            disturbance = disturbances.get(measured.measurement.key)
            cause = disturbance.sentence if disturbance else f"possible causes: {CHANGES}"
            direction = "fell" if drift.shift < 0 else "rose"
            lines.append(
                f"{workers}: throughput {direction} by {abs(drift.shift):.1%}"
                f" after {measured.warmup_s + drift.shift_at_s:.0f} s; {cause}"
            )
        starved = step.samples[0].starved
        if starved is not None:
            lines.append(
                f"{workers}: {starved.worker} finished its first request {starved.seconds:.1f} s"
                " after the others had begun to finish theirs: what the workers share lets few of"
                " them in at a time, so their completions are counted together"
            )
        # workers, pods, nodes or devices that did very unequal shares
        for group, fairness in step.fairness.items():
            most, least = fairness.groups[0], fairness.groups[-1]
            chance = UNFAIR_DEVIATIONS * math.sqrt(most.amount)
            if fairness.ratio > UNFAIR_RATIO and most.amount - least.amount > chance:
                lines.append(
                    f"{workers}: {group} {most.name} did {fairness.ratio:.1f} times as much as"
                    f" {least.name}; compare their run times"
                )
    # the costliest interference of each kind on a node, unless a line above names it
    warned = "; ".join(lines)
    by_kind: dict[tuple[str, str], list[Interference]] = defaultdict(list)
    for interference in interferences:
        by_kind[interference.kind, interference.node].append(interference)
    for alike in by_kind.values():
        costliest = max(alike, key=lambda interference: interference.weight)
        if costliest.sentence not in warned:
            lines.append(costliest.sentence)
    return lines


def too_good_lines(steps: Sequence[Step], limit: float) -> list[str]:
    """Return lines about ratios of more than `limit` times the ideal.

    Then something slowed the step before down, which hides what the workers share.
    """
    return [
        f"{before.workers} -> {step.workers} workers: ratio {step.ratio.value:.2f} is more than the"
        " added workers can explain, so something slowed down the step with"
        f" {plural(before.workers, 'worker')}"
        for before, step in itertools.pairwise(steps)
        if step.ratio and step.ratio.low > limit * step.workers / before.workers
    ]
