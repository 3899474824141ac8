"""Repeated measurements: their mean with its interval, and whether those of another run are worse.

Repetitions are the units: the variation from one to the next is in the interval, the variation
within one is not used. They are compared as in `compare`: the ratio of geometric means with Welch's
t on the logarithms, "beyond chance" for all comparisons together by Holm's procedure, and a
tolerance. Fewer than two repetitions on a side decide nothing.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scaletest.analysis.compare import Change, LogRatio, classify, holm
from scaletest.analysis.estimate import Estimate, finite
from scaletest.analysis.student_t import t95, welch
from scaletest.model import Verdict, VerdictKind
from scaletest.model.wire import SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of repeated measurements.

    half_width: of the 95 % interval of their mean by Student's t; infinite for a single one.
    """

    count: int
    mean: float
    half_width: float
    deviation: float
    least: float
    median: float
    most: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; what is infinite is null."""
        return {name: finite(value) for name, value in asdict(self).items()}


def summarise(values: Sequence[float]) -> Summary:
    """The summary of one value or more."""
    count, mean = len(values), statistics.fmean(values)
    deviation = 0.0
    if count > 1:
        deviation = statistics.stdev(values)
    half = math.inf
    if count > 1:
        half = t95(count - 1) * deviation / math.sqrt(count)
    return Summary(
        count, mean, half, deviation, min(values), statistics.median(values), max(values)
    )


@dataclass(frozen=True, slots=True)
class RepeatedPair:
    """A number measured several times in both runs. higher: whether more is better."""

    name: str
    headline: str
    higher: bool
    base: Sequence[float]
    candidate: Sequence[float]


@dataclass(frozen=True, slots=True)
class RepeatedChange:
    """The change of a number between the runs.

    ratio: of candidate over base, None when it is unknown; reason then says why.
    """

    name: str
    headline: str
    change: Change
    ratio: Estimate | None
    base: Summary
    candidate: Summary
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "what": self.name,
            "headline": self.headline,
            "change": str(self.change),
            "ratio": self.ratio.to_dict() if self.ratio else None,
            "base": self.base.to_dict(),
            "candidate": self.candidate.to_dict(),
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class BenchmarkComparison:
    """All numbers that both runs have. only_base, only_candidate: what one run alone has."""

    tolerance: float
    rows: tuple[RepeatedChange, ...]
    only_base: tuple[str, ...]
    only_candidate: tuple[str, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "benchmark-comparison",
            "tolerance": self.tolerance,
            "rows": [change.to_dict() for change in self.rows],
            "only_base": list(self.only_base),
            "only_candidate": list(self.only_candidate),
            "verdict": self.verdict.to_dict(),
        }


def compare(
    pairs: Sequence[RepeatedPair],
    tolerance: float = 0.05,
    only_base: Sequence[str] = (),
    only_candidate: Sequence[str] = (),
) -> BenchmarkComparison:
    """Whether the candidate is worse by more than `tolerance`, a part of 1, in any pair."""
    logs = {index: log for index, pair in enumerate(pairs) if (log := _log(pair))}
    clear = holm(logs)
    rows = tuple(
        _repeated_change(pair, logs.get(index), index in clear, tolerance)
        for index, pair in enumerate(pairs)
    )
    return BenchmarkComparison(
        tolerance,
        rows,
        tuple(only_base),
        tuple(only_candidate),
        _verdict(rows, tolerance, (*only_base, *only_candidate)),
    )


def _log(pair: RepeatedPair) -> LogRatio | None:
    """The logarithm of how much better the candidate is: for times, how much shorter."""
    if min(len(pair.base), len(pair.candidate)) < 2 or min(*pair.base, *pair.candidate) <= 0:
        return None
    (mean, variance, freedom), (other, more, left) = _moments(pair.base), _moments(pair.candidate)
    better = other - mean if pair.higher else mean - other
    return LogRatio(
        better,
        math.sqrt(variance + more),
        welch([math.sqrt(variance), math.sqrt(more)], [freedom, left]),
    )


def _moments(values: Sequence[float]) -> tuple[float, float, float]:
    logs = [math.log(measured) for measured in values]
    return statistics.fmean(logs), statistics.variance(logs) / len(logs), len(logs) - 1.0


def _repeated_change(
    pair: RepeatedPair, log: LogRatio | None, clear: bool, tolerance: float
) -> RepeatedChange:
    """The change of a number. clear: whether it is beyond chance."""
    change, reason = classify(log, clear, tolerance)
    ratio = None
    if log:
        ratio = _ratio(log.estimate(), pair.higher)
    elif min(len(pair.base), len(pair.candidate)) < 2:
        reason = "two repetitions are needed in both runs"
    else:
        reason = "a value is not above 0"
    base, candidate = summarise(pair.base), summarise(pair.candidate)
    return RepeatedChange(pair.name, pair.headline, change, ratio, base, candidate, reason)


def _ratio(better: Estimate, higher: bool) -> Estimate:
    """Candidate over base, from how many times better the candidate is."""
    if higher:
        return better
    low, high = math.inf, math.inf
    if better.high:
        low = 1 / better.high
    if better.low:
        high = 1 / better.low
    return Estimate(1 / better.value, low, high)


def _verdict(rows: Sequence[RepeatedChange], tolerance: float, alone: Sequence[str]) -> Verdict:
    limit = f"{100 * tolerance:.3g} %"
    worse = [change for change in rows if change.change is Change.REGRESSION]
    if worse:
        first = worse[0]
        return Verdict(
            VerdictKind.FAIL,
            f"worse by more than {limit} in {len(worse)} of {len(rows)}: {first.headline} of"
            f" {first.name}",
            "look at what changed between the runs, or measure both again, in turns",
        )
    open_ = [change for change in rows if change.change is Change.UNDECIDED]
    if open_ or not rows:
        reason = "the runs have nothing in common"
        if open_:
            reason = f"{open_[0].headline} of {open_[0].name}: {open_[0].reason}"
        return Verdict(
            VerdictKind.INVALID,
            reason,
            "measure both with more repetitions, or allow a larger --tolerance",
        )
    if alone:
        return Verdict(
            VerdictKind.INVALID, f"not in both runs: {', '.join(alone)}", "measure both to the end"
        )
    return Verdict(VerdictKind.PASS, f"none of {len(rows)} is worse by more than {limit}")


def gathered(rows: Sequence[tuple[int, Mapping[str, float]]]) -> dict[int, dict[str, list[float]]]:
    """Values by permutation and headline. rows: (permutation, headlines) of each repetition."""
    by_permutation: dict[int, dict[str, list[float]]] = {}
    for number, headlines in rows:
        for name, measured in headlines.items():
            by_permutation.setdefault(number, {}).setdefault(name, []).append(measured)
    return by_permutation
