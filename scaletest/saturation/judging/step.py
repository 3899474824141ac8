"""The figures of one step: throughput, latency, errors, backlog, and whether it was saturated.

Whether a latency limit holds is an exact binomial test of how many requests took longer.
"p99<50ms" says that of all requests at most 1 - 0.99 = 1 % take longer than 50 ms. When x of n
independent requests took longer and q is the share that the limit allows, the true share s is
bounded by Clopper and Pearson (1934, "The use of confidence or fiducial limits illustrated in the
case of the binomial", Biometrika 26, 404-413), one-sided with 5 %:

    refuted   the lower bound of s lies above q:       P(B >= x) < 0.05
    shown     the upper bound of s is no more than q:  P(B <= x) <= 0.05

with B binomial (n, q).

Neither bound has to be computed: each lies beyond q exactly where the tail at q is that small. So
20 of 20 refute p99 at once (P = 1e-40), 1 of 1 does as well (P = 0.01), and no fewer than 299
without one over the limit show it (0.99^299 = 0.0496): p95 needs 59, p90 29, p50 5. In between
nothing is known, and more requests are needed.

Where the true share is just q, each look is wrong with at most 5 % in either direction, and four
looks at a step that is extended with 11 % (simulated: 400 requests of p95, 1,000 of p99 a look).
Requests that follow each other in a queue carry less than independent ones would: near saturation
the chance is larger.

How fast the backlog grows, with an interval that is honest near saturation.

The backlog at an instant is the number of due requests less that of ended ones. Over a window cut
into batches of h seconds

    slope = (mean backlog of the last batch - that of the first) / (window - h)

and its standard error comes from the completions: s(c) / (h sqrt(m)) for m batches with c
completions each. Beyond saturation the service works without pause, completions of batches are
independent, and that is the right error; arrivals do not add to it, since they are known. Below
saturation completions follow arrivals, each busy batch is paid back by an idle one, and the true
error is smaller: the interval is too wide and contains 0, as it should. An ordinary regression on
the backlog has neither property: near saturation it wanders, and residuals look like a trend.

With fewer than 16 completions there are no batches: due less ended requests are counted, and the
completions are taken as Poisson's, which is too wide for a service that works without pause. A slow
one that is far beyond saturation shows all the same.

The interval is never narrower than two requests over the window, nor than 1/500 of the offered
load: one pause of the tester must not look like growth.

The beginning of a step is cut off: a fifth, a second at most, but twice the usual latency at least,
since until then the requests in flight grow even where nothing is saturated. Open load counts a
request from its intended start.

saturated   fewer succeed than wanted, or the interval of the backlog's growth lies above 0 (open
            load), or pods did not stay ready or were restarted, or the requests over the latency
            limit refute it (`Exceedance`)
undecided   not saturated, and the requests over the latency limit neither refute nor show it
tester      the tester itself was late, busy or disturbed: due requests were noticed more than 10 ms
            (99th percentile) and half a median latency after their time, or under closed load its
            timer fired so late; then the step shows nothing about the service

All requests of one level decide about its latency limit together: the sequence adds up
(`exceeded`).
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from scaletest.model.attempt import UNSENT, Attempt
from scaletest.model.machine_use import MachineUse
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.saturation.plan import (
    QUANTILES,
    LoadKind,
    Phase,
    SaturationPlan,
    SaturationStep,
    latency_limit,
)
from scaletest.stats.estimate import (
    Distribution,
    Estimate,
    binomial,
    quantile,
    samples_needed,
    summary,
    t95,
)

ERROR = 0.05


def at_least(count: int, over: int, share: float) -> float:
    """P(B >= over) for B binomial (count, share)."""
    if over <= 0:
        return 1.0
    first, masses = binomial(count, share)
    return min(1.0, sum(masses[max(0, over - first) :]))


def at_most(count: int, over: int, share: float) -> float:
    """P(B <= over) for B binomial (count, share)."""
    if over >= count:
        return 1.0
    first, masses = binomial(count, share)
    return min(1.0, sum(masses[: max(0, over - first + 1)]))


@dataclass(frozen=True, slots=True)
class Exceedance:
    """Requests that took longer than the limit of a percentile.

    percentile: p50 to p99. limit_s: in seconds. over: how many of `count` took longer.
    """

    percentile: str
    limit_s: float
    over: int
    count: int

    @property
    def allowed(self) -> float:
        """The share of requests that may take longer."""
        return 1.0 - QUANTILES[self.percentile]

    @property
    def refuted(self) -> bool:
        """Whether more than the allowed share surely take longer."""
        return at_least(self.count, self.over, self.allowed) < ERROR

    @property
    def shown(self) -> bool:
        """Whether no more than the allowed share surely take longer."""
        return at_most(self.count, self.over, self.allowed) <= ERROR

    @property
    def needed(self) -> int:
        """The fewest requests that can show that the limit holds: none of them took longer."""
        return samples_needed(QUANTILES[self.percentile])

    def __add__(self, other: Exceedance) -> Exceedance:
        return Exceedance(
            self.percentile, self.limit_s, self.over + other.over, self.count + other.count
        )

    def decidable(self, further: int) -> bool:
        """Whether so many further requests may decide.

        If none of them is over the limit, or as large a part as so far.
        """
        if not self.count:
            return False
        if self.over <= self.allowed * self.count:
            return Exceedance(self.percentile, self.limit_s, self.over, self.count + further).shown
        over = self.over + round(further * self.over / self.count)
        return Exceedance(self.percentile, self.limit_s, over, self.count + further).refuted

    def __str__(self) -> str:
        limit = f"{1000 * self.limit_s:.4g} ms"
        allowed = f"{self.percentile} allows {self.allowed:.0%}"
        return f"{self.over} of {self.count} requests took longer than {limit}, {allowed}"


BATCHES = 20
LEAST_BATCHES = 4
LEAST_PER_BATCH = 4.0
_ROUNDING = 1 / 500
_HALF = 0.98


def growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Requests a second by which the backlog grows from begin to end; None with fewer than 16
    completions.

    due, ended: ascending times in s of the whole step, not only of the window.
    """
    edges, counts = _batches(ended, begin_s, end_s)
    if not counts:
        return None
    long, batches = end_s - begin_s, len(counts)
    width = long / batches
    first = mean_backlog(due, ended, edges[0], edges[1])
    last = mean_backlog(due, ended, edges[-2], edges[-1])
    slope = (last - first) / (long - width)
    error = statistics.stdev(counts) / (width * math.sqrt(batches))
    offered = _number(due, begin_s, end_s) / long
    half = max(t95(batches - 1) * error, 2.0 / long, offered * _ROUNDING)
    return Estimate(slope, slope - half, slope + half)


def _number(times: Sequence[float], begin_s: float, end_s: float) -> int:
    """How many of ascending times lie in a window, its end excluded."""
    return bisect_left(times, end_s) - bisect_left(times, begin_s)


def _batches(ended: Sequence[float], begin_s: float, end_s: float) -> tuple[list[float], list[int]]:
    """The edges of equal parts of a window, and the completions in each; none below 16 of these."""
    batches = min(BATCHES, int(_number(ended, begin_s, end_s) / LEAST_PER_BATCH))
    if batches < LEAST_BATCHES:
        return [], []
    edges = [begin_s + (end_s - begin_s) * index / batches for index in range(batches + 1)]
    return edges, [_number(ended, low, high) for low, high in pairwise(edges)]


def scarce_growth(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> Estimate | None:
    """Growth of the backlog from so few completions that `growth` is None.

    None with fewer than 16 requests due. Not for a step that is shorter than a request: nothing can
    have ended there. Bounds of a Poisson count by roots (Freeman and Tukey 1950), half the normal
    quantile around them.
    """
    long = end_s - begin_s
    begun, done = _number(due, begin_s, end_s), _number(ended, begin_s, end_s)
    if long <= 0 or begun < LEAST_BATCHES * LEAST_PER_BATCH:
        return None
    least, most = max(0.0, math.sqrt(done) - _HALF) ** 2, (math.sqrt(done + 1) + _HALF) ** 2
    return Estimate((begun - done) / long, (begun - most) / long, (begun - least) / long)


def pooled(estimates: Sequence[Estimate]) -> Estimate:
    """The estimate of independent steps at one level together: their mean, with its error."""
    mean = statistics.fmean(estimate.value for estimate in estimates)
    half = math.hypot(*(estimate.high - estimate.value for estimate in estimates)) / len(estimates)
    return Estimate(mean, mean - half, mean + half)


def mean_backlog(
    due: Sequence[float], ended: Sequence[float], begin_s: float, end_s: float
) -> float:
    """Time average of the requests that were due and had not ended."""
    return (_area(due, begin_s, end_s) - _area(ended, begin_s, end_s)) / (end_s - begin_s)


def rate(ended: Sequence[float], begin_s: float, end_s: float) -> Estimate:
    """Completions a second, with an interval from batches; ends at infinity with fewer than 16."""
    long, per_s = end_s - begin_s, _per_s(ended, begin_s, end_s)
    counts = _batches(ended, begin_s, end_s)[1]
    batches = len(counts)
    if not counts:
        return Estimate(per_s, 0.0, math.inf)
    error = statistics.stdev(counts) / math.sqrt(batches) * batches / long
    half = max(t95(batches - 1) * error, 1.0 / long)
    return Estimate(per_s, max(0.0, per_s - half), per_s + half)


def _area(times: Sequence[float], begin_s: float, end_s: float) -> float:
    """Integral over the window of how many of `times` have passed."""
    before = bisect_left(times, begin_s)
    within = times[before : bisect_left(times, end_s)]
    return before * (end_s - begin_s) + sum(end_s - time for time in within)


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
class Assessed(Written):
    """A step and its figures. Rates are requests a second, times seconds.

    goodput: successes. growth: of the backlog, None under closed load or with too few requests.
    success: part of the ended requests. latency: of successes; service: the same from when they
    were sent. server: time that the service reports. errors: requests that failed, by kind.
    lag_s: 99th percentile of the tester's lateness. overload: why the
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
            "lag_p99_s": self.lag_s,
            "cpu_cores": step.cpu,
            "saturated": self.saturated,
            "undecided": self.undecided,
            "tester_bottleneck": self.tester,
            "too_few": self.few,
            **({"around": step.around.to_dict()} if step.around else {}),
            **({"pods": step.pods.to_dict()} if step.pods else {}),
        }


def assess(plan: SaturationPlan, step: SaturationStep, samples: Sequence[Attempt]) -> Assessed:
    """Judge one step by its attempts, in any order."""
    begin, end = _window(plan, step, samples)
    counted = _counted(plan, step, samples, begin, end)
    succeeded = [attempt for attempt in counted if attempt.ok]
    failed = Counter(attempt.outcome for attempt in counted if not attempt.ok)
    due = sorted(attempt.due_s for attempt in samples)
    lag_s = _lag_s(step, samples)
    latency = summary(attempt.latency_s for attempt in succeeded)
    grown = _growth(plan, step, due, sorted(attempt.ended_s for attempt in samples), (begin, end))
    success = len(succeeded) / max(1, len(counted))
    exceeded = _exceeded(plan, succeeded)
    return Assessed(
        step=step,
        offered=_per_s(due, begin, end),
        goodput=rate(sorted(attempt.ended_s for attempt in samples if attempt.ok), begin, end),
        growth=grown,
        success=success,
        latency=latency,
        service=summary(attempt.ended_s - attempt.sent_s for attempt in succeeded),
        server=summary(attempt.server_s for attempt in succeeded if attempt.server_s is not None),
        errors=dict(failed.most_common()),
        lag_s=lag_s,
        overload=_overload(plan, success, grown, len(counted)) or failed_pods(step),
        exceeded=exceeded,
        alone=exceeded,
        tester=_tester(step, lag_s, latency),
        few=len(counted) < FEWEST,
        lost=max(0, step.requests - len(samples)),
    )


def _lag_s(step: SaturationStep, samples: Sequence[Attempt]) -> float:
    """The lateness of the tester in s: 99th percentile of requests (open load), or of its timer."""
    if step.load != LoadKind.OPEN:
        return step.beat_s
    lags = sorted(attempt.lag_s for attempt in samples)
    return max(0.0, quantile(lags, QUANTILES["p99"])) if lags else 0.0


def _per_s(times: Sequence[float], begin: float, end: float) -> float:
    """How many of ascending times lie in this time, a second."""
    return _number(times, begin, end) / (end - begin) if end > begin else 0.0


def _is_whole(plan: SaturationPlan, step: SaturationStep) -> bool:
    """Whether all of a step counts, to the end of its last request."""
    return bool(plan.count) or step.phase == Phase.WARM


def _window(
    plan: SaturationPlan, step: SaturationStep, samples: Sequence[Attempt]
) -> tuple[float, float]:
    """The time in which a step counts, in seconds from its beginning."""
    if _is_whole(plan, step):
        return 0.0, max((attempt.ended_s for attempt in samples), default=step.seconds)
    # a step that was ended early has less to cut off
    return min(step.warmup_s, step.seconds / 2), step.seconds


def _counted(
    plan: SaturationPlan, step: SaturationStep, samples: Sequence[Attempt], begin: float, end: float
) -> list[Attempt]:
    """The requests that count, without those that were due when a step was ended early.

    These were never sent to the service: they are backlog, and no error.
    """
    sent = [attempt for attempt in samples if attempt.outcome != UNSENT]
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
    return estimate if estimate or plan.count else scarce_growth(due, ended, begin, end)


def _overload(plan: SaturationPlan, success: float, grown: Estimate | None, counted: int) -> str:
    """Why the level is too much whatever its latency; "" when it is not."""
    if counted and success < plan.success:
        return f"{success:.1%} succeeded, less than {plan.success:.0%}"
    if grown is not None and grown.low > 0:
        interval = f"[{grown.low:.3g}, {grown.high:.3g}]"
        return f"the backlog grew by {grown.value:.3g} {interval} requests a second"
    return ""


def failed_pods(step: SaturationStep) -> str:
    """The pods that did not stay ready under load, and restarts; "" when there are none.

    A probe sends no load, so it is not the reason.
    """
    if step.pods is None or step.phase == Phase.WARM:
        return ""
    unready, restarts = len(step.pods.unready), step.pods.restarts
    failures = [f"{plural(unready, 'pod')} did not stay ready"] if unready else []
    return ", ".join([*failures, *([plural(restarts, "restart")] if restarts else [])])


def _exceeded(plan: SaturationPlan, succeeded: Sequence[Attempt]) -> Exceedance | None:
    if not plan.limit:
        return None
    name, limit_s = latency_limit(plan.limit)
    return Exceedance(
        name, limit_s, sum(attempt.latency_s > limit_s for attempt in succeeded), len(succeeded)
    )


def _tester(step: SaturationStep, lag_s: float, latency: Distribution) -> str:
    """How the tester was late, and why; "" when it was not."""
    usual = latency.p50.value if latency.p50 else latency.mean or 0.0
    if lag_s <= max(LATE_S, LATE_SHARE * min(usual, 1.0)):
        return ""
    limited = _limited(step)
    event = "requests were sent" if step.load == LoadKind.OPEN else "its timer fired"
    late = (
        f"{event} up to {1000 * lag_s:.0f} ms late (99th percentile), with {step.cpu:.0%} of a"
        f" core{limited}"
    )
    full = machine_full(step.around) if step.around else ""
    if full and not limited:
        return f"{full}: {late}"
    if limited or step.cpu >= BUSY:
        return f"the tester was the bottleneck: {late}"
    return f"the tester was disturbed: {late}; other programs or this machine kept it from a core"


def _limited(step: SaturationStep) -> str:
    """How a CPU limit slowed the tester down; "" where it hardly did."""
    if step.throttled_periods >= HARDLY_THROTTLED:
        return f", and its CPU limit throttled it in {step.throttled_periods:.0%} of the periods"
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


def level_text(step: SaturationStep) -> str:
    """A level as text: a rate, or a number in flight."""
    if step.load == LoadKind.OPEN:
        if not math.isfinite(step.level):
            return "unlimited"
        return f"{step.level:.4g}/s"
    return f"{step.level:.0f}"
