"""Warnings of a validation, which decide nothing: one line each, with what to do. Pure."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence

from scaletest.analysis.cause_text import workers_text
from scaletest.analysis.interference import Interference, between
from scaletest.analysis.steps import MeasuredStep, Step

# Parts of a request's time that the tester may cost: above them a warning, or no verdict.
WARN_OVERHEAD = 0.02
MOST_OVERHEAD = 0.10
# Multiples of the ideal ratio. Above the first it may be a cache or an error of measurement, above
# the second the workers were not alike.
WARN_TOO_GOOD, MOST_TOO_GOOD = 1.02, 1.1
# A group that did this many times as much as another is worth a warning, if the difference exceeds
# chance (three standard deviations of a count).
WARN_UNFAIR = 1.25
# What may slow a machine down for a while, where no samples of its resources say more.
CHANGES = "thermal throttling, frequency scaling, other programs on the machine"
POSSIBLE_CAUSES = f"possible causes: {CHANGES}"
# A machine whose speed changes by less than this part a second changes no visible result.
LEAST_TREND_PER_S = 0.0001


def warnings(steps: Sequence[Step], disturbed: Sequence[Interference] = ()) -> list[str]:
    """Warnings that decide nothing, one line each, with what to do.

    disturbed: what disturbed the run, in the order of time.
    """
    lines = [
        f"{line}; compare run times by worker and device" for line in too_good(steps, WARN_TOO_GOOD)
    ]
    for step in steps:
        at = workers_text(step.workers)
        if WARN_OVERHEAD < step.overhead_share <= MOST_OVERHEAD:
            overhead = f"the tester costs {step.overhead_share:.0%} of a request's time"
            lines.append(f"{at}: {overhead}; use longer requests")
        for measured in step.samples:
            lines += _unsteady(at, measured, disturbed)
        lines += _unfair(at, step)
    return lines + _disturbances(disturbed, "; ".join(lines))


def _unfair(at: str, step: Step) -> list[str]:
    """Warnings about workers, pods, nodes or devices that did very unequal shares of a step."""
    lines = []
    for group, fairness in step.fairness.items():
        most, least = fairness.shares[0], fairness.shares[-1]
        beyond_chance = most.amount - least.amount > 3.0 * math.sqrt(most.amount)
        if fairness.ratio > WARN_UNFAIR and beyond_chance:
            lines.append(
                f"{at}: {group} {most.name} did {fairness.ratio:.1f} times as much as {least.name};"
                " compare their run times"
            )
    return lines


def _disturbances(disturbed: Sequence[Interference], warned: str) -> list[str]:
    """A line for each kind of disturbance on a node: the costliest, and how many more there were.

    warned: the warnings so far, which name some of them already.
    """
    by_kind: dict[tuple[str, str], list[Interference]] = defaultdict(list)
    for spell in disturbed:
        by_kind[spell.kind, spell.node].append(spell)
    lines = []
    for spells in by_kind.values():
        worst = max(spells, key=lambda spell: spell.weight)
        if worst.sentence in warned:
            continue
        more = ""
        if len(spells) == 2:
            more = ", and once more"
        elif len(spells) > 2:
            more = f", and {len(spells) - 1} more times"
        lines.append(worst.sentence + more)
    return lines


def changed_evenly(trend_per_s: float) -> list[str]:
    """A warning about a machine whose speed changed steadily, which does not distort the ratios.

    trend_per_s: the logarithm of the relative change in one second.
    """
    if abs(trend_per_s) < LEAST_TREND_PER_S:
        return []
    way = "sped up"
    if trend_per_s < 0:
        way = "slowed down"
    return [
        f"the machine {way} steadily by {abs(math.expm1(trend_per_s)):.2%} a second; the ratios are"
        " not affected, since steps were measured on the way up and on the way down"
    ]


def too_good(steps: Sequence[Step], limit: float) -> list[str]:
    """Lines about ratios of more than `limit` times the ideal.

    Then something slowed the step before down, which hides what the workers share.
    """
    return [
        f"{before.workers} -> {step.workers} workers: ratio {step.ratio.value:.2f} is more than the"
        " added workers can explain, so something slowed down the step with"
        f" {workers_text(before.workers)}"
        for before, step in itertools.pairwise(steps)
        if step.ratio and step.ratio.low > limit * step.workers / before.workers
    ]


def _unsteady(at: str, sample: MeasuredStep, disturbed: Sequence[Interference]) -> list[str]:
    """Warnings about a lasting change or short dips of the throughput within one measured step."""
    drift, warm_s = sample.drift, sample.warmup_s
    disturbance = disturbance_of([sample], disturbed)
    lines = []
    if drift.shift:
        way = "rose"
        if drift.shift < 0:
            way = "fell"
        lines.append(
            f"{at}: throughput {way} by {abs(drift.shift):.1%} after "
            f"{warm_s + drift.shift_at_s:.0f} s; {disturbance or POSSIBLE_CAUSES}"
        )
    if drift.dips:
        at_s, depth = min(drift.dips, key=lambda dip: dip[1])
        lines.append(
            f"{at}: throughput dipped by {-depth:.0%} after {warm_s + at_s:.0f} s; "
            f"{disturbance or 'check what else ran at that time'}"
        )
    return lines


def disturbance_of(samples: Sequence[MeasuredStep], disturbed: Sequence[Interference]) -> str:
    """What disturbed these measurements most, with its time; "" where nothing is known."""
    spells = []
    for sample in samples:
        end_s = sample.began_s + sample.measurement.measured_s
        spell = between(disturbed, sample.began_s, end_s)
        if spell:
            spells.append(spell)
    if spells:
        return max(spells, key=lambda spell: spell.cost).sentence
    return ""
