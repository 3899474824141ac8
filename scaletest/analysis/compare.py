"""Whether a candidate run is slower than a base run: the ratio of throughputs at every common
number of workers.

The ratio is candidate over base with a 95 % interval, built on the logarithm. With three repeats or
more on both sides the repeats are the units (Kalibera and Jones 2013) and Welch's t gives the
interval. Else it comes from the intervals of the two steps; those of single runs do not hold what
differs from run to run, which may be all that is seen.

A step is a regression when its ratio differs from 1 beyond chance and by more than the tolerance,
and an improvement likewise. It is equivalent when the whole interval lies within the tolerance, and
not slower when only its low end does. "Beyond chance" is asked of all steps together by Holm's
procedure (1979) at 5 %: of two equal runs, no more than one in twenty has any step flagged.
Equivalence needs no such correction, since every step must show it.

The tolerance t spans 1 - t to 1 / (1 - t), so that exchanging the runs gives the mirrored answer.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from scaletest.analysis.estimate import Estimate, within
from scaletest.analysis.rank_test import RankTest, mann_whitney
from scaletest.analysis.steps import REPEATS_FOR_INTERVAL, Step
from scaletest.analysis.student_t import t95, t_quantile, welch
from scaletest.model import Plan, Verdict, VerdictKind
from scaletest.model.wire import SCHEMA_VERSION

FAMILY_ERROR = 0.05
# Queue names are made up for each run, and requirements do not change what was measured.
_NO_MATTER = {"queue", "scale", "limit", "thresholds", "tolerate_failures", "seed"}


class Change(StrEnum):
    """How a step changed."""

    REGRESSION = "regression"
    IMPROVEMENT = "improvement"
    EQUIVALENT = "equivalent"
    NOT_SLOWER = "not slower"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class StepChange:
    """One number of workers in both runs.

    ratio: throughput of candidate over base; None when it is unknown, `reason` then says why.
    between: whether the interval is the one between repeats. significant: beyond chance, all steps
    considered. run_times: whether the candidate's run times tend to be larger; it decides nothing.
    """

    workers: int
    change: Change
    ratio: Estimate | None
    base_per_s: float
    candidate_per_s: float
    between: bool
    significant: bool
    run_times: RankTest | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "workers": self.workers,
            "change": str(self.change),
            "ratio": self.ratio.to_dict() if self.ratio else None,
            "base_per_s": self.base_per_s,
            "candidate_per_s": self.candidate_per_s,
            "interval": "between repeats" if self.between else "within the runs",
            "significant": self.significant,
            "run_times": self.run_times.to_dict() if self.run_times else None,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """One field in which the plans differ.

    workload: whether the runs measure different things because of it.
    """

    field: str
    base: Any
    candidate: Any
    workload: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class ValidationComparison:
    """The result of a comparison.

    only_base, only_candidate: numbers of workers that one run alone has.
    """

    tolerance: float
    steps: tuple[StepChange, ...]
    only_base: tuple[int, ...]
    only_candidate: tuple[int, ...]
    differences: tuple[Difference, ...]
    verdict: Verdict

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, schema version 1."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "comparison",
            "tolerance": self.tolerance,
            "steps": [step.to_dict() for step in self.steps],
            "only_base": list(self.only_base),
            "only_candidate": list(self.only_candidate),
            "differences": [difference.to_dict() for difference in self.differences],
            "verdict": self.verdict.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class LogRatio:
    """Logarithm of a ratio, its standard error and the degrees of freedom behind that."""

    value: float
    error: float
    freedom: float

    def estimate(self) -> Estimate:
        return within(math.exp(self.value), t95(self.freedom) * self.error if self.error else 0.0)

    def beyond(self, level: float) -> bool:
        """Whether it differs from 0 by the two-sided t test at that level."""
        return abs(self.value) > (
            t_quantile(1 - level / 2, self.freedom) * self.error if self.error else 0.0
        )


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs: its plan and its steps."""

    plan: Plan
    steps: Sequence[Step]


def compare(
    base: Side, candidate: Side, tolerance: float = 0.03, *, force: bool = False
) -> ValidationComparison:
    """Compare step by step. Runs of different workloads are compared only with `force`.

    tolerance: the largest part of the throughput, from 0 to below 1, by which a candidate may be
    slower.
    """
    differing = differences(base.plan, candidate.plan)
    ours = {step.workers: step for step in base.steps}
    theirs = {step.workers: step for step in candidate.steps}
    foreign = [difference.field for difference in differing if difference.workload]
    common = sorted(ours.keys() & theirs.keys()) if force or not foreign else []
    planned = {*base.plan.steps} & {*candidate.plan.steps}
    lacking = sorted(planned - (ours.keys() & theirs.keys()))
    rows = _changes([(ours[workers], theirs[workers]) for workers in common], tolerance)
    return ValidationComparison(
        tolerance=tolerance,
        steps=rows,
        only_base=tuple(sorted(ours.keys() - theirs.keys())),
        only_candidate=tuple(sorted(theirs.keys() - ours.keys())),
        differences=differing,
        verdict=_foreign(foreign) if foreign and not force else _verdict(rows, tolerance, lacking),
    )


def differences(base: Plan, candidate: Plan) -> tuple[Difference, ...]:
    """The fields in which two plans differ, the workload's first.

    The workload is the command, or the length of the sleep, and what runs beside it. With a command
    `seconds` is only an estimate. So are, where numbers of workers per device are compared, the
    devices: on others, as many workers share them otherwise.
    """
    defining = {"command", "background"}
    if not base.command and not candidate.command:
        defining.add("seconds")
    if base.compares or candidate.compares:
        defining |= (
            {"devices"} if base.compares == candidate.compares else {"devices", "per_device"}
        )
    ours, theirs = base.to_dict(), candidate.to_dict()
    names = [
        field.name
        for field in fields(Plan)
        if field.name not in _NO_MATTER and ours[field.name] != theirs[field.name]
    ]
    differing = [Difference(name, ours[name], theirs[name], name in defining) for name in names]
    return tuple(sorted(differing, key=lambda difference: not difference.workload))


def _changes(pairs: Sequence[tuple[Step, Step]], tolerance: float) -> tuple[StepChange, ...]:
    logs = {base.workers: log for base, candidate in pairs if (log := _log_ratio(base, candidate))}
    significant = holm(logs)
    return tuple(
        _change(base, candidate, logs.get(base.workers), significant, tolerance)
        for base, candidate in pairs
    )


def holm(logs: Mapping[int, LogRatio]) -> set[int]:
    """The steps whose ratio differs from 1 beyond chance, 5 % error for all steps together.

    As long as something is rejected at 5 % divided by the number of steps left, the rest is asked
    again more mildly.
    """
    left, rejected = dict(logs), set[int]()
    while left:
        clear = {workers for workers, log in left.items() if log.beyond(FAMILY_ERROR / len(left))}
        if not clear:
            break
        rejected |= clear
        left = {workers: log for workers, log in left.items() if workers not in clear}
    return rejected


def _log_ratio(base: Step, candidate: Step) -> LogRatio | None:
    if not (
        base.sound
        and candidate.sound
        and base.throughput.per_s > 0
        and candidate.throughput.per_s > 0
    ):
        return None
    if _repeated(base, candidate):
        (mean, variance, freedom), (other, more, left) = _repeats(base), _repeats(candidate)
    else:
        (mean, variance, freedom), (other, more, left) = _within(base), _within(candidate)
    return LogRatio(
        other - mean,
        math.sqrt(variance + more),
        welch([math.sqrt(variance), math.sqrt(more)], [freedom, left]),
    )


def _repeated(base: Step, candidate: Step) -> bool:
    return min(len(base.samples), len(candidate.samples)) >= REPEATS_FOR_INTERVAL


def _repeats(step: Step) -> tuple[float, float, float]:
    """Mean log throughput of the repeats, its variance, degrees of freedom."""
    logs = [math.log(measured.throughput.per_s) for measured in step.samples]
    return statistics.fmean(logs), statistics.variance(logs) / len(logs), len(logs) - 1


def _within(step: Step) -> tuple[float, float, float]:
    """Log throughput, its variance (delta method on the step's interval), degrees of freedom."""
    rate = step.throughput
    freedom = max(1, rate.freedom)
    return math.log(rate.per_s), (rate.relative / t95(freedom)) ** 2, freedom


def _change(
    base: Step, candidate: Step, log: LogRatio | None, significant: set[int], tolerance: float
) -> StepChange:
    clear = base.workers in significant
    change, reason = classify(log, clear, tolerance)
    if log is None:
        names = [
            name for name, step in (("base", base), ("candidate", candidate)) if not step.sound
        ]
        reason = (
            "not steady, or too few requests, in the"
            f" {' and the '.join(names) or 'base or the candidate'}"
        )
    return StepChange(
        workers=base.workers,
        change=change,
        ratio=log.estimate() if log else None,
        base_per_s=base.throughput.per_s,
        candidate_per_s=candidate.throughput.per_s,
        between=_repeated(base, candidate),
        significant=clear,
        run_times=mann_whitney(_run_times(candidate), _run_times(base)),
        reason=reason,
    )


def classify(log: LogRatio | None, significant: bool, tolerance: float) -> tuple[Change, str]:
    if log is None:
        return Change.UNDECIDED, ""
    ratio, least, most = log.estimate(), 1 - tolerance, 1 / (1 - tolerance)
    if ratio.low >= least and ratio.high <= most:
        return Change.EQUIVALENT, ""
    if significant and ratio.value < least:
        return Change.REGRESSION, ""
    if significant and ratio.value > most:
        return Change.IMPROVEMENT, ""
    if ratio.low >= least:
        return Change.NOT_SLOWER, ""
    return (
        Change.UNDECIDED,
        f"a loss of more than {100 * tolerance:.3g} % is neither shown nor excluded",
    )


def _run_times(step: Step) -> list[float]:
    counted = itertools.chain.from_iterable(sample.counted for sample in step.samples)
    return [record.reply.run_s for record in counted]


def _foreign(names: Sequence[str]) -> Verdict:
    return Verdict(
        VerdictKind.INVALID,
        f"the runs measured different workloads: {', '.join(names)} differ",
        "compare runs of one workload, or add --force",
    )


def _verdict(steps: Sequence[StepChange], tolerance: float, lacking: Sequence[int]) -> Verdict:
    """The verdict of a comparison.

    lacking: numbers of workers that both plans have and one run was not measured at.
    """
    limit = f"{100 * tolerance:.3g} %"
    slower = [step for step in steps if step.change is Change.REGRESSION]
    if slower:
        worst = min(slower, key=lambda step: step.ratio.value if step.ratio else 1.0)
        return Verdict(
            VerdictKind.FAIL,
            f"slower by more than {limit} in {len(slower)} of {len(steps)} steps:"
            f" {_change_text(worst)}",
            "look at what changed between the runs, or measure both again, in turns",
        )
    undecided = [step for step in steps if step.change is Change.UNDECIDED]
    if undecided or not steps:
        reason = "the runs have no step in common"
        if undecided:
            reason = f"{_change_text(undecided[0])}; {undecided[0].reason}"
        remedy = (
            "measure both with more --repeats or a smaller --precision, or allow a larger"
            " --tolerance"
        )
        return Verdict(
            VerdictKind.INVALID, reason, remedy if undecided else "give both runs the same steps"
        )
    if lacking:
        reason = f"not measured in both runs: {', '.join(map(str, lacking))} workers"
        return Verdict(VerdictKind.INVALID, reason, "measure both to the end: --resume")
    faster = sum(step.change is Change.IMPROVEMENT for step in steps)
    better = ""
    if faster:
        better = f"; {faster} faster"
    return Verdict(
        VerdictKind.PASS, f"none of {len(steps)} steps is slower by more than {limit}{better}"
    )


def _change_text(step: StepChange) -> str:
    ratio = step.ratio
    return f"{step.workers} workers" + (
        f" {ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" if ratio else ""
    )
