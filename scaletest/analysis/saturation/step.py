"""The figures of one step: throughput, latency, errors, and whether it was saturated or disturbed.

The beginning of a step is cut off: a fifth, a second at most, but twice the usual latency at least,
since until then the requests in flight grow even where nothing is saturated. Open load counts a
request from its intended start.

saturated   fewer succeed than wanted, or the interval of the backlog's growth lies above 0 (open
            load), or the requests over the latency limit refute it (`exceedance`)
undecided   not saturated, and the requests over the latency limit neither refute nor show it
tester      the tester itself was late, busy or disturbed: due requests were noticed more than 10 ms
            (99th percentile) and half a median latency after their time, or under closed load its
            timer fired so late; then the step shows nothing about the service

All requests of one level decide about its latency limit together: the sequence adds up
(`exceeded`).
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
from scaletest.model.saturation import (
    QUANTILES,
    LoadKind,
    Phase,
    SaturationPlan,
    SaturationStep,
    latency_limit,
)

WARMUP_SHARE, LONGEST_WARMUP_S = 0.2, 1.0
LATE_S, LATE_SHARE = 0.010, 0.5
# A tester that uses less of a core than this, and has no limit, is late since other programs ran.
BUSY = 0.5
# A machine is full when this part of its cores is used; programs that use the second part of them
# are a reason for that.
FULL, LARGE_PART = 0.85, 0.2
# A limit that throttled the tester in a smaller part of its periods did not make it late.
HARDLY_THROTTLED = 0.02
FEWEST = 20
USUAL_WARMUP, USUAL_STEP = 2.0, 10.0


def timing(step_s: float, usual_s: float) -> tuple[float, float]:
    """Seconds of a step, and of its beginning that does not count.

    usual_s: usual seconds of one request.
    """
    long = max(step_s, USUAL_STEP * usual_s)
    return long, max(min(LONGEST_WARMUP_S, WARMUP_SHARE * long), USUAL_WARMUP * usual_s)


@dataclass(frozen=True, slots=True)
class Assessed:
    """A step and its figures. Rates are requests a second, times seconds.

    goodput: successes. growth: of the backlog, None under closed load or with too few requests.
    success: part of the ended requests. latency: of successes; service: the same from when they
    were sent. server: time that the service reports. errors: final attempts that failed, by kind.
    attempts: of all requests. lag_s: 99th percentile of the tester's lateness. overload: why the
    level is too much whatever its latency, "" when it is not. exceeded: the latency limit over all
    requests at this level so far, None without a limit. alone: the same of this step. tester: how
    the tester was late, "" when it was not. few: whether requests are too few to judge. lost:
    requests that were counted and have no record.
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
    lost: int = 0

    @property
    def saturated(self) -> str:
        """Why the level is too much; "" when it is not, or that is unknown."""
        if not self.overload and self.exceeded and self.exceeded.refuted:
            return str(self.exceeded)
        return self.overload

    @property
    def undecided(self) -> str:
        """Why the latency limit is undecided; "" when it is decided. A probe needs no decision."""
        limit = self.exceeded
        if self.saturated or limit is None or limit.shown or self.step.phase == Phase.WARM:
            return ""
        return f"{limit}: neither refuted nor shown"

    @property
    def queueing(self) -> float | None:
        """The part of the mean latency that is not the service's own time; None when unknown."""
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
    """Judge one step by its attempts, in any order."""
    final = [attempt for attempt in samples if attempt.final]
    begin, end = _window(plan, step, final)
    counted = _counted(plan, step, final, begin, end)
    succeeded = [attempt for attempt in counted if attempt.ok]
    failed = Counter(attempt.outcome for attempt in counted if not attempt.ok)
    due = sorted(attempt.due_s for attempt in final)
    lag_s = _lag_s(step, final)
    latency = summary(attempt.latency_s for attempt in succeeded)
    grown = _growth(plan, step, due, sorted(attempt.ended_s for attempt in final), (begin, end))
    success = len(succeeded) / max(1, len(counted))
    exceeded = _exceeded(plan, succeeded)
    server = [attempt.server_s for attempt in succeeded]
    return Assessed(
        step=step,
        offered=_per_s(due, begin, end),
        goodput=rate(sorted(attempt.ended_s for attempt in final if attempt.ok), begin, end),
        growth=grown,
        success=success,
        latency=latency,
        service=summary(attempt.ended_s - attempt.sent_s for attempt in succeeded),
        server=summary(server_s for server_s in server if server_s is not None),
        errors=dict(failed.most_common()),
        attempts=len(samples),
        lag_s=lag_s,
        overload=_overload(plan, success, grown, len(counted)),
        exceeded=exceeded,
        alone=exceeded,
        tester=_tester(step, lag_s, latency),
        few=len(counted) < FEWEST,
        lost=max(0, step.requests - len(final)),
    )


def _lag_s(step: SaturationStep, final: Sequence[Attempt]) -> float:
    """The lateness of the tester in s: 99th percentile of requests (open load), or of its timer."""
    if step.load != LoadKind.OPEN:
        return step.beat_s
    return _p99([attempt.lag_s for attempt in final])


def _per_s(due: Sequence[float], begin: float, end: float) -> float:
    """Requests that were due in this time, a second."""
    if end <= begin:
        return 0.0
    return (bisect_left(due, end) - bisect_left(due, begin)) / (end - begin)


def _is_whole(plan: SaturationPlan, step: SaturationStep) -> bool:
    """Whether all of a step counts, to the end of its last request."""
    return bool(plan.count) or step.phase == Phase.WARM


def _window(
    plan: SaturationPlan, step: SaturationStep, final: Sequence[Attempt]
) -> tuple[float, float]:
    """The time in which a step counts, in seconds from its beginning."""
    if _is_whole(plan, step):
        return 0.0, max((attempt.ended_s for attempt in final), default=step.seconds)
    # a step that was ended early has less to cut off
    return min(step.warmup_s, step.seconds / 2), step.seconds


def _counted(
    plan: SaturationPlan, step: SaturationStep, final: Sequence[Attempt], begin: float, end: float
) -> list[Attempt]:
    """The requests that count, without those that were due when a step was ended early.

    These were never sent to the service: they are backlog, and no error.
    """
    sent = [attempt for attempt in final if attempt.outcome != UNSENT]
    if step.load != LoadKind.OPEN and _is_whole(plan, step):
        return sent
    return [attempt for attempt in sent if begin <= attempt.due_s < end]


def _growth(
    plan: SaturationPlan,
    step: SaturationStep,
    due: Sequence[float],
    ended: Sequence[float],
    window: tuple[float, float],
) -> Estimate | None:
    """Growth of the backlog under open load, as long as requests were due; None for closed load.

    A step of a fixed number of requests goes on until all have ended. Sending that number may take
    less time than one request: then few completions show nothing.
    """
    if step.load != LoadKind.OPEN:
        return None
    begin, end = window
    if plan.count and due:
        end = due[-1]
    begin = begin or min(step.warmup_s, WARMUP_SHARE * end)
    estimate = growth(due, ended, begin, end)
    if estimate or plan.count:
        return estimate
    return scarce_growth(due, ended, begin, end)


def _overload(plan: SaturationPlan, success: float, grown: Estimate | None, counted: int) -> str:
    """Why the level is too much whatever its latency; "" when it is not."""
    if counted and success < plan.success:
        return f"{success:.1%} succeeded, less than {plan.success:.0%}"
    if grown is not None and grown.low > 0:
        interval = f"[{grown.low:.3g}, {grown.high:.3g}]"
        return f"the backlog grew by {grown.value:.3g} {interval} requests a second"
    return ""


def _exceeded(plan: SaturationPlan, succeeded: Sequence[Attempt]) -> Exceedance | None:
    if not plan.limit:
        return None
    name, limit_s = latency_limit(plan.limit)
    over = sum(attempt.latency_s > limit_s for attempt in succeeded)
    return Exceedance(name, limit_s, over, len(succeeded))


def _tester(step: SaturationStep, lag_s: float, latency: Distribution) -> str:
    """How the tester was late, and why; "" when it was not."""
    usual = latency.mean or 0.0
    if latency.p50:
        usual = latency.p50.value
    if lag_s <= max(LATE_S, LATE_SHARE * min(usual, 1.0)):
        return ""
    limited = _limited(step)
    event = "its timer fired"
    if step.load == LoadKind.OPEN:
        event = "requests were sent"
    late = f"{event} up to {1000 * lag_s:.0f} ms late (99th percentile)"
    late += f", with {step.cpu:.0%} of a core{limited}"
    full = ""
    if step.around:
        full = machine_full(step.around)
    if full and not limited:
        return f"{full}: {late}"
    if limited or step.cpu >= BUSY:
        return f"the tester was the bottleneck: {late}"
    return f"the tester was disturbed: {late}; other programs or this machine kept it from a core"


def _limited(step: SaturationStep) -> str:
    """How a CPU limit slowed the tester down; "" where it hardly did.

    Older steps record only whether it did.
    """
    if step.throttled_periods >= HARDLY_THROTTLED:
        return f", and its CPU limit throttled it in {step.throttled_periods:.0%} of the periods"
    if step.throttled_s and not step.throttled_periods:
        return ", and its CPU limit throttled it"
    return ""


def machine_full(around: MachineUse) -> str:
    """The programs beside the tester that filled its machine; "" when none did."""
    if around.busy < FULL * around.cores:
        return ""
    of = f"of {around.cores:.0f} cores"
    if around.others >= LARGE_PART * around.cores:
        return f"the machine was busy: other programs used {around.others:.1f} {of}"
    if around.service >= LARGE_PART * around.cores:
        shares = f"the service used {around.service:.1f} and the tester {around.tester:.1f}"
        return f"the machine was full: {shares} {of}"
    return ""


def _p99(values: list[float]) -> float:
    if not values:
        return 0.0
    return max(0.0, quantile(sorted(values), QUANTILES["p99"]))


def level_text(step: SaturationStep) -> str:
    """A level as text: a rate, or a number in flight."""
    if step.load == LoadKind.OPEN:
        if not math.isfinite(step.level):
            return "unlimited"
        return f"{step.level:.4g}/s"
    return f"{step.level:.0f}"
