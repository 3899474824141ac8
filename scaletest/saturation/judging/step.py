"""The figures of one step: throughput, latency, errors, backlog, and whether it was saturated.

saturated   fewer succeed than wanted, or the interval of the backlog's growth lies above 0 (open
            load), or pods did not stay ready or were restarted, or the requests over the latency
            limit refute it (`Exceedance`)
undecided   not saturated, and the requests over the latency limit neither refute nor show it
tester      the tester itself was late, busy or disturbed; then the step shows nothing about the
            service

All requests of one level decide about its latency limit together: the sequence adds up
(`exceeded`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scaletest.model.attempt import UNSENT, Attempt
from scaletest.model.writing import Written
from scaletest.render.numbers import plural
from scaletest.saturation.judging.backlog import (
    backlog_growth,
    completion_rate,
    mean_rate,
    scarce_backlog_growth,
)
from scaletest.saturation.judging.exceedance import Exceedance
from scaletest.saturation.judging.tester import describe_lateness, lateness_s
from scaletest.saturation.plan import LoadKind, Phase, SaturationPlan, SaturationStep, latency_limit
from scaletest.stats.estimate import Estimate
from scaletest.stats.percentiles import Distribution, summarise_samples
from scaletest.stats.streams import StreamFigures, summarise_streams

# The beginning of a step that is cut off: a fifth of it, a second at most, but this many usual
# latencies at least, since until then the requests in flight grow even where nothing is saturated.
WARMUP_SHARE, LONGEST_WARMUP_S = 0.2, 1.0
WARMUP_LATENCIES = 2.0
# A step lasts this many usual latencies at least.
STEP_LATENCIES = 10.0
# Requests that a step needs to be judged.
LEAST_REQUESTS = 20


def step_timing(step_s: float, usual_s: float) -> tuple[float, float]:
    """Return seconds of a step, and of its beginning that does not count.

    usual_s: usual seconds of one request.
    """
    duration_s = max(step_s, STEP_LATENCIES * usual_s)
    shortest_warmup_s = min(LONGEST_WARMUP_S, WARMUP_SHARE * duration_s)
    return duration_s, max(shortest_warmup_s, WARMUP_LATENCIES * usual_s)


@dataclass(frozen=True, slots=True)
class AssessedStep(Written):
    """A step and its figures. Rates are requests a second, times seconds."""

    step: SaturationStep
    offered: float
    goodput: Estimate  # successes
    growth: Estimate | None  # of the backlog; None under closed load or with too few requests
    success: float  # part of the ended requests
    latency: Distribution  # of successes
    service: Distribution  # the same from when they were sent
    server: Distribution  # time that the service reports
    errors: dict[str, int]  # requests that failed, by kind
    lag_s: float  # 99th percentile of the tester's lateness
    overload: str  # why the level is too much whatever its latency, "" when it is not
    exceeded: Exceedance | None  # the limit over all requests at this level so far, None without
    alone: Exceedance | None  # the same of this step
    tester: str  # how the tester was late, "" when it was not
    few: bool  # whether requests are too few to judge
    streams: StreamFigures | None = None  # of answers with tokens

    @property
    def saturated(self) -> str:
        """Why the level is too much; "" when it is not, or that is unknown."""
        if not self.overload and self.exceeded and self.exceeded.is_refuted:
            return str(self.exceeded)
        return self.overload

    @property
    def undecided(self) -> str:
        """Why the latency limit is undecided; "" when it is decided. A probe needs no decision."""
        limit = self.exceeded
        if self.saturated or limit is None or limit.is_shown or self.step.phase == Phase.WARM:
            return ""
        return f"{limit}: neither refuted nor shown"

    @property
    def queueing(self) -> float | None:
        """The part of the mean latency that is not the service's own time; None when unknown."""
        if self.server.mean is None or not self.latency.mean:
            return None
        return max(0.0, 1.0 - self.server.mean / self.latency.mean)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
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
            **({"streams": self.streams.to_dict()} if self.streams else {}),
        }


def assess_step(
    plan: SaturationPlan, step: SaturationStep, samples: Sequence[Attempt]
) -> AssessedStep:
    """Judge one step by its attempts, in any order."""
    # the time in which it counts, in seconds from its beginning; one that was ended early has less
    # to cut off, and of a number of requests all count, to the end of the last one
    begin_s, end_s = min(step.warmup_s, step.seconds / 2), step.seconds
    is_whole = bool(plan.count) or step.phase == Phase.WARM
    if is_whole:
        begin_s, end_s = 0.0, max((attempt.ended_s for attempt in samples), default=step.seconds)
    # what was due when a step was ended early was never sent: it is backlog, and no error
    counted = [attempt for attempt in samples if attempt.outcome != UNSENT]
    if step.load == LoadKind.OPEN or not is_whole:
        counted = [attempt for attempt in counted if begin_s <= attempt.due_s < end_s]
    succeeded = [attempt for attempt in counted if attempt.ok]
    failed = Counter(attempt.outcome for attempt in counted if not attempt.ok)
    due = sorted(attempt.due_s for attempt in samples)
    # the growth of the backlog under open load, as long as requests were due: a step of a fixed
    # number of requests continues until all have ended. Sending that number may take less time than
    # one request: then few completions show nothing
    growth: Estimate | None = None
    if step.load == LoadKind.OPEN:
        ended = sorted(attempt.ended_s for attempt in samples)
        until_s = due[-1] if plan.count and due else end_s
        since_s = begin_s or min(step.warmup_s, WARMUP_SHARE * until_s)
        growth = backlog_growth(due, ended, since_s, until_s)
        if growth is None and not plan.count:
            growth = scarce_backlog_growth(due, ended, since_s, until_s)
    # why the level is too much
    success = len(succeeded) / max(1, len(counted))
    overload = failed_pods(step)
    if counted and success < plan.success:
        overload = f"{success:.1%} succeeded, less than {plan.success:.0%}"
    elif growth is not None and growth.low > 0:
        interval = f"[{growth.low:.3g}, {growth.high:.3g}]"
        overload = f"the backlog grew by {growth.value:.3g} {interval} requests per second"
    exceeded = None
    if plan.limit:
        name, limit_s = latency_limit(plan.limit)
        over = sum(attempt.latency_s > limit_s for attempt in succeeded)
        exceeded = Exceedance(name, limit_s, over, len(succeeded))
    lag_s = lateness_s(step, samples)
    latency = summarise_samples(attempt.latency_s for attempt in succeeded)
    return AssessedStep(
        step=step,
        offered=mean_rate(due, begin_s, end_s),
        goodput=completion_rate(
            sorted(attempt.ended_s for attempt in samples if attempt.ok), begin_s, end_s
        ),
        growth=growth,
        success=success,
        latency=latency,
        service=summarise_samples(attempt.ended_s - attempt.sent_s for attempt in succeeded),
        server=summarise_samples(
            attempt.server_s for attempt in succeeded if attempt.server_s is not None
        ),
        errors=dict(failed.most_common()),
        lag_s=lag_s,
        overload=overload,
        exceeded=exceeded,
        alone=exceeded,
        tester=describe_lateness(step, lag_s, latency),
        few=len(counted) < LEAST_REQUESTS,
        streams=summarise_streams(succeeded, end_s - begin_s),
    )


def failed_pods(step: SaturationStep) -> str:
    """Say which pods did not stay ready under load, and restarts; "" when there are none.

    A probe sends no load, so it is not the reason.
    """
    if step.pods is None or step.phase == Phase.WARM:
        return ""
    failures = []
    if step.pods.unready:
        failures.append(f"{plural(len(step.pods.unready), 'pod')} did not stay ready")
    if step.pods.restarts:
        failures.append(plural(step.pods.restarts, "restart"))
    return ", ".join(failures)


def level_text(step: SaturationStep) -> str:
    """Write a level as text: a rate, or a number in flight."""
    return f"{step.level:.4g}/s" if step.load == LoadKind.OPEN else f"{step.level:.0f}"
