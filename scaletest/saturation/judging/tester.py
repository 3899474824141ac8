"""How late the tester was in a step, and why: a late step shows nothing about the service."""

from collections.abc import Sequence

from scaletest.model.attempt import Attempt
from scaletest.model.measurement import MachineUse
from scaletest.saturation.plan import QUANTILES, LoadKind, SaturationStep
from scaletest.stats.percentiles import Distribution, quantile

# Due requests that were noticed up to so many seconds late, or this part of a median latency, were
# noticed in time.
LATE_S, LATE_SHARE = 0.010, 0.5
# A tester that uses less of a core than this, and has no limit, is late since other programs ran.
BUSY_CORES = 0.5
# A machine is full when this part of its cores is used; programs that use the second part of them
# are a reason for that.
FULL, LARGE_PART = 0.85, 0.2
# A limit that throttled the tester in a smaller part of its periods did not make it late.
HARDLY_THROTTLED = 0.02


def lateness_s(step: SaturationStep, samples: Sequence[Attempt]) -> float:
    """Return the 99th percentile of how late requests were sent, or under closed load timers."""
    if step.load != LoadKind.OPEN:
        return step.beat_s
    lags = sorted(attempt.lag_s for attempt in samples)
    return max(0.0, quantile(lags, QUANTILES["p99"])) if lags else 0.0


def describe_lateness(step: SaturationStep, lag_s: float, latency: Distribution) -> str:
    """Say how the tester was late, and why; "" when it was not."""
    usual = latency.p50.value if latency.p50 else latency.mean or 0.0
    if lag_s <= max(LATE_S, LATE_SHARE * min(usual, 1.0)):
        return ""
    throttled = ""
    if step.throttled_periods >= HARDLY_THROTTLED:
        throttled = f", throttled by its CPU limit in {step.throttled_periods:.0%} of the periods"
    event = "sent requests" if step.load == LoadKind.OPEN else "fired its timers"
    late = (
        f"the load generator {event} up to {1000 * lag_s:.0f} ms late (p99), using"
        f" {step.cpu:.0%} of a core{throttled}"
    )
    full = machine_full(step.around) if step.around else ""
    if full and not throttled:
        return f"{full}: {late}"
    if throttled or step.cpu >= BUSY_CORES:
        return f"{late}: it was the bottleneck"
    return f"{late}: other programs or this machine kept it from a core"


def machine_full(around: MachineUse) -> str:
    """Say which programs beside the tester filled its machine; "" when none did."""
    if around.busy < FULL * around.cores:
        return ""
    of_cores = f"of {around.cores:.0f} cores"
    if around.others >= LARGE_PART * around.cores:
        return f"the machine was busy: other programs used {around.others:.1f} {of_cores}"
    if around.service >= LARGE_PART * around.cores:
        shares = f"the service used {around.service:.1f} and the load generator {around.tester:.1f}"
        return f"the machine was full: {shares} {of_cores}"
    return ""
