"""Thresholds of a lifecycle run, one line each, and its verdict.

    ready.p99<30s   total_scheduled.p95<=2s   finished.mean<90s   throughput>=50/s   failed<=0   rejected<1%   lost<=0

A percentile's 95 % interval decides: PASS when all of it holds, FAIL when none of it does, else INVALID. Means, counts
and the throughput are as they were counted. Failed, rejected, pending and lost in % are parts of what was submitted.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from scaletest.analysis.lifecycle.books import Books
from scaletest.analysis.lifecycle.phases import BY_NAME
from scaletest.analysis.percentiles import percentile, samples_needed
from scaletest.model.checks import cut
from scaletest.model.digits import short
from scaletest.model.errors import InvalidValue
from scaletest.model.threshold import OPERATORS, PERCENTILES, SECONDS
from scaletest.model.verdict import Verdict, VerdictKind

if TYPE_CHECKING:
    from scaletest.analysis.lifecycle.result import PhaseDurations

# What to do about pods that run and do not end.
ENDLESS = "give the pods an end (--run-seconds, or one in the template), or ask for --until ready"
COUNTS = ("failed", "rejected", "pending", "lost")
_OTHERS = ("mean", "max")
_SHAPE = re.compile(
    r"\s*(?P<metric>[a-z_]+)(?:\.(?P<part>[a-z0-9.]+))?\s*(?P<operator><=|>=|<|>)"
    r"\s*(?P<value>[0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(?P<unit>[a-z/%]*)\s*"
)


@dataclass(frozen=True, slots=True)
class LifecycleThreshold:
    """One condition. part: p50, p95, ..., mean or max of a step's seconds; "" for counts and the throughput."""

    text: str
    metric: str
    part: str
    operator: str
    bound: float
    share: bool = False


@dataclass(frozen=True, slots=True)
class LifecycleThresholdResult:
    """What was found about one threshold, in base units; value is None when there is none."""

    text: str
    kind: VerdictKind
    reason: str
    remedy: str = ""
    value: float | None = None
    low: float | None = None
    high: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {**asdict(self), "kind": str(self.kind)}


def parse(text: str) -> LifecycleThreshold:
    """Read one; InvalidValue that says what is wrong."""
    shown = cut(repr(text), 80)
    found = _SHAPE.fullmatch(text) if len(text) <= 200 else None
    if found is None:
        raise InvalidValue(
            f"threshold {shown} cannot be read",
            hint="write STEP.PERCENTILE OP VALUE[UNIT], as in 'ready.p99<30s', or 'failed<=0', 'throughput>=50/s'",
        )
    metric, part, unit = found["metric"], found["part"] or "", found["unit"]
    units = _units(metric, part, shown)
    if unit not in units:
        raise InvalidValue(f"threshold {shown} has the unit {unit or 'none'}", hint=f"use {', '.join(units)}")
    value = float(found["value"]) * units[unit]
    return LifecycleThreshold(text.strip(), metric, part, found["operator"], value, unit == "%")


def _units(metric: str, part: str, shown: str) -> dict[str, float]:
    if metric in COUNTS and not part:
        return {"": 1.0, "%": 0.01}
    if metric == "throughput" and not part:
        return {"": 1.0, "/s": 1.0, "/min": 1 / 60}
    if metric not in BY_NAME:
        near = difflib.get_close_matches(metric, [*BY_NAME, *COUNTS, "throughput"], n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(BY_NAME)}"
        raise InvalidValue(f"threshold {shown} is about {cut(metric, 40)}, which is not measured", hint=hint)
    if part not in PERCENTILES and part not in _OTHERS:
        raise InvalidValue(
            f"threshold {shown} says {part or 'nothing'} of {metric}", hint=f"say {', '.join([*PERCENTILES, *_OTHERS])}"
        )
    return dict(SECONDS)


def judge(
    texts: Sequence[str], steps: Sequence[PhaseDurations], books: Books, per_s: float | None
) -> tuple[LifecycleThresholdResult, ...]:
    """One result for each threshold, in their order."""
    by_name = {one.step.name: one for one in steps}
    return tuple(_judge(parse(text), by_name, books, per_s) for text in texts)


def _judge(
    one: LifecycleThreshold, steps: dict[str, PhaseDurations], books: Books, per_s: float | None
) -> LifecycleThresholdResult:
    if one.metric in COUNTS:
        count = float(getattr(books, one.metric))
        whole = books.submitted + books.rejected
        value = (count / whole if whole else None) if one.share else count
        return _decide(one, value, value, value, "nothing was submitted")
    if one.metric == "throughput":
        return _decide(one, per_s, per_s, per_s, "pods were scheduled for less than a second")
    found = steps.get(one.metric)
    if found is None:
        return _decide(one, None, None, None, f"no workload has both ends of {one.metric}")
    if one.part in _OTHERS:
        value = getattr(found.spread, one.part)
        return _decide(one, value, value, value, "")
    p = PERCENTILES[one.part]
    known = percentile(sorted(value for value in found.values if value is not None), p)
    if known is None:
        lacking = f"{one.part} needs {samples_needed(p)} values, and there are {found.spread.count}"
        return _decide(one, None, None, None, lacking)
    low = known.low if known.low is not None else known.value
    high = known.high if known.high is not None else known.value
    return _decide(one, known.value, low, high, "")


def _decide(
    one: LifecycleThreshold, value: float | None, low: float | None, high: float | None, lacking: str
) -> LifecycleThresholdResult:
    if value is None or low is None or high is None:
        return LifecycleThresholdResult(one.text, VerdictKind.INVALID, lacking, "submit more workloads, or wait longer")
    holds = OPERATORS[one.operator]
    ends = (holds(low, one.bound), holds(high, one.bound))
    kind = VerdictKind.PASS if all(ends) else VerdictKind.FAIL if not any(ends) else VerdictKind.INVALID
    said = short(value, 4) if low == high else f"{short(value, 4)} [{short(low, 4)}, {short(high, 4)}]"
    remedy = {
        VerdictKind.FAIL: "look at the step's course over time in the report",
        VerdictKind.INVALID: "submit more workloads: the interval holds the bound",
    }.get(kind, "")
    return LifecycleThresholdResult(one.text, kind, said, remedy, value, low, high)


def judged(
    books: Books, thresholds: Sequence[LifecycleThresholdResult], tolerate: int, until: str, interrupted: str = ""
) -> Verdict:
    """FAIL before INVALID, INVALID before PASS."""
    failed = [one for one in thresholds if one.kind is VerdictKind.FAIL]
    if failed:
        return Verdict(
            VerdictKind.FAIL,
            f"{len(failed)} of {len(thresholds)} thresholds not met: {failed[0].text}: {failed[0].reason}",
            failed[0].remedy,
        )
    bad = books.failed + books.rejected
    if bad > tolerate:
        why = next(iter([*books.rejections, *books.failures]), "")
        return Verdict(
            VerdictKind.FAIL,
            f"{books.failed} failed and {books.rejected} rejected, {tolerate} tolerated: {cut(why, 160)}",
            "mend what the reason says, or allow more with --tolerate-failures",
        )
    return _invalid(books, thresholds, until, interrupted) or Verdict(
        VerdictKind.PASS,
        f"{books.measured} of {books.submitted} workloads reached {until}"
        + (f", {len(thresholds)} thresholds met" if thresholds else ""),
    )


def _invalid(
    books: Books, thresholds: Sequence[LifecycleThresholdResult], until: str, interrupted: str
) -> Verdict | None:
    if interrupted:
        return Verdict(VerdictKind.INVALID, f"interrupted: {interrupted}", "go on: run the same command again")
    if not books.submitted:
        return Verdict(
            VerdictKind.INVALID, "nothing was submitted or seen", "look at the selector or the output folder"
        )
    if books.not_tried:
        return Verdict(
            VerdictKind.INVALID,
            f"{books.not_tried} of {books.planned} were not submitted yet",
            "submit again: it goes on",
        )
    if books.pending or books.lost or not books.balanced:
        run = f" (the pods of {books.running} run)" if books.running else ""
        return Verdict(
            VerdictKind.INVALID,
            f"{books.pending} of {books.submitted} have not reached {until}{run}, {books.lost} were lost",
            f"wait longer, or {ENDLESS}"
            if books.running
            else "wait longer, or ask for an earlier milestone with --until",
        )
    undecided = [one for one in thresholds if one.kind is VerdictKind.INVALID]
    if undecided:
        return Verdict(
            VerdictKind.INVALID,
            f"{len(undecided)} of {len(thresholds)} thresholds undecided: {undecided[0].text}: {undecided[0].reason}",
            undecided[0].remedy,
        )
    return None
