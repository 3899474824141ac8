"""Judge the thresholds of a run, and decide its verdict.

Thresholds are such as these:

    ready.p99<30s   total_scheduled.p95<=2s   finished.mean<90s   throughput>=50/s
    failed<=0   rejected<1%   lost<=0

A percentile's 95 % interval decides: PASS when all of it holds, FAIL when none of it does, else
INVALID. Means, counts and the throughput are as they were counted.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from scaletest.lifecycle.judging.books import Books
from scaletest.lifecycle.judging.figures import PhaseDurations
from scaletest.lifecycle.judging.timeline import BY_NAME
from scaletest.model.checks import cut_text
from scaletest.model.threshold import (
    PERCENTILES,
    Measurable,
    MeasureTable,
    Threshold,
    parse_threshold,
)
from scaletest.model.verdict import Verdict
from scaletest.render.numbers import plural
from scaletest.stats.estimate import exact_estimate
from scaletest.stats.percentiles import estimate_from_percentile, samples_needed
from scaletest.stats.thresholds import Measured, ThresholdResult, ground_of, judge_threshold
from scaletest.stats.verdict_order import Ground, Rank, verdict_of_grounds

COUNTS = ("failed", "rejected", "pending", "lost")
EXAMPLE = "'ready.p99<30s', 'failed<=0' or 'throughput>=50/s'"
MEASURES: MeasureTable = {
    **dict.fromkeys(
        map(".".join, product(BY_NAME, (*PERCENTILES, "mean", "max"))), Measurable("s")
    ),
    **dict.fromkeys(COUNTS, Measurable("workloads")),
    "throughput": Measurable("1/s"),
}


def judge_thresholds(
    texts: Sequence[str], phases: Sequence[PhaseDurations], books: Books, per_s: float | None
) -> tuple[ThresholdResult, ...]:
    """Judge each threshold, in their order. per_s: the throughput of scheduling."""
    by_name = {durations.phase.name: durations for durations in phases}
    return tuple(
        judge_threshold(threshold, [_measure(threshold, by_name, books, per_s)])
        for threshold in [parse_threshold(text, MEASURES, EXAMPLE) for text in texts]
    )


def _measure(
    threshold: Threshold, phases: Mapping[str, PhaseDurations], books: Books, per_s: float | None
) -> Measured:
    """Return the value that a threshold is about, or why there is none."""
    name, _, statistic = threshold.measure.partition(".")
    if name in COUNTS:
        count = float(getattr(books, name))
        # in % it is a share of what was submitted, accepted or not
        total = books.submitted + books.rejected if threshold.share else 1
        return _measured(count / total if total else None, "nothing was submitted")
    if name == "throughput":
        return _measured(per_s, "pods were scheduled for less than a second")
    phase = phases.get(name)
    if phase is None:
        return _measured(None, f"no workload has both ends of {name}")
    value = getattr(phase.spread, statistic.replace(".", "_"))
    if statistic not in PERCENTILES:
        return _measured(value)
    if value is None:
        return _measured(
            None,
            f"{statistic} needs {samples_needed(PERCENTILES[statistic])} values, and there are"
            f" {phase.spread.count}",
        )
    return replace(_measured(value.value), estimate=estimate_from_percentile(value))


def _measured(value: float | None, missing: str = "") -> Measured:
    """Return a value without an interval. missing: why there is none where it is None."""
    if value is None:
        return Measured(None, missing, "submit more workloads, or wait longer")
    return Measured(
        exact_estimate(value),
        remedy="submit more workloads: the interval holds the bound",
        refuted="look at the phase's course over time in the report",
    )


def decide_verdict(
    books: Books,
    thresholds: Sequence[ThresholdResult],
    tolerate: int,
    until: str,
    interrupted: str = "",
) -> Verdict:
    """Decide the verdict of a run. tolerate: how many workloads may fail or be rejected."""
    grounds = [ground_of(thresholds, Rank.REFUTED)]
    if books.failed + books.rejected > tolerate:
        reason = next(iter([*books.rejections, *books.failures]), "")
        grounds.append(
            Ground(
                Rank.REFUTED,
                f"{books.failed} failed and {books.rejected} rejected, {tolerate} tolerated:"
                f" {cut_text(reason, 160)}",
                "fix the cause that the reason names, or allow more with <tolerate_failures>",
            )
        )
    if interrupted:
        grounds.append(
            Ground(Rank.OPEN, f"interrupted: {interrupted}", "resume: run the same command again")
        )
    # workloads were not submitted, or have not come so far
    if not books.submitted:
        grounds.append(
            Ground(
                Rank.OPEN,
                "no workload was submitted",
                "look into the output folder, or submit again",
            )
        )
    elif books.not_tried:
        grounds.append(
            Ground(
                Rank.OPEN,
                f"{books.not_tried} of {books.planned} were not submitted yet",
                "submit again: it resumes",
            )
        )
    elif books.pending or books.lost:
        grounds.append(
            Ground(
                Rank.OPEN,
                f"{books.pending} of {books.submitted} have not reached {until},"
                f" {books.lost} were lost",
                "wait longer, ask for an earlier milestone with <until>, or give pods that run for"
                " ever an end (<run_seconds>)",
            )
        )
    grounds.append(ground_of(thresholds, Rank.OPEN))
    met = f"{books.measured} of {books.submitted} workloads reached {until}"
    if thresholds:
        met += f", {plural(len(thresholds), 'threshold')} met"
    return verdict_of_grounds([*grounds, Ground(Rank.MET, met)])
