"""What one step says: throughput, latency, errors by kind, whether it was saturated, and whether the tester was.

The beginning of a step is cut off: a fifth, a second at most, but twice the usual latency at least, since until then
what is in flight grows even where nothing is saturated. Open load counts a request from its intended start.

saturated   fewer succeed than wanted, or the interval of the backlog's growth lies above 0 (open load), or the
            requests over the latency limit refute it (`exceedance`)
undecided   not saturated, and the requests over the latency limit neither refute nor show it
tester      the tester itself was late, busy or disturbed: what was due was noticed more than 10 ms (99th percentile)
            and half a median latency after its time, or under closed load its clock rang so late; then the step says
            nothing of the service

What was sent at one level decides about its latency limit together: the course adds up (`exceeded`).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.analysis.estimate import Estimate
from scaletest.analysis.percentiles import Distribution, quantile, summary
from scaletest.analysis.saturation.backlog import growth, rate, scarce_growth
from scaletest.analysis.saturation.exceedance import Exceedance
from scaletest.model.attempt import UNSENT, Attempt
from scaletest.model.machine_use import MachineUse
from scaletest.model.saturation import QUANTILES, LoadKind, Phase, SaturationPlan, SaturationStep, latency_limit

WARMUP_SHARE, LONGEST_WARMUP_S = 0.2, 1.0
LATE_S, LATE_SHARE = 0.010, 0.5
# A tester that uses less of a core than this, and has no limit, is late because others had the processor.
BUSY = 0.5
# A machine whose cores are used to this part is full, and who has that part of them is much of the reason.
FULL, MUCH = 0.85, 0.2
# A limit that held the tester back in a smaller part of its periods did not make it late.
HARDLY_THROTTLED = 0.02
FEWEST = 20
USUAL_WARMUP, USUAL_STEP = 2.0, 10.0


def timing(step_s: float, usual_s: float) -> tuple[float, float]:
    """Seconds of a step and of its beginning that does not count, where one request usually takes `usual_s`."""
    long = max(step_s, USUAL_STEP * usual_s)
    return long, max(min(LONGEST_WARMUP_S, WARMUP_SHARE * long), USUAL_WARMUP * usual_s)


@dataclass(frozen=True, slots=True)
class Assessed:
    """A step and what it says. Rates are requests a second, times seconds.

    goodput: successes. growth: of the backlog, None under closed load or with too few. success: part of what ended.
    latency: of successes; service: the same from when they were sent. server: what the service says it took.
    errors: final attempts that failed, by kind. attempts: of all. lag_s: 99th percentile of the tester's lateness.
    overload: why the level is too much whatever its latency, "" when it is not. exceeded: the latency limit, None when
    there is none, over all that was sent at this level so far. alone: the same of this step.
    tester: how the tester was late, "" when it was not. few: too few to judge.
    """

    step: SaturationStep
    offered: float
    goodput: Estimate
    growth: Estimate | None
    success: float
    latency: Distribution
    service: Distribution
    server: Distribution
    errors: dict[str, int]
    attempts: int
    lag_s: float
    overload: str
    exceeded: Exceedance | None
    alone: Exceedance | None
    tester: str
    few: bool

    @property
    def saturated(self) -> str:
        """Why the level is too much; "" when that is not known."""
        return self.overload or (str(self.exceeded) if self.exceeded and self.exceeded.refuted else "")

    @property
    def undecided(self) -> str:
        """What leaves open whether the latency limit holds; "" when that is known. A probe need not say it."""
        limit = self.exceeded
        if self.saturated or limit is None or limit.shown or self.step.phase == Phase.WARM:
            return ""
        return f"{limit}: neither refuted nor shown"

    @property
    def queueing(self) -> float | None:
        """The part of the mean latency that is not the service's own time; None when it does not tell."""
        if self.server.mean is None or not self.latency.mean:
            return None
        return max(0.0, 1.0 - self.server.mean / self.latency.mean)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        step = self.step
        return {
            "number": step.number,
            "phase": step.phase,
            "load": step.load,
            "level": step.level,
            "seconds": step.seconds,
            "requests": step.requests,
            "offered_per_s": self.offered,
            "goodput_per_s": self.goodput.to_dict(),
            "backlog_growth_per_s": self.growth.to_dict() if self.growth else None,
            "success": self.success,
            "latency_s": self.latency.to_dict(),
            "service_s": self.service.to_dict(),
            "server_s": self.server.to_dict() if self.server.count else None,
            "queueing_share": self.queueing,
            "errors": self.errors,
            "attempts": self.attempts,
            "lag_p99_s": self.lag_s,
            "cpu_cores": step.cpu,
            "saturated": self.saturated,
            "undecided": self.undecided,
            "tester_bottleneck": self.tester,
            "too_few": self.few,
            **({"around": step.around.to_dict()} if step.around else {}),
            **({"extra": step.extra} if step.extra else {}),
        }


def assess(plan: SaturationPlan, step: SaturationStep, samples: Sequence[Attempt]) -> Assessed:
    """Judge one step by its samples, in any order."""
    final = [one for one in samples if one.final]
    begin, end = _window(plan, step, final)
    counted = _counted(plan, step, final, begin, end)
    good = [one for one in counted if one.ok]
    due = sorted(one.due_s for one in final)
    ended = sorted(one.ended_s for one in final)
    lag = _p99([one.lag_s for one in final]) if step.load == LoadKind.OPEN else step.beat_s
    latency = summary(one.latency_s for one in good)
    found = _growth(plan, step, due, ended, begin, due[-1] if plan.count and due else end)
    success = len(good) / len(counted) if counted else 0.0
    exceeded = _exceeded(plan, good)
    return Assessed(
        step=step,
        offered=(bisect_left(due, end) - bisect_left(due, begin)) / (end - begin) if end > begin else 0.0,
        goodput=rate(sorted(one.ended_s for one in final if one.ok), begin, end),
        growth=found,
        success=success,
        latency=latency,
        service=summary(one.ended_s - one.sent_s for one in good),
        server=summary(one.server_s for one in good if one.server_s is not None),
        errors=dict(Counter(one.outcome for one in counted if not one.ok).most_common()),
        attempts=len(samples),
        lag_s=lag,
        overload=_overload(plan, success, found, len(counted)),
        exceeded=exceeded,
        alone=exceeded,
        tester=_tester(step, lag, latency),
        few=len(counted) < FEWEST,
    )


def _is_whole(plan: SaturationPlan, step: SaturationStep) -> bool:
    """Whether all of a step counts, to the end of its last request."""
    return bool(plan.count) or step.phase == Phase.WARM


def _window(plan: SaturationPlan, step: SaturationStep, final: Sequence[Attempt]) -> tuple[float, float]:
    """From when to when a step counts, in its seconds."""
    if _is_whole(plan, step):
        return 0.0, max((one.ended_s for one in final), default=step.seconds)
    # a step that was ended early has less to cut off
    return min(step.warmup_s, step.seconds / 2), step.seconds


def _counted(
    plan: SaturationPlan, step: SaturationStep, final: Sequence[Attempt], begin: float, end: float
) -> list[Attempt]:
    """The requests that count, without those that were due when a step was ended early.

    These were never asked of the service: they are backlog, and no error.
    """
    every = step.load != LoadKind.OPEN and _is_whole(plan, step)
    return [one for one in final if (every or begin <= one.due_s < end) and one.outcome != UNSENT]


def _growth(
    plan: SaturationPlan,
    step: SaturationStep,
    due: Sequence[float],
    ended: Sequence[float],
    begin: float,
    end: float,
) -> Estimate | None:
    """Of open load, as long as something was due: a step of a fixed number goes on until all have ended.

    The sending of such a number may take less time than one request: then few completions say nothing.
    """
    if step.load != LoadKind.OPEN:
        return None
    begin = begin or min(step.warmup_s, WARMUP_SHARE * end)
    found = growth(due, ended, begin, end)
    return found if found or plan.count else scarce_growth(due, ended, begin, end)


def _overload(plan: SaturationPlan, success: float, found: Estimate | None, counted: int) -> str:
    if counted and success < plan.success:
        return f"{success:.1%} succeeded, less than {plan.success:.0%}"
    if found is not None and found.low > 0:
        return f"the backlog grew by {found.value:.3g} [{found.low:.3g}, {found.high:.3g}] requests a second"
    return ""


def _exceeded(plan: SaturationPlan, good: Sequence[Attempt]) -> Exceedance | None:
    if not plan.limit:
        return None
    name, limit_s = latency_limit(plan.limit)
    return Exceedance(name, limit_s, sum(one.latency_s > limit_s for one in good), len(good))


def _tester(step: SaturationStep, lag_s: float, latency: Distribution) -> str:
    usual = latency.p50.value if latency.p50 else (latency.mean or 0.0)
    if lag_s <= max(LATE_S, LATE_SHARE * min(usual, 1.0)):
        return ""
    held = _held(step)
    what = "requests were sent" if step.load == LoadKind.OPEN else "its clock rang"
    late = f"{what} up to {1000 * lag_s:.0f} ms late (99th percentile), with {step.cpu:.0%} of a core{held}"
    full = machine_full(step.around) if step.around else ""
    if full and not held:
        return f"{full}: {late}"
    if held or step.cpu >= BUSY:
        return f"the tester was the bottleneck: {late}"
    return f"the tester was disturbed: {late}; something else kept it from a processor"


def _held(step: SaturationStep) -> str:
    """How a CPU limit held the tester back; "" where it hardly did. Older steps tell only whether it did."""
    if step.throttled_periods >= HARDLY_THROTTLED:
        return f", and its CPU limit held it back in {step.throttled_periods:.0%} of the periods"
    return ", and its CPU limit held it back" if step.throttled_s and not step.throttled_periods else ""


def machine_full(around: MachineUse) -> str:
    """Who else than the tester filled its machine; "" when nobody did."""
    if around.busy < FULL * around.cores:
        return ""
    of = f"of {around.cores:.0f} cores"
    if around.others >= MUCH * around.cores:
        return f"the machine was busy: other programs used {around.others:.1f} {of}"
    if around.service >= MUCH * around.cores:
        return f"the machine was full: the service used {around.service:.1f} and the tester {around.tester:.1f} {of}"
    return ""


def _p99(values: list[float]) -> float:
    return max(0.0, quantile(sorted(values), QUANTILES["p99"])) if values else 0.0


def level_text(step: SaturationStep) -> str:
    """A level as people read it."""
    if step.load == LoadKind.OPEN:
        return f"{step.level:.4g}/s" if math.isfinite(step.level) else "unlimited"
    return f"{step.level:.0f}"
