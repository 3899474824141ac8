"""Thresholds of a lifecycle run, one line each, and its verdict.

    ready.p99<30s   total_scheduled.p95<=2s   finished.mean<90s   throughput>=50/s
    failed<=0   rejected<1%   lost<=0

A percentile's 95 % interval decides: PASS when all of it holds, FAIL when none of it does, else
INVALID. Means, counts and the throughput are as they were counted. Failed, rejected, pending and
lost in % are parts of what was submitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.lifecycle.books import Books
from scaletest.analysis.lifecycle.phases import BY_NAME
from scaletest.analysis.percentiles import percentile, samples_needed
from scaletest.analysis.thresholds import ThresholdResult, ground_of, judge_interval
from scaletest.analysis.verdict_order import Ground, Rank, decide
from scaletest.model.checks import cut
from scaletest.model.digits import short
from scaletest.model.errors import InvalidValue
from scaletest.model.nearest import suggestion
from scaletest.model.threshold import OPERATORS, PERCENTILES, SECONDS
from scaletest.model.verdict import Verdict, VerdictKind

if TYPE_CHECKING:
    from scaletest.analysis.lifecycle.result import PhaseDurations

# Remedy for pods that run and do not end.
ENDLESS = "give the pods an end (--run-seconds, or one in the template), or ask for --until ready"
COUNTS = ("failed", "rejected", "pending", "lost")
_OTHERS = ("mean", "max")
_SHAPE = re.compile(
    r"\s*(?P<metric>[a-z_]+)(?:\.(?P<part>[a-z0-9.]+))?\s*(?P<operator><=|>=|<|>)"
    r"\s*(?P<value>[0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(?P<unit>[a-z/%]*)\s*"
)


@dataclass(frozen=True, slots=True)
class LifecycleThreshold:
    """One condition.

    part: p50, p95, ..., mean or max of a step's seconds; "" for counts and the throughput.
    """

    text: str
    metric: str
    part: str
    operator: str
    bound: float
    share: bool = False

    def holds(self, measured: float) -> bool:
        """Whether a measured value, in base units, meets the threshold."""
        return OPERATORS[self.operator](measured, self.bound)


def parse(text: str) -> LifecycleThreshold:
    """Read a threshold; InvalidValue says what is wrong."""
    shown = cut(repr(text), 80)
    match = None
    if len(text) <= 200:
        match = _SHAPE.fullmatch(text)
    if match is None:
        raise InvalidValue(
            f"threshold {shown} cannot be read",
            hint=(
                "write STEP.PERCENTILE OP VALUE[UNIT], as in 'ready.p99<30s', or 'failed<=0',"
                " 'throughput>=50/s'"
            ),
        )
    metric, part, unit = match["metric"], match["part"] or "", match["unit"]
    units = _units(metric, part, shown)
    if unit not in units:
        raise InvalidValue(
            f"threshold {shown} has the unit {unit or 'none'}", hint=f"use {', '.join(units)}"
        )
    bound = float(match["value"]) * units[unit]
    return LifecycleThreshold(text.strip(), metric, part, match["operator"], bound, unit == "%")


def _units(metric: str, part: str, shown: str) -> dict[str, float]:
    if metric in COUNTS and not part:
        return {"": 1.0, "%": 0.01}
    if metric == "throughput" and not part:
        return {"": 1.0, "/s": 1.0, "/min": 1 / 60}
    if metric not in BY_NAME:
        raise InvalidValue(
            f"threshold {shown} is about {cut(metric, 40)}, which is not measured",
            hint=suggestion(metric, [*BY_NAME, *COUNTS, "throughput"]),
        )
    if part not in PERCENTILES and part not in _OTHERS:
        raise InvalidValue(
            f"threshold {shown} asks for {part or 'nothing'} of {metric}",
            hint=f"use {', '.join([*PERCENTILES, *_OTHERS])}",
        )
    return dict(SECONDS)


def judge(
    texts: Sequence[str], steps: Sequence[PhaseDurations], books: Books, per_s: float | None
) -> tuple[ThresholdResult, ...]:
    """One result for each threshold, in their order."""
    by_name = {phase.step.name: phase for phase in steps}
    return tuple(_judge(parse(text), by_name, books, per_s) for text in texts)


def _judge(
    threshold: LifecycleThreshold,
    steps: dict[str, PhaseDurations],
    books: Books,
    per_s: float | None,
) -> ThresholdResult:
    if threshold.metric in COUNTS:
        return _decide(threshold, _exactly(_count(threshold, books)), "nothing was submitted")
    if threshold.metric == "throughput":
        return _decide(threshold, _exactly(per_s), "pods were scheduled for less than a second")
    phase = steps.get(threshold.metric)
    if phase is None:
        return _decide(threshold, None, f"no workload has both ends of {threshold.metric}")
    if threshold.part in _OTHERS:
        return _decide(threshold, _exactly(getattr(phase.spread, threshold.part)), "")
    quantile = PERCENTILES[threshold.part]
    known = percentile(sorted(each for each in phase.values if each is not None), quantile)
    if known is None:
        needed = samples_needed(quantile)
        lacking = f"{threshold.part} needs {needed} values, and there are {phase.spread.count}"
        return _decide(threshold, None, lacking)
    low, high = known.low, known.high
    if low is None:
        low = known.value
    if high is None:
        high = known.value
    return _decide(threshold, Estimate(known.value, low, high), "")


def _count(threshold: LifecycleThreshold, books: Books) -> float | None:
    """A count of workloads, or its part of all; None where there are none."""
    count = float(getattr(books, threshold.metric))
    if not threshold.share:
        return count
    whole = books.submitted + books.rejected
    if not whole:
        return None
    return count / whole


def _exactly(figure: float | None) -> Estimate | None:
    """A figure that has no interval."""
    if figure is None:
        return None
    return Estimate(figure, figure, figure)


def _decide(
    threshold: LifecycleThreshold, estimate: Estimate | None, lacking: str
) -> ThresholdResult:
    """The result for a measured estimate. lacking: the reason where it is missing."""
    if estimate is None:
        remedy = "submit more workloads, or wait longer"
        return ThresholdResult(threshold.text, VerdictKind.INVALID, lacking, remedy)
    reason = short(estimate.value, 4)
    if estimate.low != estimate.high:
        reason += f" [{short(estimate.low, 4)}, {short(estimate.high, 4)}]"

    return judge_interval(
        threshold.text,
        threshold.holds,
        estimate,
        reason,
        "submit more workloads: the interval holds the bound",
        refuted="look at the step's course over time in the report",
    )


def judged(
    books: Books,
    thresholds: Sequence[ThresholdResult],
    tolerate: int,
    until: str,
    interrupted: str = "",
) -> Verdict:
    """The verdict of a run."""
    met = f"{books.measured} of {books.submitted} workloads reached {until}"
    if thresholds:
        met += f", {len(thresholds)} thresholds met"
    stopped = None
    if interrupted:
        remedy = "go on: run the same command again"
        stopped = Ground(Rank.OPEN, f"interrupted: {interrupted}", remedy)
    return decide(
        [
            _unbalanced(books),
            ground_of(thresholds, Rank.REFUTED),
            _failed(books, tolerate),
            stopped,
            _incomplete(books, until),
            ground_of(thresholds, Rank.OPEN),
            Ground(Rank.MET, met),
        ]
    )


def _unbalanced(books: Books) -> Ground | None:
    """Not the subject where workloads are missing from the books."""
    if books.balanced:
        return None
    counted = books.measured + books.pending + books.failed + books.lost
    return Ground(
        Rank.NOT_THE_SUBJECT,
        f"{books.submitted} workloads were submitted, and {counted} are on record",
        "look into the output folder, or measure it again",
    )


def _failed(books: Books, tolerate: int) -> Ground | None:
    """Refuted where more workloads failed or were rejected than are tolerated."""
    if books.failed + books.rejected <= tolerate:
        return None
    why = next(iter([*books.rejections, *books.failures]), "")
    return Ground(
        Rank.REFUTED,
        f"{books.failed} failed and {books.rejected} rejected, {tolerate} tolerated:"
        f" {cut(why, 160)}",
        "fix the cause that the reason names, or allow more with --tolerate-failures",
    )


def _incomplete(books: Books, until: str) -> Ground | None:
    """Open where workloads were not submitted, or have not come so far."""
    if not books.submitted:
        return Ground(
            Rank.OPEN,
            "no workload was submitted or observed",
            "look at the selector or the output folder",
        )
    if books.not_tried:
        return Ground(
            Rank.OPEN,
            f"{books.not_tried} of {books.planned} were not submitted yet",
            "submit again: it goes on",
        )
    if not (books.pending or books.lost):
        return None
    run, remedy = "", "ask for an earlier milestone with --until"
    if books.running:
        run, remedy = f" (the pods of {books.running} run)", ENDLESS
    return Ground(
        Rank.OPEN,
        f"{books.pending} of {books.submitted} have not reached {until}{run}, {books.lost} were"
        " lost",
        f"wait longer, or {remedy}",
    )
